/* Prints how well models trained on n plans rank the rest of made-up workloads: the figures of
 * docs/model.md.  Usage: model_figures [WORKLOADS] */
#include "tests/model/space.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int train_rows[] = {16, 48, 128, 200, 500};

struct figures {
    double spearman, regret, recall, auc;
};

/* The values of `order` that belong to the lowest `share` of ms, as flags. */
static int lowest(const double *ms, int count, double share, bool *out)
{
    double limit = stats_quantile(ms, (size_t)count, share);
    int picked = 0;
    for (int i = 0; i < count; i++)
        picked += out[i] = ms[i] <= limit;
    return picked;
}

static double shared(const double *a, const double *b, int count, double share)
{
    bool *x = mem_alloc((size_t)count, sizeof(*x)), *y = mem_alloc((size_t)count, sizeof(*y));
    int of = lowest(a, count, share, x), both = 0;
    lowest(b, count, share, y);
    for (int i = 0; i < count; i++)
        both += x[i] && y[i];
    free(x);
    free(y);
    return (double)both / of;
}

/* Trains on the first n of the shuffled plans, judges on the true times of all others. */
static struct figures judge(const struct space *s, const uint16_t *order, int n,
                            enum feature_set features, const struct segment_times *times)
{
    int rest = s->count - n;
    unsigned *values = mem_alloc((size_t)s->count, sizeof(*values));
    double *ms = mem_alloc((size_t)s->count, sizeof(*ms));
    double *predicted = mem_alloc((size_t)rest, sizeof(*predicted));
    double *high = mem_alloc((size_t)rest, sizeof(*high));
    for (int i = 0; i < s->count; i++) {
        values[i] = order[i];
        ms[i] = i < n ? s->measured_ms[order[i]] : s->true_ms[order[i]];
    }
    struct model *m;
    struct status st = STATUS_INIT;
    struct model_options options = {.features = features, .seed = 1, .quantile = 0.1};
    struct model_data data = {.count = n, .values = values, .ms = ms};
    if (model_train(&options, &data, times, &m, &st) != 0 ||
        model_predict(m, values + n, rest, times, predicted, high, &st) != 0) {
        fprintf(stderr, "model_figures: %s\n", st.message);
        exit(1);
    }
    int chosen = 0;
    double best = INFINITY;
    for (int i = 0; i < rest; i++) {
        if (predicted[i] < predicted[chosen])
            chosen = i;
        best = fmin(best, ms[n + i]);
    }
    for (int i = 0; i < rest; i++)
        high[i] = -high[i];
    struct figures f = {
        .spearman = stats_spearman(predicted, ms + n, (size_t)rest),
        .regret = ms[n + chosen] / best - 1,
        .recall = shared(ms + n, predicted, rest, 0.01),
        .auc = shared(ms + n, high, rest, 0.1),
    };
    model_free(m);
    free(values);
    free(ms);
    free(predicted);
    free(high);
    return f;
}

int main(int argc, char **argv)
{
    int workloads = argc > 1 ? atoi(argv[1]) : 10;
    static const char *const names[] = {"bits", "plan, no segment times", "plan"};
    printf("features                rows  spearman  regret %%  recall %%  class %%\n");
    for (int kind = 0; kind < 3; kind++)
        for (size_t r = 0; r < ARRAY_LEN(train_rows); r++) {
            struct figures sum = {0};
            for (int w = 1; w <= workloads; w++) {
                struct space *s = space_new((uint64_t)w);
                uint16_t order[PLAN_SPACE];
                space_shuffle(s, (uint64_t)w + 1000, order);
                struct figures f =
                    judge(s, order, train_rows[r], kind == 0 ? FEATURES_BITS : FEATURES_PLAN,
                          kind == 2 ? &s->times : NULL);
                sum.spearman += f.spearman;
                sum.regret += f.regret;
                sum.recall += f.recall;
                sum.auc += f.auc;
                free(s);
            }
            printf("%-22s  %4d  %8.3f  %8.2f  %8.1f  %8.1f\n", names[kind], train_rows[r],
                   sum.spearman / workloads, 100 * sum.regret / workloads,
                   100 * sum.recall / workloads, 100 * sum.auc / workloads);
        }
    return 0;
}
