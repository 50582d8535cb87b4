/* The inputs of a layer, drawn, and the layer computed from them. */
#ifndef FUSEPLAN_TESTS_LAYER_INPUTS_H
#define FUSEPLAN_TESTS_LAYER_INPUTS_H

#include "bench/oracle/oracle.h"
#include "tests/suite.h"

/* The input and the weights of a layer. */
struct layer_inputs {
    double *x;
    float *weight[WEIGHT_COUNT];
};

static inline struct layer_inputs layer_inputs_draw(const struct workload *w, struct inputs inputs,
                                                    int layer)
{
    int64_t n = tensor_elements(TENSOR_X, w);
    struct layer_inputs in = {.x = mem_alloc((size_t)n, sizeof(*in.x))};
    float *x = mem_alloc((size_t)n, sizeof(*x));
    inputs_x(w, inputs, x);
    for (int64_t i = 0; i < n; i++)
        in.x[i] = x[i];
    free(x);
    for (int id = 0; id < WEIGHT_COUNT; id++) {
        in.weight[id] = mem_alloc((size_t)weight_elements((enum weight_id)id, w), sizeof(float));
        inputs_weight(w, inputs, layer, (enum weight_id)id, in.weight[id]);
    }
    return in;
}

static inline void layer_inputs_release(struct layer_inputs *in)
{
    free(in->x);
    for (int id = 0; id < WEIGHT_COUNT; id++)
        free(in->weight[id]);
}

static inline void layer_inputs_run(const struct workload *w, const struct layer_inputs *in,
                                    int threads, struct oracle_layer *out)
{
    oracle_layer_run(w, in->x, (const float *const *)in->weight, threads, out);
}

#endif
