/* model: learns milliseconds from plans.
 *
 * The only folder that includes the XGBoost header.  In memory only: who wants a model kept stores
 * its bytes.  Training is deterministic for data, options and seed.  To add a feature: features.c,
 * and raise FEATURES_VERSION. */
#ifndef FUSEPLAN_MODEL_H
#define FUSEPLAN_MODEL_H

#include "layer/layer.h"

/* ---- features.c ------------------------------------------------------------------------------ */

enum feature_set {
    FEATURES_BITS, /* the 16 bits of the canonical value */
    FEATURES_PLAN  /* flags of boundaries, segments present, and the additive time of the plan */
};
enum { FEATURES_VERSION = 1 };

/* What FEATURES_PLAN needs to know of a study: the measured time of each slot alone. */
struct segment_times {
    double ms[SLOT_COUNT]; /* NaN where not measured */
};

/* The sum over the plan's segments; NaN where one is not measured. */
double additive_ms(const struct segment_times *t, struct plan p);

int feature_count(enum feature_set set);

/* times may be null; NaN in out: unknown. */
void features_of(enum feature_set set, struct plan p, const struct segment_times *times,
                 float *out);

/* ---- model.c: regressor and classifier ------------------------------------------------------- */

struct model_options {
    enum feature_set features;
    uint64_t seed;
    double quantile; /* high performance: the fastest share of the training data; 0.1 */
    int rounds;      /* boosting rounds; 0: the default */
};

/* Borrowed arrays; times in ms.  Repeats of a plan are one row with the mean of their times, and
 * the order of rows changes nothing. */
struct model_data {
    int count;
    const struct plan *plans;
    const double *ms;
};

struct model;

/* At least 2 distinct plans and only positive, finite times, else STATUS_MODEL.  times may be null;
 * with FEATURES_PLAN they carry most of what can be known from a few dozen rows. */
int model_train(const struct model_options *options, const struct model_data *data,
                const struct segment_times *times, struct model **out, struct status *st);
void model_free(struct model *m);

/* For each plan: milliseconds and the probability of high performance. Either may be null. */
int model_predict(struct model *m, const struct plan *plans, int count,
                  const struct segment_times *times, double *ms, double *high, struct status *st);

/* The slowest time that still is high performance. */
double model_threshold_ms(const struct model *m);

/* One self-contained blob with both boosters, options and versions. The same input gives the same
 * bytes. */
int model_save(const struct model *m, struct buf *out, struct status *st);
int model_load(const void *bytes, size_t len, struct model **out, struct status *st);

/* ---- validation.c: how good is it ------------------------------------------------------------ */

/* On held-out plans: each plan is predicted by the model of the one fold that had not seen it. */
struct model_report {
    int folds, count;   /* count: distinct plans */
    double spearman;    /* of predicted and measured times */
    double top1_regret; /* measured time of the plan predicted fastest / of the fastest, less 1 */
    double auc;         /* of the classifier; NaN where all plans are of one class */
    double recall_best; /* share of the fastest 1 % (at least one plan) predicted as such */
};

/* k-fold; options->seed shuffles. */
int model_cross_validate(const struct model_options *options, const struct model_data *data,
                         const struct segment_times *times, int folds, struct model_report *out,
                         struct status *st);

/* ---- training_file.c: the notes' training file --------------------------------------------------
 *
 * Lines of a 16-digit binary string, blanks, a time in ms; blank lines and # comments are skipped.
 * An error is STATUS_USAGE and starts name:line:column.  The caller frees *plans and *ms. */
int model_data_parse(const char *name, const char *text, size_t len, struct plan **plans,
                     double **ms, int *count, struct status *st);

#endif
