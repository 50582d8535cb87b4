#include "bench/oracle/oracle_int.h"
#include "bench/trained/trained.h"

#include <assert.h>
#include <stdlib.h>

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
    const struct weight *weight = &w->chain->weights[id];
    uint64_t array = (uint64_t)(weight->table ? 0 : layer) * ARRAYS_PER_LAYER + (uint64_t)id;
    int64_t n = weight_elements(id, w);
    if (weight->draw == WEIGHT_ROTATION) {
        rope_table(w, out);
        return;
    }
    if (in.trained != NULL && n > 0) {
        trained_read(in.trained, w, layer, id, out);
        for (int64_t i = 0; i < n; i++)
            out[i] = element_round(w->dtype, out[i]);
        return;
    }
    draw(weight->table ? DTYPE_FP32 : w->dtype, in.seed, array, weight_drawn(weight, in.ranges), n,
         out);
}

/* The norm of x that the operator whose output is carried to n has. */
static void normalise(const struct workload *w, const float *x, float *out)
{
    const int columns = workload_hidden(w);
    const int64_t rows = tensor_elements(TENSOR_X, w) / columns;
    enum function_id norm = tensor_op(w->chain, TENSOR_Y)->function;
#pragma omp parallel for if (rows * columns > PARALLEL_ELEMENTS)
    for (int64_t row = 0; row < rows; row++) {
        double *values = mem_alloc((size_t)columns, sizeof(*values));
        for (int c = 0; c < columns; c++)
            values[c] = x[row * columns + c];
        oracle_normalise(norm, values, columns, w->eps, values);
        for (int c = 0; c < columns; c++)
            out[row * columns + c] = element_round(w->dtype, (float)values[c]);
        free(values);
    }
}

void inputs_flow(const struct workload *w, struct inputs in, struct flow *out)
{
    flow_init(out, w);
    float *x = out->tensor[TENSOR_X], *n = out->tensor[TENSOR_N];
    draw(w->dtype, in.seed, ARRAY_X, (struct drawn){0, 0.4}, tensor_elements(TENSOR_X, w), x);
    if (n != NULL)
        normalise(w, x, n);
}

void flow_init(struct flow *f, const struct workload *w)
{
    *f = (struct flow){{NULL}};
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((chain_inputs(w->chain) & SET_OF(t)) != 0)
            f->tensor[t] = mem_alloc((size_t)tensor_elements(t, w), sizeof(*f->tensor[t]));
}

void flow_release(struct flow *f)
{
    for (int t = 0; t < TENSOR_COUNT; t++)
        free(f->tensor[t]);
    *f = (struct flow){{NULL}};
}
