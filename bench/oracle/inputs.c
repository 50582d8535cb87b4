#include "bench/oracle/oracle_int.h"
#include "bench/trained/trained.h"

#include <assert.h>

enum { ARRAY_X = 15, ARRAYS_PER_LAYER = 16 };
static_assert((int)WEIGHT_MAX <= ARRAY_X && (int)ARRAY_X < ARRAYS_PER_LAYER, "x has its own");

static void draw(enum dtype dtype, uint64_t seed, uint64_t array, struct drawn from, int64_t n,
                 float *out)
{
    uint64_t first = seed + (array << 40);
#pragma omp parallel for if (n > PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < n; i++) {
        double unit = (double)(splitmix64(first + (uint64_t)i) >> 11) * 0x1p-53;
        out[i] = element_round(dtype, (float)(from.middle + (2 * unit - 1) * from.range));
    }
}

void inputs_weight(const struct workload *w, struct inputs in, int layer, int id, float *out)
{
    uint64_t array = (uint64_t)layer * ARRAYS_PER_LAYER + (uint64_t)id;
    int64_t n = weight_elements(id, w);
    if (in.trained != NULL) {
        trained_read(in.trained, w, layer, id, out);
        for (int64_t i = 0; i < n; i++)
            out[i] = element_round(w->dtype, out[i]);
        return;
    }
    draw(w->dtype, in.seed, array, weight_drawn(&w->chain->weights[id], in.ranges), n, out);
}

void inputs_x(const struct workload *w, struct inputs in, float *out)
{
    draw(w->dtype, in.seed, ARRAY_X, (struct drawn){0, 0.4}, tensor_elements(TENSOR_X, w), out);
}
