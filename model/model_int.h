/* What the files of model/ share. */
#ifndef FUSEPLAN_MODEL_INT_H
#define FUSEPLAN_MODEL_INT_H

#include "model/model.h"

/* ---- data.c: rows fit to learn from ---------------------------------------------------------- */

/* One row a plan, ascending by canonical value: the order and the repeats of what was given do not
 * matter.  Repeats become their mean. */
struct dataset {
    int count;
    struct plan *plans;
    double *ms;
};
int dataset_init(const struct model_data *data, struct dataset *out, struct status *st);
void dataset_release(struct dataset *d);

/* ---- booster.c: XGBoost -------------------------------------------------------------------------
 *
 * The only file that calls it.  One thread, always: hundreds of rows gain nothing from more, sums
 * then have one order, a fork finds no thread pool, and no spinning thread disturbs a measurement
 * that another process is making. */

struct matrix {
    int rows, columns;
    float *values; /* row-major; NaN: missing */
};

struct booster_param {
    const char *name, *value;
};

/* What to learn: target (rows), starting from margin (rows; null: zeros). */
struct booster_task {
    const struct booster_param *params; /* ends with a null name */
    struct matrix x;
    const float *target, *margin;
    uint64_t seed;
    int rounds;
};

struct booster; /* XGBoost's own */

/* Borrows the task; *out is freed with booster_free. */
int booster_train(const struct booster_task *task, struct booster **out, struct status *st);
void booster_free(struct booster *b);

/* The sum of the trees, margin left out: (rows). */
int booster_predict(struct booster *b, struct matrix x, float *out, struct status *st);

int booster_save(struct booster *b, struct buf *out, struct status *st);
int booster_load(const void *bytes, size_t len, int columns, struct booster **out,
                 struct status *st);

/* ---- baseline.c: what is known before any tree --------------------------------------------------
 *
 * A few dozen rows are too few for trees to learn a sum of 120 terms, and trees do not extrapolate.
 * The sum of the segments measured alone does both, so the trees learn only what it leaves over:
 * how the segments of one plan help or hinder each other. */

/* ln(ms) as a line over ln(additive ms). */
struct baseline {
    double slope, mean_log_additive, mean_log_ms;
    double spread; /* standard deviation of the line's errors on the training data */
};

/* log_additive: (d->count), NaN where the sum is unknown. */
struct baseline baseline_fit(const struct dataset *d, const double *log_additive);
double baseline_log_ms(const struct baseline *b, double log_additive);

/* Logarithm of the odds that a plan takes at most ms. */
double baseline_log_odds(const struct baseline *b, double log_additive, double ms);

/* ---- model.c --------------------------------------------------------------------------------- */

struct model {
    struct model_options options;
    struct baseline baseline;
    double threshold_ms;
    struct booster *regressor;  /* ln(ms) less the baseline's */
    struct booster *classifier; /* log odds of high performance less the baseline's */
};

int model_check_options(const struct model_options *o, struct status *st);

#endif
