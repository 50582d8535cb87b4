#include "search/search_int.h"

#include <math.h>

int random_propose(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st)
{
    (void)st;
    *out = (struct proposal){.expected_ms = NAN};
    proposal_fill(c, max, out);
    return 0;
}
