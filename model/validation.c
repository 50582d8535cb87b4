#include "model/model_int.h"

struct scored {
    double score;
    int row;
};

static int by_score(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    return x->row - y->row;
}

/* Assigns rows to folds: each group of neighbours in time is dealt at random, so that every fold
 * holds fast and slow plans alike.  Otherwise each fold's model would lack other plans, and figures
 * over all folds would blame the models for what they could not know. */
static void deal(const struct model_data *d, int folds, uint64_t seed, int *fold)
{
    SCOPED struct scored *order = mem_alloc((size_t)d->count, sizeof(*order));
    struct rng r = {seed};
    int *cards = mem_alloc((size_t)folds, sizeof(*cards)), left = 0;
    for (int i = 0; i < d->count; i++)
        order[i] = (struct scored){d->ms[i], i};
    qsort(order, (size_t)d->count, sizeof(*order), by_score);
    for (int i = 0; i < d->count; i++) {
        if (left == 0)
            while (left < folds) {
                cards[left] = left;
                left++;
            }
        uint32_t drawn = rng_below(&r, (uint32_t)left);
        fold[order[i].row] = cards[drawn];
        cards[drawn] = cards[--left];
    }
    free(cards);
}

/* The plans, and what a model that has not seen a plan says of it: all (data.count). */
struct held_out {
    struct model_data data;
    int *fold; /* whose model has not seen the plan */
    double *ms, *high;
};

/* Trains on the plans outside the fold and predicts the plans in it. */
static int predict_fold(const struct model_options *options, struct held_out *h,
                        const struct segment_times *times, int fold, struct status *st)
{
    int count = h->data.count;
    SCOPED struct plan *plans = mem_alloc((size_t)count, sizeof(*plans));
    SCOPED double *ms = mem_alloc((size_t)count, sizeof(*ms));
    SCOPED double *high = mem_alloc((size_t)count, sizeof(*high));
    struct model_data rest = {.plans = plans, .ms = ms};
    for (int i = 0; i < count; i++)
        if (h->fold[i] != fold) {
            plans[rest.count] = h->data.plans[i];
            ms[rest.count++] = h->data.ms[i];
        }
    SCOPED_BY(model_free_at) struct model *m = NULL;
    if (model_train(options, &rest, times, &m, st) != 0 ||
        model_predict(m, h->data.plans, count, times, ms, high, st) != 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (h->fold[i] == fold) {
            h->ms[i] = ms[i];
            h->high[i] = high[i];
        }
    return 0;
}

/* How much slower than the fastest plan the one predicted fastest is. */
static double regret_of_first(const struct held_out *h)
{
    int fastest = 0, predicted = 0;
    for (int i = 1; i < h->data.count; i++) {
        fastest = h->data.ms[i] < h->data.ms[fastest] ? i : fastest;
        predicted = h->ms[i] < h->ms[predicted] ? i : predicted;
    }
    return h->data.ms[predicted] / h->data.ms[fastest] - 1;
}

/* The chance that a plan of high performance scores above another plan; NaN if all plans are of one
 * class. */
static double area_under_curve(const struct held_out *h, double quantile)
{
    double threshold = stats_quantile(h->data.ms, (size_t)h->data.count, quantile);
    double won = 0, pairs = 0;
    for (int i = 0; i < h->data.count; i++) {
        if (h->data.ms[i] > threshold)
            continue;
        for (int j = 0; j < h->data.count; j++) {
            if (h->data.ms[j] <= threshold)
                continue;
            pairs++;
            won += h->high[i] > h->high[j] ? 1 : h->high[i] == h->high[j] ? 0.5 : 0;
        }
    }
    return pairs > 0 ? won / pairs : NAN;
}

static int check_folds(int count, int folds, struct status *st)
{
    if (folds < 2)
        return status_set(st, STATUS_USAGE, "%d folds; give 2 or more", folds);
    int largest = (count + folds - 1) / folds;
    if (folds > count || count - largest < 2)
        return status_set(st, STATUS_MODEL,
                          "%d distinct plans are too few for %d folds; give a plan for each fold "
                          "and 2 more than the largest holds",
                          count, folds);
    return 0;
}

int model_cross_validate(const struct model_options *options, const struct model_data *data,
                         const struct segment_times *times, int folds, struct model_report *out,
                         struct status *st)
{
    struct held_out h = {.ms = NULL};
    *out = (struct model_report){.folds = 0};
    if (data_distinct(data, &h.data, st) != 0)
        return -1;
    int count = h.data.count, result = check_folds(count, folds, st);
    h.ms = mem_alloc((size_t)count, sizeof(*h.ms));
    h.high = mem_alloc((size_t)count, sizeof(*h.high));
    h.fold = mem_alloc((size_t)count, sizeof(*h.fold));
    if (result == 0)
        deal(&h.data, folds, options->seed, h.fold);
    for (int i = 0; i < folds && result == 0; i++)
        result = predict_fold(options, &h, times, i, st);
    if (result == 0) {
        *out = (struct model_report){
            .folds = folds,
            .count = count,
            .spearman = stats_spearman(h.ms, h.data.ms, (size_t)count),
            .top1_regret = regret_of_first(&h),
            .auc = area_under_curve(&h, options->quantile),
        };
    }
    free(h.ms);
    free(h.high);
    free(h.fold);
    model_data_release(&h.data);
    return result;
}
