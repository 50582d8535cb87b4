/* What the suites of model/ do with the measured plans of a made-up space. */
#ifndef FUSEPLAN_TESTS_MODEL_FIXTURE_H
#define FUSEPLAN_TESTS_MODEL_FIXTURE_H

#include "tests/made_up.h"
#include "tests/suite.h"

enum { MAX_ROWS = 500 };

static const struct model_options defaults __attribute__((unused)) = {.seed = 1, .quantile = 0.1};

static inline struct model *train(struct model_options o, int rows, const struct plan *plans,
                                  const double *ms, const struct segment_times *times)
{
    struct model_data d = {.count = rows, .plans = plans, .ms = ms};
    struct model *m;
    OK(model_train(&o, &d, times, &m, &st));
    return m;
}

static inline void predict(struct model *m, const struct plan *plans, int count,
                           const struct segment_times *times, double *ms, double *high)
{
    OK(model_predict(m, plans, count, times, ms, high, &st));
}

#endif
