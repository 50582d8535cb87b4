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
        out[i] = (float)(from.middle + (2 * unit - 1) * from.range);
    }
    elements_round(dtype, out, n, out);
}

void inputs_weight(const struct workload *of, struct inputs in, int layer, int id, float *out)
{
    const struct workload *w = workload_of_layer(of, layer);
    const struct weight *weight = &w->chain->weights[id];
    uint64_t array = (uint64_t)(weight->table ? 0 : layer) * ARRAYS_PER_LAYER + (uint64_t)id;
    int64_t n = weight_elements(id, w);
    if (weight->draw == WEIGHT_ROTATION) {
        rope_table(w, out);
        return;
    }
    if (in.trained != NULL && n > 0) {
        trained_read(in.trained, w, layer, id, out);
        if (!weight->table)
            elements_round(w->dtype, out, n, out);
        return;
    }
    draw(weight->table ? DTYPE_FP32 : w->dtype, in.seed, array, weight_drawn(weight, in.ranges), n,
         out);
}

void inputs_weights(const struct workload *of, struct inputs in, int layer,
                    const struct rounding *rounding, bool by_column, float *weight[WEIGHT_MAX])
{
    const struct workload *w = workload_of_layer(of, layer);
    const struct chain *c = w->chain;
    for (int id = 0; id < WEIGHT_MAX; id++) {
        weight[id] = mem_alloc((size_t)weight_elements(id, w), sizeof(**weight));
        inputs_weight(w, in, layer, id, weight[id]);
    }
    for (int g = 0; g < GEMM_COUNT && rounding != NULL; g++) {
        const int id = c->ops[chain_gemm(c, g)].weight[ROLE_MATRIX];
        if (rounding->scale[g] > 0)
            e4m3_round_weight(weight[id], dim_size(c->weights[id].rows, w),
                              dim_size(c->weights[id].cols, w), by_column);
    }
}

void weights_release(float *weight[WEIGHT_MAX])
{
    for (int id = 0; id < WEIGHT_MAX; id++)
        free(weight[id]);
}

void flow_normalise(const struct workload *w, struct inputs in, struct flow *f)
{
    const int columns = workload_hidden(w);
    const int64_t rows = tensor_elements(TENSOR_X, w) / columns;
    const float *x = f->tensor[TENSOR_X];
    enum function_id norm = tensor_op(w->chain, TENSOR_Y)->function; /* which is carried to n */
    SCOPED float *gamma = mem_alloc((size_t)columns, sizeof(*gamma));
    SCOPED float *beta = mem_alloc((size_t)columns, sizeof(*beta));
    for (int c = 0; c < columns; c++)
        gamma[c] = 1;
    bool norms = in.trained == NULL || trained_first_norm(in.trained, w, gamma, beta);
#pragma omp parallel for if (rows * columns > PARALLEL_ELEMENTS)
    for (int64_t row = 0; row < rows; row++) {
        SCOPED double *values = mem_alloc((size_t)columns, sizeof(*values));
        for (int c = 0; c < columns; c++)
            values[c] = x[row * columns + c];
        if (norms)
            oracle_normalise(norm, values, columns, w->eps, values);
        for (int c = 0; c < columns; c++)
            f->tensor[TENSOR_N][row * columns + c] =
                element_round(w->dtype, (float)(values[c] * gamma[c] + beta[c]));
    }
}

void inputs_flow(const struct workload *w, struct inputs in, struct flow *out)
{
    flow_init(out, w);
    draw(w->dtype, in.seed, ARRAY_X, (struct drawn){0, 0.4}, tensor_elements(TENSOR_X, w),
         out->tensor[TENSOR_X]);
    if (out->tensor[TENSOR_N] != NULL)
        flow_normalise(w, in, out);
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
