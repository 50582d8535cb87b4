#include "model/model_int.h"

#include <math.h>
#include <stdlib.h>

/* The values below were chosen on made-up workloads with 16..500 rows, the usual search.  Halving
 * or doubling one of them moves the rank correlation of FEATURES_PLAN with segment times by at most
 * 0.01.  lambda counts in rows: a leaf of fewer rows hardly moves from the baseline, which is the
 * better guide if little was measured.  At that size "exact" costs no more than histograms, and no
 * sum of it depends on how rows are split. */

enum { DEFAULT_ROUNDS = 100 };

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

/* ln(additive ms) of each plan, NaN if unknown or not among the features; the caller frees. */
static double *log_additives(const struct model_options *o, const struct plan *plans, int count,
                             const struct segment_times *times)
{
    double *out = mem_alloc((size_t)count, sizeof(*out));
    for (int i = 0; i < count; i++) {
        bool wanted = o->features == FEATURES_PLAN && times != NULL;
        double ms = wanted ? additive_ms(times, plans[i]) : NAN;
        out[i] = ms > 0 && isfinite(ms) ? log(ms) : NAN;
    }
    return out;
}

/* ---- training -------------------------------------------------------------------------------- */

static struct matrix matrix_of(const struct model_options *o, const struct plan *plans, int count,
                               const struct segment_times *times)
{
    struct matrix x = {.rows = count, .columns = feature_count(o->features)};
    x.values = mem_alloc((size_t)count * (size_t)x.columns, sizeof(*x.values));
    for (int i = 0; i < count; i++)
        features_of(o->features, plans[i], times, x.values + (size_t)i * (size_t)x.columns);
    return x;
}

int model_check_options(const struct model_options *o, struct status *st)
{
    if (o->features != FEATURES_BITS && o->features != FEATURES_PLAN)
        return status_set(st, STATUS_USAGE, "feature set %d does not exist", (int)o->features);
    if (!(o->quantile > 0 && o->quantile < 1))
        return status_set(st, STATUS_USAGE,
                          "quantile %g is out of range; give a share between 0 and 1, such as 0.1",
                          o->quantile);
    if (o->rounds < 0)
        return status_set(st, STATUS_USAGE, "%d boosting rounds; give 1 or more, or 0 for %d",
                          o->rounds, DEFAULT_ROUNDS);
    return 0;
}

/* What both models of a model are trained on. */
struct lesson {
    struct model *model; /* its baseline is fitted */
    const struct model_data *data;
    const double *log_sum;    /* (data->count) */
    struct booster_task task; /* without parameters, target and margin */
};

static int train_regressor(void *ctx, struct status *st)
{
    const struct lesson *l = ctx;
    struct model *m = l->model;
    struct booster_task task = l->task;
    float *target = mem_alloc((size_t)l->data->count, sizeof(*target));
    for (int i = 0; i < l->data->count; i++)
        target[i] = (float)(log(l->data->ms[i]) - baseline_log_ms(&m->baseline, l->log_sum[i]));
    task.params = regressor_params;
    task.target = target;
    int result = booster_train(&task, &m->regressor, st);
    free(target);
    return result;
}

static int train_classifier(void *ctx, struct status *st)
{
    const struct lesson *l = ctx;
    struct model *m = l->model;
    struct booster_task task = l->task;
    size_t rows = (size_t)l->data->count;
    float *target = mem_alloc(rows, sizeof(*target)), *margin = mem_alloc(rows, sizeof(*margin));
    m->threshold_ms = stats_quantile(l->data->ms, rows, m->options.quantile);
    for (size_t i = 0; i < rows; i++) {
        target[i] = l->data->ms[i] <= m->threshold_ms;
        margin[i] = (float)baseline_log_odds(&m->baseline, l->log_sum[i], m->threshold_ms);
    }
    task.params = classifier_params;
    task.target = target;
    task.margin = margin;
    int result = booster_train(&task, &m->classifier, st);
    free(target);
    free(margin);
    return result;
}

static int train(struct model *m, const struct model_data *d, const struct segment_times *times,
                 struct status *st)
{
    double *log_sum = log_additives(&m->options, d->plans, d->count, times);
    struct lesson l = {
        .model = m,
        .data = d,
        .log_sum = log_sum,
        .task = {.x = matrix_of(&m->options, d->plans, d->count, times),
                 .seed = m->options.seed,
                 .rounds = m->options.rounds},
    };
    m->baseline = baseline_fit(d, log_sum);
    int result = run_both(train_regressor, train_classifier, &l, st);
    free(l.task.x.values);
    free(log_sum);
    return result;
}

int model_train(const struct model_options *options, const struct model_data *data,
                const struct segment_times *times, struct model **out, struct status *st)
{
    struct model_data d;
    *out = NULL;
    if (model_check_options(options, st) != 0 || data_distinct(data, &d, st) != 0)
        return -1;

    struct model *m = mem_alloc(1, sizeof(*m));
    int result = -1;
    m->options = *options;
    if (m->options.rounds == 0)
        m->options.rounds = DEFAULT_ROUNDS;
    if (d.count < 2)
        status_set(st, STATUS_MODEL,
                   "%d distinct plans are too few to learn from; give measured times of 2 or more",
                   d.count);
    else
        result = train(m, &d, times, st);
    model_data_release(&d);
    if (result == 0)
        *out = m;
    else
        model_free(m);
    return result;
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

/* The distinct plans among those asked for: all 65536 values name only 16640. */
struct question {
    int count;
    struct plan *plans;
    int *row; /* of each plan asked for: its index in plans */
};

static struct question question_of(const struct plan *plans, int count)
{
    struct question q = {.plans = mem_alloc((size_t)count, sizeof(*q.plans)),
                         .row = mem_alloc((size_t)count, sizeof(*q.row))};
    int *place = mem_alloc(PLAN_KEYS, sizeof(*place)); /* 1 + row; 0: not seen */
    for (int i = 0; i < count; i++) {
        int *at = &place[plan_key(plans[i])];
        if (*at == 0) {
            q.plans[q.count] = plans[i];
            *at = ++q.count;
        }
        q.row[i] = *at - 1;
    }
    free(place);
    return q;
}

/* Rows, and the answer of each model's trees for each row: null if nobody asks. */
struct rows_asked {
    struct model *model;
    struct matrix x;
    float *regressor, *classifier;
};

static int ask_regressor(void *ctx, struct status *st)
{
    const struct rows_asked *a = ctx;
    return a->regressor == NULL ? 0 : booster_predict(a->model->regressor, a->x, a->regressor, st);
}

static int ask_classifier(void *ctx, struct status *st)
{
    const struct rows_asked *a = ctx;
    return a->classifier == NULL ? 0
                                 : booster_predict(a->model->classifier, a->x, a->classifier, st);
}

int model_predict(struct model *m, const struct plan *plans, int count,
                  const struct segment_times *times, double *ms, double *high, struct status *st)
{
    struct question q = question_of(plans, count);
    double *log_sum = log_additives(&m->options, q.plans, q.count, times);
    size_t rows = (size_t)q.count;
    struct rows_asked a = {
        .model = m,
        .x = matrix_of(&m->options, q.plans, q.count, times),
        .regressor = ms != NULL ? mem_alloc(rows, sizeof(float)) : NULL,
        .classifier = high != NULL ? mem_alloc(rows, sizeof(float)) : NULL,
    };
    int result = count > 0 ? run_both(ask_regressor, ask_classifier, &a, st) : 0;
    for (int i = 0; i < count && result == 0; i++) {
        int row = q.row[i];
        if (ms != NULL)
            ms[i] = (float)exp(a.regressor[row] + baseline_log_ms(&m->baseline, log_sum[row]));
        if (high != NULL) {
            double odds = baseline_log_odds(&m->baseline, log_sum[row], m->threshold_ms);
            high[i] = (float)(1 / (1 + exp(-(a.classifier[row] + odds))));
        }
    }
    free(a.regressor);
    free(a.classifier);
    free(log_sum);
    free(a.x.values);
    free(q.plans);
    free(q.row);
    return result;
}
