#include "model/model_int.h"

#include <math.h>
#include <stdlib.h>

static const double best_share = 0.01; /* of struct model_report's recall_best */

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

/* Rows by ascending score; free it. */
static struct scored *ordered(const double *scores, int count)
{
    struct scored *order = mem_alloc((size_t)count, sizeof(*order));
    for (int i = 0; i < count; i++)
        order[i] = (struct scored){scores[i], i};
    qsort(order, (size_t)count, sizeof(*order), by_score);
    return order;
}

/* Deals rows to folds, each group of neighbours in time at random, so that every fold holds fast
 * and slow plans alike: else the models of folds differ by what is missing, and figures over all
 * folds say that models mislead where they know nothing. */
static void deal(const struct dataset *d, int folds, uint64_t seed, int *fold)
{
    struct scored *order = ordered(d->ms, d->count);
    struct rng r = {seed};
    int *cards = mem_alloc((size_t)folds, sizeof(*cards)), left = 0;
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
    free(order);
}

/* What models that had not seen a plan say of it: all (data.count). */
struct held_out {
    struct dataset data;
    int *fold; /* which model has not seen the plan */
    double *ms, *high;
};

/* The rows to train on and to predict, for one fold. */
struct split {
    int train, test;       /* rows */
    struct plan *plans;    /* those to train on, then those to predict */
    double *ms;            /* of those to train on */
    double *told, *chance; /* of those to predict */
};

static void split_release(struct split *s)
{
    free(s->plans);
    free(s->ms);
    free(s->told);
    free(s->chance);
}

static struct split split_of(const struct held_out *h, int fold)
{
    size_t count = (size_t)h->data.count;
    struct split s = {
        .plans = mem_alloc(count, sizeof(*s.plans)),
        .ms = mem_alloc(count, sizeof(*s.ms)),
        .told = mem_alloc(count, sizeof(*s.told)),
        .chance = mem_alloc(count, sizeof(*s.chance)),
    };
    for (int i = 0; i < h->data.count; i++)
        if (h->fold[i] != fold) {
            s.plans[s.train] = h->data.plans[i];
            s.ms[s.train++] = h->data.ms[i];
        }
    for (int i = 0; i < h->data.count; i++)
        if (h->fold[i] == fold)
            s.plans[s.train + s.test++] = h->data.plans[i];
    return s;
}

static int predict_fold(const struct model_options *options, struct held_out *h,
                        const struct segment_times *times, int fold, struct status *st)
{
    struct split s = split_of(h, fold);
    struct model_data rest = {.count = s.train, .plans = s.plans, .ms = s.ms};
    struct model *m = NULL;
    int result = model_train(options, &rest, times, &m, st);
    if (result == 0)
        result = model_predict(m, s.plans + s.train, s.test, times, s.told, s.chance, st);
    for (int i = 0, at = 0; i < h->data.count && result == 0; i++)
        if (h->fold[i] == fold) {
            h->ms[i] = s.told[at];
            h->high[i] = s.chance[at++];
        }
    model_free(m);
    split_release(&s);
    return result;
}

/* Flags the k rows of the lowest scores; free it. */
static bool *lowest(const double *scores, int count, int k)
{
    struct scored *order = ordered(scores, count);
    bool *flags = mem_alloc((size_t)count, sizeof(*flags));
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
    h.fold = mem_alloc((size_t)count, sizeof(*h.fold));
    if (result == 0)
        deal(&h.data, folds, options->seed, h.fold);
    for (int fold = 0; fold < folds && result == 0; fold++)
        result = predict_fold(options, &h, times, fold, st);
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
    free(h.fold);
    dataset_release(&h.data);
    return result;
}
