#include "search/strategy_int.h"

const struct strategy strategies[] = {
    {"guided", "a posterior over segments, regressor and classifier propose together",
     guided_propose},
    {"additive", "the smallest sums over segments, in their order", additive_propose},
    {"xgb", "regressor and classifier alone", xgb_propose},
    {"random", "plans drawn uniformly", random_propose},
    {"annealing", "a walk that steps to slower plans ever more rarely", annealing_propose},
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
