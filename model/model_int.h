/* What the files of model/ share. */
#pragma once

#include "model/model.h"

/* ---- data.c: rows fit to learn from ---------------------------------------------------------- */

/* Copies one row a plan, ascending by canonical value, with the mean of its times.  STATUS_MODEL if
 * a time is not positive and finite. */
int data_distinct(const struct model_data *data, struct model_data *out, struct status *st);

/* ---- booster.c: XGBoost -------------------------------------------------------------------------
 *
 * Only this file calls it, always with one thread a booster: hundreds of rows gain nothing from
 * more, sums have one order, a fork finds no thread pool, and no spinning thread disturbs what
 * another process measures. */

struct matrix {
    int rows, columns;
    float *values; /* row-major; NaN: missing */
};

struct booster_param {
    const char *name, *value;
};

/* Learns target (rows), starting from margin (rows; null: zeros). */
struct booster_task {
    const struct booster_param *params; /* ends with a null name */
    struct matrix x;
    const float *target, *margin;
    uint64_t seed;
    int rounds;
};

struct booster; /* XGBoost's own */

/* Free *out with booster_free(). */
int booster_train(const struct booster_task *task, struct booster **out, struct status *st);
void booster_free(struct booster *b);

/* Writes the sum of the trees, without the margin: (rows). */
int booster_predict(struct booster *b, struct matrix x, float *out, struct status *st);

/* ---- baseline.c: the prediction that trees start from -------------------------------------------
 *
 * Trees cannot learn a sum of 120 terms from a few dozen rows, and they do not extrapolate.  The
 * additive time gives that sum for every plan, so the trees learn only what the sum leaves over:
 * how the segments of one plan help or hinder each other. */

/* ln(ms) as a line over ln(additive ms). */
struct baseline {
    double slope, mean_log_additive, mean_log_ms;
    double spread; /* standard deviation of the line's errors on the training data */
};

/* log_additive: (d->count), NaN: unknown. */
struct baseline baseline_fit(const struct model_data *d, const double *log_additive);
double baseline_log_ms(const struct baseline *b, double log_additive);

/* The logarithm of the odds that a plan takes at most ms. */
double baseline_log_odds(const struct baseline *b, double log_additive, double ms);

/* ---- cholesky.c: symmetric matrices, positive definite and row-major ------------------------- */

/* Cholesky's factor L in place, in the lower triangle.  column: room for n numbers. */
void cholesky(double *a, double *column, int n);

/* x becomes the solution of L x' = x, or of L^T x' = x. */
void solve_lower(const double *l, int n, double *x);
void solve_upper(const double *l, int n, double *x);

/* ---- model.c --------------------------------------------------------------------------------- */

struct model {
    struct model_options options;
    struct baseline baseline;
    double threshold_ms;
    struct booster *regressor;  /* adds to the baseline's ln(ms) */
    struct booster *classifier; /* adds to the baseline's log odds of high performance */
};
