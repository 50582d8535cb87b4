#include "bench/oracle/oracle.h"

#include <assert.h>

enum {
    ARRAY_X = 15,
    ARRAYS_PER_LAYER = 16,
    PARALLEL_ELEMENTS = 1 << 17 /* with fewer, starting threads takes longer than drawing */
};
static_assert((int)WEIGHT_COUNT <= ARRAY_X && (int)ARRAY_X < ARRAYS_PER_LAYER, "x has its own");

/* n values around `middle`, at most `range` away. */
static void draw(enum dtype dtype, uint64_t seed, uint64_t array, double middle, double range,
                 int64_t n, float *out)
{
    uint64_t first = seed + (array << 40);
#pragma omp parallel for if (n > PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < n; i++) {
        double unit = (double)(splitmix64(first + (uint64_t)i) >> 11) * 0x1p-53;
        out[i] = element_round(dtype, (float)(middle + (2 * unit - 1) * range));
    }
}

void inputs_weight(const struct workload *w, uint64_t seed, bool notes, int layer,
                   enum weight_id id, float *out)
{
    bool around_1 = weights[id].draw == WEIGHT_ONE_PLUS_UNIFORM && !notes;
    uint64_t array = (uint64_t)layer * ARRAYS_PER_LAYER + id;
    draw(w->dtype, seed, array, around_1 ? 1 : 0, notes ? 0.4 : 0.05, weight_elements(id, w), out);
}

void inputs_x(const struct workload *w, uint64_t seed, float *out)
{
    draw(w->dtype, seed, ARRAY_X, 0, 0.4, tensor_elements(TENSOR_X, w), out);
}
