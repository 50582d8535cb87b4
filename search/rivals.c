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
