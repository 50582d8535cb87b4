/* The strategies that `guided` is compared with. */
#include "search/strategy_int.h"

/* ---- what they share ------------------------------------------------------------------------ */

static bool proposal_has(const struct proposal *p, struct plan plan)
{
    for (int i = 0; i < p->count; i++)
        if (plan_equal(p->plans[i], plan))
            return true;
    return false;
}

/* Adds plans drawn uniformly, each once, until there are max or the space has no more.
 *
 * Floyd's sampling without replacement: Bentley, Floyd: A Sample of Brilliance, 1987.  What was
 * proposed before may be drawn again, and counts as drawn only once. */
static void proposal_fill(const struct strategy_context *c, int max, struct proposal *out)
{
    int count = max < c->space_count ? max : c->space_count;
    for (int last = c->space_count - (count - out->count); out->count < count; last++) {
        struct plan p = c->space[rng_below(c->rng, (uint32_t)last + 1)];
        if (proposal_has(out, p))
            p = c->space[last];
        while (proposal_has(out, p)) /* it was proposed before the draws */
            p = c->space[rng_below(c->rng, (uint32_t)c->space_count)];
        out->plans[out->count++] = p;
    }
}

/* Which plans may be proposed, by their keys; the caller frees. */
static bool *open_keys(const struct strategy_context *c)
{
    bool *open = mem_alloc(PLAN_KEYS, sizeof(*open));
    for (int i = 0; i < c->space_count; i++)
        open[plan_key(c->space[i])] = true;
    return open;
}

/* ---- random ---------------------------------------------------------------------------------- */

int random_propose(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st)
{
    (void)st;
    *out = (struct proposal){.expected_ms = NAN};
    proposal_fill(c, max, out);
    return 0;
}

/* ---- additive -------------------------------------------------------------------------------- */

/* The plans of the smallest sums of their segments' times, in this order.  Where sums are not
 * known, plans drawn uniformly follow. */
int additive_propose(const struct strategy_context *c, int max, struct proposal *out,
                     struct status *st)
{
    (void)st;
    SCOPED double *sum = mem_alloc((size_t)c->space_count, sizeof(*sum));
    int count = max < c->space_count ? max : c->space_count;
    *out = (struct proposal){.expected_ms = NAN};
    for (int i = 0; i < c->space_count; i++)
        sum[i] = c->segments != NULL ? additive_ms(c->segments, c->space[i]) : NAN;
    while (out->count < count) {
        int best = -1;
        for (int i = 0; i < c->space_count; i++)
            if (!isnan(sum[i]) && (best < 0 || sum[i] < sum[best]))
                best = i;
        if (best < 0)
            break;
        sum[best] = NAN;
        out->plans[out->count++] = c->space[best];
    }
    proposal_fill(c, count, out);
    return 0;
}

/* ---- xgb: the models alone -------------------------------------------------------------------
 *
 * Half of a batch are the plans that the regressor predicts to be fastest, half those that the
 * classifier is surest of. */

/* Plans drawn uniformly, before the models learn. */
enum { LEARN_FROM = 12 };

static void add_smallest(const struct strategy_context *c, double *key, struct proposal *out)
{
    int best = -1;
    for (int i = 0; i < c->space_count; i++)
        if (!isnan(key[i]) && (best < 0 || key[i] < key[best]) && !proposal_has(out, c->space[i]))
            best = i;
    if (best >= 0)
        out->plans[out->count++] = c->space[best];
}

static int propose_by_models(const struct strategy_context *c, const struct model_data *data,
                             int max, struct proposal *out, struct status *st)
{
    SCOPED_BY(model_free_at) struct model *model = NULL;
    SCOPED double *ms = mem_alloc((size_t)c->space_count, sizeof(*ms));
    SCOPED double *slow = mem_alloc((size_t)c->space_count, sizeof(*slow));
    const struct model_options options = {.seed = c->seed, .quantile = c->quantile};
    if (model_train(&options, data, c->segments, &model, st) != 0 ||
        model_predict(model, c->space, c->space_count, c->segments, ms, slow, st) != 0)
        return -1;
    for (int i = 0; i < c->space_count; i++) {
        slow[i] = -slow[i]; /* the surest of high performance is the smallest */
        out->expected_ms = i == 0 ? ms[i] : fmin(out->expected_ms, ms[i]);
    }
    int count = max < c->space_count ? max : c->space_count;
    while (out->count < count)
        add_smallest(c, out->count % 2 == 0 ? ms : slow, out);
    return 0;
}

int xgb_propose(const struct strategy_context *c, int max, struct proposal *out, struct status *st)
{
    SCOPED_BY(model_data_release) struct model_data data = training_of(c->history);
    *out = (struct proposal){.expected_ms = NAN};
    if (data.count >= LEARN_FROM)
        return propose_by_models(c, &data, max, out, st);
    proposal_fill(c, max, out);
    return 0;
}

/* ---- annealing -------------------------------------------------------------------------------
 *
 * A walk over plans that differ by one boundary or by the hand-written flag.  A step to a slower
 * plan is taken with a probability that falls with its loss and with time.  Kirkpatrick, Gelatt,
 * Vecchi: Optimization by Simulated Annealing, 1983.  The walk is read from the history, so the
 * strategy keeps no state. */

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
        SCOPED bool *is_open = open_keys(c);
        for (int change = 0; change <= BOUNDARY_COUNT; change++) {
            struct plan p = neighbour(at, change);
            if (is_open[plan_key(p)])
                open[count++] = p;
        }
    }
    if (count > 0)
        out->plans[out->count++] = open[rng_below(c->rng, count)];
    proposal_fill(c, 1, out);
    return 0;
}

/* ---- reward ----------------------------------------------------------------------------------
 *
 * The search of the first version, as it was meant: each boundary has a probability of being fused,
 * plans are drawn by these, and each measured plan moves them: towards itself if it is among the
 * faster plans so far, away from itself if not. */

enum { CHOICES = BOUNDARY_COUNT + 1, PLANS_TRIED = 256 };

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
static void learn_rewards(const struct history *h, double probability[CHOICES])
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
    SCOPED bool *open = open_keys(c);
    (void)st;
    *out = (struct proposal){.expected_ms = NAN};
    learn_rewards(c->history, probability);
    for (int i = 0; i < PLANS_TRIED * max && out->count < max; i++) {
        uint16_t fused = 0;
        for (int k = 0; k < BOUNDARY_COUNT; k++)
            fused |= (uint16_t)((rng_unit(c->rng) < probability[k] ? 1U : 0U) << k);
        struct plan p = plan_of(fused, rng_unit(c->rng) < probability[BOUNDARY_COUNT]);
        if (open[plan_key(p)] && !proposal_has(out, p))
            out->plans[out->count++] = p;
    }
    proposal_fill(c, max, out);
    return 0;
}
