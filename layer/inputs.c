#include "layer/layer.h"

#include <math.h>

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
    const double factor = w->rope_factor > 0 ? w->rope_factor : 1, theta = factor * w->rope_theta;
    const double first = pow(factor, -2.0 / w->head_size);
    for (int s = 0; s < w->seq_len; s++)
        for (int c = 0; c < w->head_size / 2; c++) {
            double angle = s * (first * pow(theta, -2.0 * c / w->head_size));
            *out++ = (float)cos(angle);
            *out++ = (float)sin(angle);
        }
}
