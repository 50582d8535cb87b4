/* The guided strategy.  Signals that err in different ways share every batch:
 *
 * - The posterior over segments, from their times alone and the measured plans: the plan of the
 *   least expected sum.
 * - The sums of times alone, which no measured plan changes: where neighbours slow each other down,
 *   the first plans tell the posterior that the wrong segments are slow.
 * - The regressor learns what the sum leaves out, from the measured plans.
 * - The classifier learns the same of the fastest plans alone.
 *
 * The models make a quarter of the proposals from the second plan on, and are trained anew for each
 * batch. */
#include "search/strategy_int.h"

/* The models are asked about so many plans of the least sums: no other plan is among
 * the fastest. */
enum { ASK_MOST = 2048 };

struct guide {
    const struct strategy_context *c;
    struct proposal *out;
    bool *taken;                   /* (space_count) already in this proposal */
    struct segment_times expected; /* by the posterior */
    double *alone_ms;              /* (space_count) sums of times alone; NaN if unknown */
    double *sum_ms;                /* (space_count) expected; NaN if unknown */
    double below;                  /* plans of larger sums are not asked about */
    int sums;                      /* plans that were picked by a sum */
    double *key;                   /* (space_count) scratch */
    double *ms;   /* (space_count) by the regressor, NaN where not asked; null without a model */
    double *high; /* (space_count) of the classifier, likewise */
};

/* The free index of the smallest key, ties broken by the second key; -1 if every key is NaN. */
static int smallest(const struct guide *g, const double *key, const double *tie)
{
    int best = -1;
    double least = INFINITY;
    for (int i = 0; i < g->c->space_count; i++) {
        if (!(key[i] <= least) || g->taken[i]) /* a NaN is not <= */
            continue;
        if (best < 0 || key[i] < least || tie[i] < tie[best]) {
            best = i;
            least = key[i];
        }
    }
    return best;
}

/* By the expected sum and the sum of times alone, in turn. */
static int pick_sum(struct guide *g)
{
    int i = g->sums++ % 2 == 0 ? -1 : smallest(g, g->alone_ms, g->sum_ms);
    return i >= 0 ? i : smallest(g, g->sum_ms, g->sum_ms);
}

/* A regressor made of trees gives many plans the same time. */
static int pick_fast(struct guide *g)
{
    return g->ms != NULL ? smallest(g, g->ms, g->sum_ms) : -1;
}

static int pick_high(struct guide *g)
{
    for (int i = 0; i < g->c->space_count && g->high != NULL; i++)
        g->key[i] = -g->high[i];
    return g->high != NULL ? smallest(g, g->key, g->sum_ms) : -1;
}

static int pick_random(struct guide *g)
{
    int i = (int)rng_below(g->c->rng, (uint32_t)g->c->space_count);
    while (g->taken[i])
        i = (i + 1) % g->c->space_count;
    return i;
}

static int (*const pickers[SIGNAL_COUNT])(struct guide *g) = {
    [SIGNAL_SUM] = pick_sum,
    [SIGNAL_REGRESSOR] = pick_fast,
    [SIGNAL_CLASSIFIER] = pick_high,
    [SIGNAL_RULE] = pick_random,
};

/* A batch, in the order in which a small budget cuts it off: the models have a quarter of whatever
 * is left of it. */
static const enum signal batch[PROPOSAL_MAX] = {
    SIGNAL_SUM,        SIGNAL_REGRESSOR, SIGNAL_SUM, SIGNAL_SUM,
    SIGNAL_CLASSIFIER, SIGNAL_SUM,       SIGNAL_SUM, SIGNAL_SUM,
};

/* The index that a signal picks, or else the next one that can. */
static int pick(struct guide *g, enum signal *by)
{
    static const enum signal order[] = {SIGNAL_SUM, SIGNAL_REGRESSOR, SIGNAL_CLASSIFIER,
                                        SIGNAL_RULE};
    int i = pickers[*by](g);
    for (size_t k = 0; k < ARRAY_LEN(order) && i < 0; k++) {
        *by = order[k];
        i = pickers[*by](g);
    }
    return i;
}

static void fill(struct guide *g, int max)
{
    int count = max < g->c->space_count ? max : g->c->space_count;
    while (g->out->count < count) {
        enum signal by = batch[g->out->count];
        int i = pick(g, &by);
        g->taken[i] = true;
        g->out->by[g->out->count] = by;
        g->out->plans[g->out->count++] = g->c->space[i];
    }
}

/* The sum above which plans are not asked about. */
static double asked_below(const struct guide *g)
{
    int count = g->c->space_count;
    if (count <= ASK_MOST || isnan(g->sum_ms[0]))
        return INFINITY;
    memcpy(g->key, g->sum_ms, (size_t)count * sizeof(*g->key));
    qsort(g->key, (size_t)count, sizeof(*g->key), stats_order);
    return g->key[ASK_MOST];
}

/* The sums of times alone, and what the posterior expects. */
static void sum_segments(struct guide *g)
{
    const struct strategy_context *c = g->c;
    struct gaussian *posterior = posterior_of(c->history, c->segments);
    gaussian_times(posterior, &g->expected);
    free(posterior);
    for (int i = 0; i < c->space_count; i++) {
        g->alone_ms[i] = c->segments != NULL ? additive_ms(c->segments, c->space[i]) : NAN;
        g->sum_ms[i] = additive_ms(&g->expected, c->space[i]);
    }
    g->below = asked_below(g);
}

/* Predicts the plans of the least sums. */
static int ask(struct guide *g, struct model *model, const struct segment_times *times,
               struct status *st)
{
    int space_count = g->c->space_count, count = 0;
    SCOPED struct plan *plans = mem_alloc((size_t)space_count, sizeof(*plans));
    SCOPED double *ms = mem_alloc((size_t)space_count, sizeof(*ms));
    SCOPED double *high = mem_alloc((size_t)space_count, sizeof(*high));
    g->ms = mem_alloc((size_t)space_count, sizeof(*g->ms));
    g->high = mem_alloc((size_t)space_count, sizeof(*g->high));
    for (int i = 0; i < space_count; i++)
        if (!(g->sum_ms[i] >= g->below))
            plans[count++] = g->c->space[i];
    int result = model_predict(model, plans, count, times, ms, high, st);
    for (int i = 0, k = 0; i < space_count; i++) {
        bool asked = !(g->sum_ms[i] >= g->below);
        g->ms[i] = asked ? ms[k] : NAN;
        g->high[i] = asked ? high[k] : NAN;
        k += asked;
    }
    return result;
}

/* Trains on all plans that gave a time: the bound of a censored plan shows that it is slow.  Leaves
 * g->ms null if there are too few. */
static int learn(struct guide *g, struct status *st)
{
    const struct strategy_context *c = g->c;
    const struct segment_times *times = c->segments != NULL ? c->segments : &g->expected;
    SCOPED_BY(model_data_release) struct model_data data = training_of(c->history);
    SCOPED_BY(model_free_at) struct model *model = NULL;
    const struct model_options options = {.seed = c->seed, .quantile = c->quantile};
    if (data.count < 2)
        return 0;
    return model_train(&options, &data, times, &model, st) != 0 ? -1 : ask(g, model, times, st);
}

static double expected_ms(const struct guide *g)
{
    double fastest = INFINITY;
    for (int i = 0; i < g->c->space_count; i++) {
        fastest = fmin(fastest, g->sum_ms[i]); /* fmin ignores NaN */
        if (g->ms != NULL)
            fastest = fmin(fastest, g->ms[i]);
    }
    return isfinite(fastest) ? fastest : NAN;
}

int guided_propose(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st)
{
    *out = (struct proposal){.expected_ms = NAN};
    struct guide g = {.c = c, .out = out};
    g.taken = mem_alloc((size_t)c->space_count, sizeof(*g.taken));
    g.alone_ms = mem_alloc((size_t)c->space_count, sizeof(*g.alone_ms));
    g.sum_ms = mem_alloc((size_t)c->space_count, sizeof(*g.sum_ms));
    g.key = mem_alloc((size_t)c->space_count, sizeof(*g.key));
    sum_segments(&g);
    int result = learn(&g, st);
    if (result == 0) {
        out->expected_ms = expected_ms(&g);
        fill(&g, max);
    }
    free(g.taken);
    free(g.alone_ms);
    free(g.sum_ms);
    free(g.key);
    free(g.ms);
    free(g.high);
    return result;
}
