#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>

/* The plans of the smallest sums of their segments' times, in this order.  Where sums are not
 * known, plans drawn uniformly follow. */
int additive_propose(const struct strategy_context *c, int max, struct proposal *out,
                     struct status *st)
{
    (void)st;
    double *sum = mem_alloc((size_t)c->space_count, sizeof(*sum));
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
    free(sum);
    proposal_fill(c, count, out);
    return 0;
}
