/* The reward search of the first version, as it was meant: each boundary has a probability of being
 * fused, plans are drawn by these, and each measured plan moves them: towards itself if it is among
 * the faster plans so far, away from itself if not. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>

enum { CHOICES = BOUNDARY_COUNT + 1, TRIES = 256 };

/* How far a plan moves the probabilities, how far from certainty they stay, the share of plans that
 * is rewarded, and what the others get. */
static const double step = 0.3, margin = 0.05, rewarded = 0.3, penalty = -0.02;

static bool chosen(struct plan p, int choice)
{
    return choice < BOUNDARY_COUNT ? (p.fused >> choice & 1) != 0 : p.handwritten;
}

/* The flag says something only of plans whose attention the hand-written operator can run. */
static bool says_something(struct plan p, int choice)
{
    return choice < BOUNDARY_COUNT ||
           plan_of(p.fused, true).handwritten != plan_of(p.fused, false).handwritten;
}

/* 1 for the fastest of the plans so far, falling to 0 for one slower than a share of them; below 0
 * for the others. */
static double reward_of(const struct history *h, int at)
{
    int faster = 0;
    for (int i = 0; i < at; i++)
        faster += h->items[i].outcome.status != TRIAL_FAILED &&
                  h->items[i].outcome.ms < h->items[at].outcome.ms;
    double rank = at > 0 ? (double)faster / at : 0.5;
    return rank < rewarded ? 1 - rank / rewarded : penalty;
}

/* Rewards the plans in the order in which they were measured. */
static void learn(const struct history *h, double probability[CHOICES])
{
    for (int k = 0; k < CHOICES; k++)
        probability[k] = 0.5;
    for (int i = 0; i < h->count; i++) {
        const struct observation *o = &h->items[i];
        if (o->outcome.status == TRIAL_FAILED)
            continue;
        double reward = reward_of(h, i);
        for (int k = 0; k < CHOICES; k++) {
            bool towards = chosen(o->plan, k) == (reward > 0);
            if (says_something(o->plan, k))
                probability[k] += step * fabs(reward) * ((towards ? 1 : 0) - probability[k]);
            probability[k] = fmin(1 - margin, fmax(margin, probability[k]));
        }
    }
}

int reward_propose(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st)
{
    double probability[CHOICES];
    bool *open = open_keys(c);
    (void)st;
    *out = (struct proposal){.expected_ms = NAN};
    learn(c->history, probability);
    for (int i = 0; i < TRIES * max && out->count < max; i++) {
        uint16_t fused = 0;
        for (int k = 0; k < BOUNDARY_COUNT; k++)
            fused |= (uint16_t)((rng_unit(c->rng) < probability[k] ? 1U : 0U) << k);
        struct plan p = plan_of(fused, rng_unit(c->rng) < probability[BOUNDARY_COUNT]);
        if (open[plan_key(p)] && !proposal_has(out, p))
            out->plans[out->count++] = p;
    }
    free(open);
    proposal_fill(c, max, out);
    return 0;
}
