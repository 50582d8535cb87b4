#include "search/search_int.h"

#include <math.h>

/* Floyd's sampling without replacement: Bentley, Floyd: A Sample of Brilliance, 1987. */
int random_propose(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st)
{
    (void)st;
    int count = max < c->space_count ? max : c->space_count;
    *out = (struct proposal){.expected_ms = NAN};
    for (int last = c->space_count - count; last < c->space_count; last++) {
        struct plan p = c->space[rng_below(c->rng, (uint32_t)last + 1)];
        if (proposal_has(out, p))
            p = c->space[last];
        out->plans[out->count++] = p;
    }
    return 0;
}

bool proposal_has(const struct proposal *p, struct plan plan)
{
    for (int i = 0; i < p->count; i++)
        if (plan_equal(p->plans[i], plan))
            return true;
    return false;
}
