#include "search/search_int.h"

#include <string.h>

const struct strategy strategies[] = {
    {"guided", "a posterior over segments, regressor and classifier propose together",
     guided_propose},
    {"additive", "the smallest sums over segments, in their order", additive_propose},
    {"xgb", "regressor and classifier alone", xgb_propose},
    {"random", "plans drawn uniformly", random_propose},
    {"annealing", "a walk that steps to slower plans ever more rarely", annealing_propose},
    {"genetic", "children of the fastest plans", genetic_propose},
    {"reward", "boundaries drawn by what they have earned", reward_propose},
};
const char *const signal_names[SIGNAL_COUNT] = {
    [SIGNAL_NONE] = "none",
    [SIGNAL_RULE] = "rule",
    [SIGNAL_SUM] = "sum",
    [SIGNAL_REGRESSOR] = "regressor",
    [SIGNAL_CLASSIFIER] = "classifier",
};

const int strategy_count = ARRAY_LEN(strategies);

const struct strategy *strategy_find(const char *name)
{
    for (int i = 0; i < strategy_count; i++)
        if (strcmp(strategies[i].name, name) == 0)
            return &strategies[i];
    return NULL;
}

/* ---- what strategies share ------------------------------------------------------------------- */

bool proposal_has(const struct proposal *p, struct plan plan)
{
    for (int i = 0; i < p->count; i++)
        if (plan_equal(p->plans[i], plan))
            return true;
    return false;
}

/* Floyd's sampling without replacement: Bentley, Floyd: A Sample of Brilliance, 1987.  What was
 * proposed before may be drawn again, and counts as drawn only once. */
void proposal_fill(const struct strategy_context *c, int max, struct proposal *out)
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

bool *open_keys(const struct strategy_context *c)
{
    bool *open = mem_alloc(PLAN_KEYS, sizeof(*open));
    for (int i = 0; i < c->space_count; i++)
        open[plan_key(c->space[i])] = true;
    return open;
}
