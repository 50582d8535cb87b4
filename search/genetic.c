/* A genetic search: a child takes each boundary from one of two parents, which are the faster ones
 * of a few drawn from the fittest plans, and some boundaries change at random. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>

enum { POPULATION = 24, TOURNAMENT = 3, TRIES = 64 };
static const double mutation = 1.0 / (BOUNDARY_COUNT + 1);

static int by_ms(const void *a, const void *b)
{
    const struct observation *x = a, *y = b;
    return x->outcome.ms != y->outcome.ms ? (x->outcome.ms > y->outcome.ms ? 1 : -1)
                                          : (int)plan_key(x->plan) - (int)plan_key(y->plan);
}

/* The plans that ran, fastest first; the caller frees them. */
static struct observation *fittest(const struct history *h, int *count)
{
    struct observation *out = mem_alloc((size_t)h->count + 1, sizeof(*out));
    *count = 0;
    for (int i = 0; i < h->count; i++)
        if (h->items[i].outcome.status == TRIAL_OK)
            out[(*count)++] = h->items[i];
    qsort(out, (size_t)*count, sizeof(*out), by_ms);
    return out;
}

/* The population is sorted: the smallest index of a few is the fastest plan. */
static struct plan parent(struct rng *r, const struct observation *population, int count)
{
    uint32_t best = rng_below(r, (uint32_t)count);
    for (int i = 1; i < TOURNAMENT; i++) {
        uint32_t other = rng_below(r, (uint32_t)count);
        best = other < best ? other : best;
    }
    return population[best].plan;
}

static struct plan child(struct rng *r, const struct observation *population, int count)
{
    struct plan a = parent(r, population, count), b = parent(r, population, count);
    uint16_t from_b = (uint16_t)rng_below(r, 1U << BOUNDARY_COUNT), flip = 0;
    for (int i = 0; i < BOUNDARY_COUNT; i++)
        flip |= (uint16_t)((rng_unit(r) < mutation ? 1U : 0U) << i);
    bool handwritten = (rng_below(r, 2) == 0 ? a : b).handwritten != (rng_unit(r) < mutation);
    return plan_of((uint16_t)(((a.fused & ~from_b) | (b.fused & from_b)) ^ flip), handwritten);
}

int genetic_propose(const struct strategy_context *c, int max, struct proposal *out,
                    struct status *st)
{
    int count, ran;
    struct observation *population = fittest(c->history, &ran);
    bool *open = open_keys(c);
    (void)st;
    *out = (struct proposal){.expected_ms = NAN};
    count = ran < POPULATION ? ran : POPULATION;
    /* The first population is drawn uniformly. */
    for (int i = 0; ran >= POPULATION && i < TRIES * max && out->count < max; i++) {
        struct plan p = child(c->rng, population, count);
        if (open[plan_key(p)] && !proposal_has(out, p))
            out->plans[out->count++] = p;
    }
    free(open);
    free(population);
    proposal_fill(c, max, out);
    return 0;
}
