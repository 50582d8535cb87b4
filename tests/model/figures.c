/* Prints how well models trained on a few plans rank the rest of made-up workloads: the figures of
 * docs/search.md.  Usage: model_figures [WORKLOADS] */
#include "tests/made_up.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const int train_rows[] = {16, 48, 128, 200, 500};

static const struct kind {
    const char *name;
    enum feature_set features;
    bool segment_times; /* are they given? */
    bool sum_alone;     /* no model: the additive time itself */
} kinds[] = {
    {"bits", FEATURES_BITS, false, false},
    {"plan, no segment times", FEATURES_PLAN, false, false},
    {"plan", FEATURES_PLAN, true, false},
    {"sum of segments alone", FEATURES_PLAN, true, true},
};

struct figures {
    double spearman;
    double regret;       /* of the plan predicted fastest */
    double recall_best;  /* of the fastest 1 % among the 1 % predicted fastest */
    double recall_class; /* of the fastest 10 % among the 10 % of the highest probability */
};

/* The plans of a space that were not trained on, and what is predicted of them. */
struct rest {
    int count;
    const struct plan *plans;
    const double *truth;
    double ms[PLAN_SPACE], high[PLAN_SPACE];
};

static void predict_by_model(const struct measured_space *s, int rows, const struct kind *kind,
                             struct rest *r)
{
    const struct segment_times *times = kind->segment_times ? &s->times : NULL;
    struct model_options options = {.features = kind->features, .seed = 1, .quantile = 0.1};
    struct model_data data = {.count = rows, .plans = s->plans, .ms = s->ms};
    struct model *m = NULL;
    struct status st = STATUS_INIT;
    if (model_train(&options, &data, times, &m, &st) != 0 ||
        model_predict(m, r->plans, r->count, times, r->ms, r->high, &st) != 0) {
        fprintf(stderr, "model_figures: %s\n", st.message);
        exit(1);
    }
    model_free(m);
}

static void predict_by_sum(const struct measured_space *s, struct rest *r)
{
    for (int i = 0; i < r->count; i++) {
        r->ms[i] = additive_ms(&s->times, r->plans[i]);
        r->high[i] = -r->ms[i];
    }
}

/* How much of the lowest `share` by truth is in the lowest share by score times sign. */
static double recall(const double *truth, const double *score, double sign, int count, double share)
{
    double *signed_score = mem_alloc((size_t)count, sizeof(*signed_score));
    for (int i = 0; i < count; i++)
        signed_score[i] = sign * score[i];
    double true_limit = stats_quantile(truth, (size_t)count, share);
    double score_limit = stats_quantile(signed_score, (size_t)count, share);
    int wanted = 0, found = 0;
    for (int i = 0; i < count; i++) {
        wanted += truth[i] <= true_limit;
        found += truth[i] <= true_limit && signed_score[i] <= score_limit;
    }
    free(signed_score);
    return (double)found / wanted;
}

static struct figures judge(const struct rest *r)
{
    int chosen = 0, best = 0;
    for (int i = 1; i < r->count; i++) {
        if (r->ms[i] < r->ms[chosen])
            chosen = i;
        if (r->truth[i] < r->truth[best])
            best = i;
    }
    return (struct figures){
        .spearman = stats_spearman(r->ms, r->truth, (size_t)r->count),
        .regret = r->truth[chosen] / r->truth[best] - 1,
        .recall_best = recall(r->truth, r->ms, 1, r->count, 0.01),
        .recall_class = recall(r->truth, r->high, -1, r->count, 0.1),
    };
}

/* The mean over workloads 1..n. */
static struct figures mean_figures(const struct kind *kind, int rows, int workloads)
{
    static struct rest rest;
    struct figures mean = {.spearman = 0};
    for (int w = 1; w <= workloads; w++) {
        struct measured_space *s = made_up_measured((uint64_t)w);
        rest = (struct rest){
            .count = s->count - rows, .plans = s->plans + rows, .truth = s->true_ms + rows};
        if (kind->sum_alone)
            predict_by_sum(s, &rest);
        else
            predict_by_model(s, rows, kind, &rest);
        struct figures f = judge(&rest);
        mean.spearman += f.spearman / workloads;
        mean.regret += f.regret / workloads;
        mean.recall_best += f.recall_best / workloads;
        mean.recall_class += f.recall_class / workloads;
        free(s);
    }
    return mean;
}

int main(int argc, char **argv)
{
    int64_t workloads = 20;
    struct status st = STATUS_INIT;
    if (argc > 1 && number_parse("WORKLOADS", argv[1], 1, 1000, &workloads, &st) != 0) {
        fprintf(stderr, "model_figures: %s\n", st.message);
        return 2;
    }
    printf("%-22s  rows  spearman  regret %%  best 1 %%  class %%\n", "features");
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (size_t r = 0; r < ARRAY_LEN(train_rows); r++) {
            struct figures f = mean_figures(&kinds[k], train_rows[r], (int)workloads);
            printf("%-22s  %4d  %8.3f  %8.2f  %8.1f  %7.1f\n", kinds[k].name, train_rows[r],
                   f.spearman, 100 * f.regret, 100 * f.recall_best, 100 * f.recall_class);
            if (kinds[k].sum_alone) /* the number of rows changes nothing */
                break;
        }
    return 0;
}
