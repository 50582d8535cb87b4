#include "model/model_int.h"

#include <math.h>
#include <stdlib.h>

static const double best_share = 0.01; /* of struct model_report's recall_best */

/* What models that had not seen a plan say of it: all (count). */
struct held_out {
    struct dataset data; /* shuffled */
    double *ms, *high;
};

static void shuffle(struct dataset *d, uint64_t seed)
{
    struct rng r = {seed};
    for (int i = d->count - 1; i > 0; i--) {
        uint32_t j = rng_below(&r, (uint32_t)i + 1);
        unsigned value = d->values[i];
        double ms = d->ms[i];
        d->values[i] = d->values[j];
        d->ms[i] = d->ms[j];
        d->values[j] = value;
        d->ms[j] = ms;
    }
}

/* Trains on all rows but first..last-1, and predicts those. */
static int predict_fold(const struct model_options *options, const struct held_out *h,
                        const struct segment_times *times, int first, int last, struct status *st)
{
    int count = 0;
    unsigned *values = mem_alloc((size_t)h->data.count, sizeof(*values));
    double *ms = mem_alloc((size_t)h->data.count, sizeof(*ms));
    for (int i = 0; i < h->data.count; i++) {
        if (i >= first && i < last)
            continue;
        values[count] = h->data.values[i];
        ms[count++] = h->data.ms[i];
    }
    struct model_data rest = {.count = count, .values = values, .ms = ms};
    struct model *m = NULL;
    int result = model_train(options, &rest, times, &m, st);
    if (result == 0)
        result = model_predict(m, h->data.values + first, last - first, times, h->ms + first,
                               h->high + first, st);
    model_free(m);
    free(values);
    free(ms);
    return result;
}

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

/* Flags the k rows of the lowest scores. */
static bool *lowest(const double *scores, int count, int k)
{
    struct scored *order = mem_alloc((size_t)count, sizeof(*order));
    bool *flags = mem_alloc((size_t)count, sizeof(*flags));
    for (int i = 0; i < count; i++)
        order[i] = (struct scored){scores[i], i};
    qsort(order, (size_t)count, sizeof(*order), by_score);
    for (int i = 0; i < k; i++)
        flags[order[i].row] = true;
    free(order);
    return flags;
}

static double recall_best(const struct held_out *h)
{
    int count = h->data.count, k = (int)ceil(best_share * count), found = 0;
    bool *truly = lowest(h->data.ms, count, k), *chosen = lowest(h->ms, count, k);
    for (int i = 0; i < count; i++)
        found += truly[i] && chosen[i];
    free(truly);
    free(chosen);
    return (double)found / k;
}

static double top1_regret(const struct held_out *h)
{
    int chosen = 0, best = 0;
    for (int i = 1; i < h->data.count; i++) {
        if (h->ms[i] < h->ms[chosen])
            chosen = i;
        if (h->data.ms[i] < h->data.ms[best])
            best = i;
    }
    return h->data.ms[chosen] / h->data.ms[best] - 1;
}

/* The chance that a plan of high performance scores above another one; NaN with one class only. */
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
    if (dataset_init(data, &h.data, st) != 0)
        return -1;
    int count = h.data.count, result = check_folds(count, folds, st);
    h.ms = mem_alloc((size_t)count, sizeof(*h.ms));
    h.high = mem_alloc((size_t)count, sizeof(*h.high));
    shuffle(&h.data, options->seed);
    for (int fold = 0; fold < folds && result == 0; fold++) {
        int first = (int)((int64_t)count * fold / folds);
        int last = (int)((int64_t)count * (fold + 1) / folds);
        result = predict_fold(options, &h, times, first, last, st);
    }
    if (result == 0)
        *out = (struct model_report){
            .folds = folds,
            .count = count,
            .spearman = stats_spearman(h.ms, h.data.ms, (size_t)count),
            .top1_regret = top1_regret(&h),
            .auc = area_under_curve(&h, options->quantile),
            .recall_best = recall_best(&h),
        };
    free(h.ms);
    free(h.high);
    dataset_release(&h.data);
    return result;
}
