/* The guided strategy.  Three signals that err in different ways share every batch:
 *
 * - The additive time needs no measured plan, but knows nothing of what one segment leaves in the
 *   caches for the next.
 * - The regressor learns from the measured plans what the additive time leaves out.
 * - The classifier is least sure of the plan whose measurement teaches most.
 *
 * A random plan far from all measured ones guards against errors that all three share.  Both models
 * are trained anew for each batch. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>

/* Fewer plans than this teach a model nothing: until then additive times and spread-out plans share
 * the batches. */
enum { LEARN_FROM = 12 };

/* A spread-out plan is, of so many random ones, the one farthest from all others. */
enum { SPREAD_DRAWS = 64 };

/* So many measured plans, those of the smallest additive times, calibrate the additive time near
 * the optimum. */
enum { CALIBRATE_ON = 16 };

struct guide {
    const struct strategy_context *c;
    struct proposal *out;
    bool *taken;         /* (space_count) already in this proposal */
    double *additive_ms; /* (space_count) scaled to the plan's time; NaN if unknown */
    double *ms;          /* (space_count) by the regressor; null without a model */
    double *sureness;    /* (space_count) of the classifier, 0..0.5; null without a model */
};

/* The free index of the smallest key, ties broken by the second key; -1 if every key is NaN. */
static int smallest(const struct guide *g, const double *key, const double *tie)
{
    int best = -1;
    for (int i = 0; i < g->c->space_count; i++) {
        if (g->taken[i] || isnan(key[i]))
            continue;
        if (best < 0 || key[i] < key[best] || (key[i] == key[best] && tie[i] < tie[best]))
            best = i;
    }
    return best;
}

static int pick_additive(const struct guide *g)
{
    return smallest(g, g->additive_ms, g->additive_ms);
}

/* A regressor made of trees gives many plans the same time. */
static int pick_fast(const struct guide *g)
{
    return smallest(g, g->ms, g->additive_ms);
}

static int pick_doubtful(const struct guide *g)
{
    return smallest(g, g->sureness, g->ms);
}

/* The number of boundaries that two plans cut differently. */
static int distance(struct plan a, struct plan b)
{
    return __builtin_popcount(a.fused ^ b.fused);
}

static int nearest_known(const struct guide *g, struct plan p)
{
    int nearest = BOUNDARY_COUNT;
    for (int i = 0; i < g->c->history->count; i++) {
        int d = distance(p, g->c->history->items[i].plan);
        nearest = d < nearest ? d : nearest;
    }
    for (int i = 0; i < g->out->count; i++) {
        int d = distance(p, g->out->plans[i]);
        nearest = d < nearest ? d : nearest;
    }
    return nearest;
}

static int pick_spread(const struct guide *g)
{
    int best = -1, best_distance = -1;
    for (int draw = 0; draw < SPREAD_DRAWS; draw++) {
        int i = (int)rng_below(g->c->rng, (uint32_t)g->c->space_count);
        int d = g->taken[i] ? -1 : nearest_known(g, g->c->space[i]);
        if (d > best_distance) {
            best = i;
            best_distance = d;
        }
    }
    return best;
}

static int pick_first(const struct guide *g)
{
    int i = 0;
    while (g->taken[i])
        i++;
    return i;
}

typedef int picker(const struct guide *g);

/* A batch, in the order in which a small budget cuts it off. */
static picker *const before_learning[PROPOSAL_MAX] = {
    pick_additive, pick_spread, pick_additive, pick_spread,
    pick_additive, pick_spread, pick_additive, pick_spread,
};
static picker *const after_learning[PROPOSAL_MAX] = {
    pick_fast,   pick_additive, pick_doubtful, pick_fast,
    pick_spread, pick_fast,     pick_additive, pick_doubtful,
};

static void fill(struct guide *g, picker *const *pickers, int max)
{
    int count = max < g->c->space_count ? max : g->c->space_count;
    while (g->out->count < count) {
        int i = pickers[g->out->count](g);
        if (i < 0)
            i = pick_spread(g);
        if (i < 0)
            i = pick_first(g);
        g->taken[i] = true;
        g->out->plans[g->out->count++] = g->c->space[i];
    }
}

struct worth {
    double additive_ms, ratio;
};

static int by_additive(const void *a, const void *b)
{
    double x = ((const struct worth *)a)->additive_ms, y = ((const struct worth *)b)->additive_ms;
    return (x > y) - (x < y);
}

/* A plan's time over its additive time: the median over the CALIBRATE_ON measured plans of the
 * smallest additive times; 1 if there are none. */
static double calibrate(const struct strategy_context *c)
{
    const struct history *h = c->history;
    struct worth *known = mem_alloc((size_t)h->count + 1, sizeof(*known));
    size_t n = 0;
    for (int i = 0; i < h->count; i++) {
        double sum = additive_ms(c->segments, h->items[i].plan);
        if (h->items[i].outcome.status == TRIAL_OK && !isnan(sum))
            known[n++] = (struct worth){sum, h->items[i].outcome.ms / sum};
    }
    qsort(known, n, sizeof(*known), by_additive);
    double ratio[CALIBRATE_ON];
    for (size_t i = 0; i < n && i < CALIBRATE_ON; i++)
        ratio[i] = known[i].ratio;
    free(known);
    return n > 0 ? stats_median(ratio, n < CALIBRATE_ON ? n : CALIBRATE_ON).median : 1;
}

static void sum_segments(struct guide *g)
{
    const struct strategy_context *c = g->c;
    double scale = c->segments != NULL ? calibrate(c) : 1;
    for (int i = 0; i < c->space_count; i++)
        g->additive_ms[i] =
            c->segments != NULL ? scale * additive_ms(c->segments, c->space[i]) : NAN;
}

/* Trains on all plans that gave a time: the bound of a censored plan shows that it is slow.  Leaves
 * g->ms null if there are too few. */
static int learn(struct guide *g, struct status *st)
{
    const struct strategy_context *c = g->c;
    struct model_data data = training_of(c->history);
    struct model *model = NULL;
    int result = 0;
    if (data.count < LEARN_FROM)
        goto out;
    result = -1;
    struct model_options options = {
        .features = FEATURES_PLAN, .seed = c->seed, .quantile = c->quantile};
    if (model_train(&options, &data, c->segments, &model, st) != 0)
        goto out;
    g->ms = mem_alloc((size_t)c->space_count, sizeof(*g->ms));
    g->sureness = mem_alloc((size_t)c->space_count, sizeof(*g->sureness));
    result = model_predict(model, c->space, c->space_count, c->segments, g->ms, g->sureness, st);
    for (int i = 0; i < c->space_count; i++)
        g->sureness[i] = fabs(g->sureness[i] - 0.5);
out:
    model_free(model);
    model_data_release(&data);
    return result;
}

static double expected_ms(const struct guide *g)
{
    double fastest = INFINITY;
    for (int i = 0; i < g->c->space_count; i++) {
        fastest = fmin(fastest, g->ms[i]);
        fastest = fmin(fastest, g->additive_ms[i]); /* fmin ignores NaN */
    }
    return fastest;
}

int guided_propose(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st)
{
    *out = (struct proposal){.expected_ms = NAN};
    struct guide g = {.c = c, .out = out};
    g.taken = mem_alloc((size_t)c->space_count, sizeof(*g.taken));
    g.additive_ms = mem_alloc((size_t)c->space_count, sizeof(*g.additive_ms));
    sum_segments(&g);
    int result = learn(&g, st);
    if (result == 0) {
        if (g.ms != NULL)
            out->expected_ms = expected_ms(&g);
        fill(&g, g.ms != NULL ? after_learning : before_learning, max);
    }
    free(g.taken);
    free(g.additive_ms);
    free(g.ms);
    free(g.sureness);
    return result;
}
