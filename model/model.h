/* model: learns milliseconds from plans.
 *
 * The only folder that includes the XGBoost header.  In memory only: who wants a model kept stores
 * its bytes.  Training is deterministic for data, options and seed.  To add a feature: features.c,
 * and raise FEATURES_VERSION. */
#ifndef FUSEPLAN_MODEL_H
#define FUSEPLAN_MODEL_H

#include "codegen/codegen.h"

/* ---- features.c -------------------------------------------------------------------------------*/

enum feature_set {
    FEATURES_BITS, /* the 16 bits of the value, as the notes have them */
    FEATURES_PLAN  /* bits of boundaries, segments present, and the additive time of the plan */
};
enum { FEATURES_VERSION = 1 };

/* What FEATURES_PLAN needs to know of a study: the measured time of each segment alone. */
struct segment_times {
    double ms[SEGMENT_COUNT]; /* NaN where not measured */
    double handwritten_ms;    /* of ops 2-6; NaN where not measured */
};

/* The sum over the plan's segments; NaN where one is not measured. */
double additive_ms(const struct segment_times *t, struct plan p);

int feature_count(enum feature_set set);
void features_of(enum feature_set set, unsigned value, const struct segment_times *times,
                 float *out);

/* ---- model.c: regressor and classifier --------------------------------------------------------*/

struct model_options {
    enum feature_set features;
    uint64_t seed;
    double quantile; /* high performance: the fastest share of the training data; 0.1 */
    int rounds;      /* boosting rounds; 0: the default */
    int threads;     /* 0: all */
};

struct model_data { /* borrowed arrays; times in ms */
    int count;
    const unsigned *values;
    const double *ms;
};

struct model;

/* At least 2 rows with distinct values, else STATUS_MODEL. */
int model_train(const struct model_options *options, const struct model_data *data,
                const struct segment_times *times, struct model **out, struct status *st);
void model_free(struct model *m);

/* For each value: milliseconds and the probability of high performance. Either may be null. */
int model_predict(struct model *m, const unsigned *values, int count,
                  const struct segment_times *times, double *ms, double *high, struct status *st);

double model_threshold_ms(const struct model *m); /* slowest time that still is high performance */

/* One self-contained blob with both boosters, options and versions. The same input gives the same
 * bytes. */
int model_save(const struct model *m, struct buf *out, struct status *st);
int model_load(const void *bytes, size_t len, struct model **out, struct status *st);

/* ---- report.c: how good is it -----------------------------------------------------------------*/

struct model_report { /* on held-out plans, k-fold */
    int folds, count;
    double spearman, top1_regret, auc,
        recall_best; /* regret: chosen/best - 1; recall of the best 1 % */
};
int model_cross_validate(const struct model_options *options, const struct model_data *data,
                         const struct segment_times *times, int folds, struct model_report *out,
                         struct status *st);

/* ---- text.c: the notes' training file ---------------------------------------------------------
 *
 * Lines of a 16-digit binary string, blanks, a time in ms.  Errors name line and column. */
int model_data_parse(const char *name, const char *text, size_t len, unsigned **values, double **ms,
                     int *count, struct status *st);

#endif
