#include "model/model_int.h"

/* The values below were chosen on made-up workloads with 16..500 rows, the usual search.  Halving
 * or doubling one of them moves the rank correlation with segment times by at most 0.01.  lambda
 * counts in rows: a leaf of fewer rows hardly moves from the baseline, which is the better guide if
 * little was measured.  At that size "exact" costs no more than histograms, and no sum of it
 * depends on how rows are split. */

enum { ROUNDS = 100 };

/* Learns ln(ms), not ms: held-out plans rank alike (rank correlations within 0.001), but a factor
 * means the same for a fast workload and a slow one, and no prediction is negative. */
static const struct booster_param regressor_params[] = {
    {"objective", "reg:squarederror"},
    {"base_score", "0"},
    {"tree_method", "exact"},
    {"eta", "0.1"},
    {"max_depth", "4"},
    {"min_child_weight", "1"},
    {"lambda", "10"},
    {"subsample", "0.8"},
    {"colsample_bytree", "0.5"},
    {NULL, NULL},
};

/* Smaller steps than the regressor's: the baseline's odds are good, and labels say little. */
static const struct booster_param classifier_params[] = {
    {"objective", "binary:logistic"},
    {"base_score", "0.5"},
    {"tree_method", "exact"},
    {"eta", "0.05"},
    {"max_depth", "4"},
    {"min_child_weight", "0.5"},
    {"lambda", "5"},
    {"subsample", "0.8"},
    {"colsample_bytree", "0.5"},
    {NULL, NULL},
};

/* ln(additive ms) of each plan, NaN if unknown; the caller frees. */
static double *log_additives(const struct plan *plans, int count, const struct segment_times *times)
{
    double *out = mem_alloc((size_t)count, sizeof(*out));
    for (int i = 0; i < count; i++) {
        double ms = times != NULL ? additive_ms(times, plans[i]) : NAN;
        out[i] = ms > 0 && isfinite(ms) ? log(ms) : NAN;
    }
    return out;
}

/* ---- training -------------------------------------------------------------------------------- */

/* A row for each plan; the caller frees. */
static float *features(const struct plan *plans, int count, const struct segment_times *times)
{
    float *out = mem_alloc((size_t)count * FEATURES, sizeof(*out));
    for (int i = 0; i < count; i++)
        features_of(plans[i], times, out + (size_t)i * FEATURES);
    return out;
}

static int check_options(const struct model_options *o, struct status *st)
{
    if (!(o->quantile > 0 && o->quantile < 1))
        return status_set(st, STATUS_USAGE,
                          "quantile %g is out of range; give a share between 0 and 1, such as 0.1",
                          o->quantile);
    return 0;
}

static int train_regressor(struct model *m, const struct model_data *d, const double *log_sum,
                           struct matrix x, struct status *st)
{
    SCOPED float *target = mem_alloc((size_t)d->count, sizeof(*target));
    for (int i = 0; i < d->count; i++)
        target[i] = (float)(log(d->ms[i]) - baseline_log_ms(&m->baseline, log_sum[i]));
    const struct booster_task task = {.params = regressor_params,
                                      .x = x,
                                      .target = target,
                                      .seed = m->options.seed,
                                      .rounds = ROUNDS};
    return booster_train(&task, &m->regressor, st);
}

static int train_classifier(struct model *m, const struct model_data *d, const double *log_sum,
                            struct matrix x, struct status *st)
{
    size_t rows = (size_t)d->count;
    SCOPED float *target = mem_alloc(rows, sizeof(*target));
    SCOPED float *margin = mem_alloc(rows, sizeof(*margin));
    m->threshold_ms = stats_quantile(d->ms, rows, m->options.quantile);
    for (size_t i = 0; i < rows; i++) {
        target[i] = d->ms[i] <= m->threshold_ms;
        margin[i] = (float)baseline_log_odds(&m->baseline, log_sum[i], m->threshold_ms);
    }
    const struct booster_task task = {.params = classifier_params,
                                      .x = x,
                                      .target = target,
                                      .margin = margin,
                                      .seed = m->options.seed,
                                      .rounds = ROUNDS};
    return booster_train(&task, &m->classifier, st);
}

static int train(struct model *m, const struct model_data *d, const struct segment_times *times,
                 struct status *st)
{
    SCOPED double *log_sum = log_additives(d->plans, d->count, times);
    SCOPED float *values = features(d->plans, d->count, times);
    const struct matrix x = {.values = values, .rows = d->count, .columns = FEATURES};
    m->baseline = baseline_fit(d, log_sum);
    return train_regressor(m, d, log_sum, x, st) != 0 ? -1 : train_classifier(m, d, log_sum, x, st);
}

int model_train(const struct model_options *options, const struct model_data *data,
                const struct segment_times *times, struct model **out, struct status *st)
{
    SCOPED_BY(model_data_release) struct model_data d = {.count = 0};
    *out = NULL;
    if (check_options(options, st) != 0 || data_distinct(data, &d, st) != 0)
        return -1;

    if (d.count < 2)
        return status_set(
            st, STATUS_MODEL,
            "%d distinct plans are too few to learn from; give measured times of 2 or more",
            d.count);
    struct model *m = mem_alloc(1, sizeof(*m));
    m->options = *options;
    if (train(m, &d, times, st) == 0) {
        *out = m;
        return 0;
    }
    model_free(m);
    return -1;
}

void model_free(struct model *m)
{
    if (m == NULL)
        return;
    booster_free(m->regressor);
    booster_free(m->classifier);
    free(m);
}

double model_threshold_ms(const struct model *m)
{
    return m->threshold_ms;
}

/* ---- prediction ------------------------------------------------------------------------------ */

int model_predict(struct model *m, const struct plan *plans, int count,
                  const struct segment_times *times, double *ms, double *high, struct status *st)
{
    if (count == 0)
        return 0;
    SCOPED double *log_sum = log_additives(plans, count, times);
    SCOPED float *values = features(plans, count, times);
    SCOPED float *trees = mem_alloc((size_t)count, sizeof(*trees));
    const struct matrix x = {.values = values, .rows = count, .columns = FEATURES};
    if (booster_predict(m->regressor, x, trees, st) != 0)
        return -1;
    for (int i = 0; i < count; i++)
        ms[i] = (float)exp(trees[i] + baseline_log_ms(&m->baseline, log_sum[i]));
    if (booster_predict(m->classifier, x, trees, st) != 0)
        return -1;
    for (int i = 0; i < count; i++) {
        double odds = baseline_log_odds(&m->baseline, log_sum[i], m->threshold_ms);
        high[i] = (float)(1 / (1 + exp(-(trees[i] + odds))));
    }
    return 0;
}
