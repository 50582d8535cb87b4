#include "search/search_int.h"

#include <string.h>

const struct strategy strategies[] = {
    {"guided", "regressor, classifier and the sum over segments propose together", guided_propose},
    {"random", "plans drawn uniformly", random_propose},
};
const int strategy_count = ARRAY_LEN(strategies);

const struct strategy *strategy_find(const char *name)
{
    for (int i = 0; i < strategy_count; i++)
        if (strcmp(strategies[i].name, name) == 0)
            return &strategies[i];
    return NULL;
}
