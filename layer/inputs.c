#include "layer/layer.h"

const char *const ranges_names[RANGES_COUNT] = {
    [RANGES_UNIFORM] = "uniform", [RANGES_WIDE] = "wide"};

struct drawn weight_drawn(const struct weight *weight, enum ranges ranges)
{
    if (ranges == RANGES_WIDE)
        return (struct drawn){0, 0.4};
    return (struct drawn){weight->draw == WEIGHT_ONE_PLUS_UNIFORM ? 1 : 0, 0.05};
}
