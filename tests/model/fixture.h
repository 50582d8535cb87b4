/* Measured plans of a made-up workload, and what suites do with them. */
#ifndef FUSEPLAN_TESTS_MODEL_FIXTURE_H
#define FUSEPLAN_TESTS_MODEL_FIXTURE_H

#include "tests/model/space.h"
#include "tests/suite.h"

enum { MAX_ROWS = 500 };

/* A space and the first rows of its shuffled plans. */
struct fixture {
    struct space *space;
    uint16_t order[PLAN_SPACE];
    struct plan plans[MAX_ROWS];
    double ms[MAX_ROWS];
};

static inline struct fixture *fixture_new(uint64_t seed)
{
    struct fixture *f = mem_alloc(1, sizeof(*f));
    f->space = space_new(seed);
    space_shuffle(f->space, seed, f->order);
    for (int i = 0; i < MAX_ROWS; i++) {
        f->plans[i] = plan_from_value(f->order[i]);
        f->ms[i] = f->space->measured_ms[f->order[i]];
    }
    return f;
}

static inline void fixture_free(struct fixture *f)
{
    free(f->space);
    free(f);
}

static inline struct model_options options_of(enum feature_set features)
{
    return (struct model_options){.features = features, .seed = 1, .quantile = 0.1};
}

static inline struct model *train(struct model_options o, int rows, const struct plan *plans,
                                  const double *ms, const struct segment_times *times)
{
    struct model_data d = {.count = rows, .plans = plans, .ms = ms};
    struct model *m;
    struct status st = STATUS_INIT;
    ck_assert_msg(model_train(&o, &d, times, &m, &st) == 0, "%s", st.message);
    return m;
}

static inline void predict(struct model *m, const struct plan *plans, int count,
                           const struct segment_times *times, double *ms, double *high)
{
    struct status st = STATUS_INIT;
    ck_assert_msg(model_predict(m, plans, count, times, ms, high, &st) == 0, "%s", st.message);
}

#endif
