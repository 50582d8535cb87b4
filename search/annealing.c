/* Simulated annealing: a walk over plans that differ by one boundary or by the hand-written flag.
 * A step to a slower plan is taken with a probability that falls with its loss and with time.
 * Kirkpatrick, Gelatt, Vecchi: Optimization by Simulated Annealing, 1983.
 *
 * The walk is read from the history, so the strategy keeps no state. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>

/* The loss that a step takes with probability 1/e: at first, and how it falls with each plan. */
static const double first_loss = 0.1, cooling = 0.97, last_loss = 0.002;

static bool accepts(double loss, double temperature, uint64_t seed, int step)
{
    struct rng r = {splitmix64(seed ^ (uint64_t)step)};
    return loss <= 0 || rng_unit(&r) < exp(-loss / temperature);
}

/* Where the walk is; false: nothing has run. */
static bool where(const struct strategy_context *c, struct plan *out)
{
    const struct history *h = c->history;
    double ms = NAN, temperature = first_loss;
    for (int i = 0; i < h->count; i++) {
        const struct outcome *o = &h->items[i].outcome;
        if (o->status == TRIAL_OK &&
            (isnan(ms) || accepts(o->ms / ms - 1, temperature, c->seed, i))) {
            ms = o->ms;
            *out = h->items[i].plan;
        }
        temperature = fmax(last_loss, cooling * temperature);
    }
    return !isnan(ms);
}

static struct plan neighbour(struct plan p, int change)
{
    return change < BOUNDARY_COUNT ? plan_of((uint16_t)(p.fused ^ 1U << change), p.handwritten)
                                   : plan_of(p.fused, !p.handwritten);
}

/* One plan at a time: where the walk goes next depends on it. */
int annealing_propose(const struct strategy_context *c, int max, struct proposal *out,
                      struct status *st)
{
    struct plan at = {.fused = 0}, open[BOUNDARY_COUNT + 1];
    uint32_t count = 0;
    (void)max;
    (void)st;
    *out = (struct proposal){.expected_ms = NAN};
    if (where(c, &at)) {
        bool *is_open = open_keys(c);
        for (int change = 0; change <= BOUNDARY_COUNT; change++) {
            struct plan p = neighbour(at, change);
            if (is_open[plan_key(p)])
                open[count++] = p;
        }
        free(is_open);
    }
    if (count > 0)
        out->plans[out->count++] = open[rng_below(c->rng, count)];
    proposal_fill(c, 1, out);
    return 0;
}
