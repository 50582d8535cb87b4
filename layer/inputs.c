#include "layer/layer.h"
#include "layer/rotations.h"

const char *const ranges_names[RANGES_COUNT] = {
    [RANGES_UNIFORM] = "uniform", [RANGES_WIDE] = "wide"};

struct drawn weight_drawn(const struct weight *weight, enum ranges ranges)
{
    static const struct drawn drawn[] = {[WEIGHT_UNIFORM] = {0, 0.05},
                                         [WEIGHT_ONE_PLUS_UNIFORM] = {1, 0.05},
                                         [WEIGHT_HALF_UNIFORM] = {0, 0.5},
                                         [WEIGHT_ROTATION] = {0, 0}};
    return ranges == RANGES_WIDE && !weight->table ? (struct drawn){0, 0.4} : drawn[weight->draw];
}

void rope_table(const struct workload *w, float *out)
{
    fp_rotations(w->seq_len, w->head_size, w->rope_theta, w->rope_factor, out);
}
