/* model: learns milliseconds from plans.
 *
 * Only this folder includes the XGBoost header.  A model is kept as its training data, not as its
 * trees: equal data, options and seed give an equal model, in milliseconds.  To add a feature:
 * features.c. */
#pragma once

#include "layer/layer.h"

/* ---- features.c ------------------------------------------------------------------------------ */

/* The measured time of each slot alone. */
struct segment_times {
    double ms[SLOT_COUNT]; /* NaN if not measured */
};

/* The *additive time* of a plan is the sum of its segments' times; NaN if one is not measured. */
double additive_ms(const struct segment_times *t, struct plan p);

/* Which boundaries are fused, which segments occur, how many, and the additive time. */
enum { FEATURES = BOUNDARY_COUNT + 3 + SEGMENT_COUNT };

/* NaN: unknown.  times may be null. */
void features_of(struct plan p, const struct segment_times *times, float out[FEATURES]);

/* ---- gaussian.c: a plan as the sum of its segments ----------------------------------------------
 *
 * A linear Gaussian posterior over what each slot takes in a plan, the gap before its launch
 * included.  It is drawn towards its time alone, or where it has none towards that of its
 * operators; measured plans move it. */

struct gaussian_data {
    int count;
    const struct plan *plans;
    const double *ms;
    const double *noise; /* standard errors, as shares of ms; may be null */
};

struct gaussian;

/* alone may be null.  The caller frees. */
struct gaussian *gaussian_fit(const struct gaussian_data *d, const struct segment_times *alone);

/* What slots are expected to take in a plan, so that additive_ms() is a plan's expected time. */
void gaussian_times(const struct gaussian *g, struct segment_times *out);

/* The standard deviation of a plan's sum, in ms, and that of plans about their sums, as a share. */
double gaussian_sd(const struct gaussian *g, struct plan p);
double gaussian_misfit(const struct gaussian *g);

/* ---- model.c: regressor and classifier ------------------------------------------------------- */

struct model_options {
    uint64_t seed;
    double quantile; /* "high performance" is this fastest share of the training data: 0.1 */
};

/* Plans and their times.  Functions that take it borrow the arrays; of one that was filled free
 * them with model_data_release().  Repeats of a plan count as one row with the mean of their times,
 * and the order of rows changes nothing. */
struct model_data {
    int count;
    const struct plan *plans;
    const double *ms;
};
void model_data_release(struct model_data *d);

struct model;

/* STATUS_MODEL if there are fewer than 2 distinct plans or a time is not positive and finite.
 * times may be null, but with a few dozen rows they carry most of what can be known. */
int model_train(const struct model_options *options, const struct model_data *data,
                const struct segment_times *times, struct model **out, struct status *st);
void model_free(struct model *m);
SCOPED_CLOSE(model, model_free)

/* Writes for each plan its milliseconds and its probability of high performance. */
int model_predict(struct model *m, const struct plan *plans, int count,
                  const struct segment_times *times, double *ms, double *high, struct status *st);

/* The slowest time that counts as high performance. */
double model_threshold_ms(const struct model *m);

/* ---- validation.c: how good a model is ------------------------------------------------------- */

/* Figures on held-out plans: the model that predicts a plan has not seen it. */
struct model_report {
    int folds, count;   /* count: distinct plans */
    double spearman;    /* rank correlation of predicted and measured times */
    double top1_regret; /* measured time of the plan predicted fastest / of the fastest, less 1 */
    double auc;         /* of the classifier; NaN if all plans are of one class */
};

/* k-fold cross-validation; options->seed shuffles. */
int model_cross_validate(const struct model_options *options, const struct model_data *data,
                         const struct segment_times *times, int folds, struct model_report *out,
                         struct status *st);

/* ---- training_file.c: plans and times as text ---------------------------------------------------
 *
 * Each line is a value of 16 binary digits, blanks, and a time in ms; empty lines and # comments
 * are skipped.  An error is STATUS_USAGE, and its message starts with name:line.  Free *out
 * with model_data_release(). */
int model_data_parse(const char *name, const char *text, size_t len, struct model_data *out,
                     struct status *st);
/* Appends the data as such lines, with all digits of the times. */
void model_data_text(const struct model_data *d, struct buf *out);
