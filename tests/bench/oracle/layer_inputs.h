/* The inputs of a layer, drawn, and the layer computed from them. */
#ifndef FUSEPLAN_TESTS_LAYER_INPUTS_H
#define FUSEPLAN_TESTS_LAYER_INPUTS_H

#include "bench/oracle/oracle.h"
#include "tests/suite.h"

/* The inputs and the weights of a layer. */
struct layer_inputs {
    struct flow flow; /* layer 0's, whichever the layer */
    float *weight[WEIGHT_MAX];
};

static inline struct layer_inputs layer_inputs_draw(const struct workload *w, struct inputs inputs,
                                                    int layer)
{
    struct layer_inputs in;
    inputs_flow(w, inputs, &in.flow);
    inputs_weights(w, inputs, layer, NULL, false, in.weight);
    return in;
}

static inline void layer_inputs_release(struct layer_inputs *in)
{
    flow_release(&in->flow);
    weights_release(in->weight);
}

/* All tensors of a layer, in the chain's layouts; padded rows hold 0. */
struct oracle_layer {
    const struct workload *w; /* borrowed */
    double *tensor[TENSOR_COUNT];
};

static inline void oracle_layer_take(void *ctx, int tensor, struct rows rows, const double *values)
{
    struct oracle_layer *l = ctx;
    int64_t columns = tensor_row_columns(l->w, tensor);
    memcpy(l->tensor[tensor] + rows.first * columns, values,
           (size_t)(rows.count * columns) * sizeof(*values));
}

/* rounding: null, or as of oracle_layer_run(). */
static inline void layer_inputs_round(const struct workload *w, const struct layer_inputs *in,
                                      const struct rounding *rounding, int threads,
                                      struct oracle_layer *out)
{
    const struct oracle_taker taker = {(1u << TENSOR_COUNT) - 1, oracle_layer_take, out};
    SCOPED_BY(spans_release) struct spans all = spans_all(w);
    out->w = w;
    for (int t = 0; t < TENSOR_COUNT; t++)
        out->tensor[t] = mem_alloc((size_t)tensor_elements(t, w), sizeof(double));
    oracle_layer_run(w, &in->flow, (const float *const *)in->weight, &all, rounding, threads,
                     &taker);
}

static inline void layer_inputs_run(const struct workload *w, const struct layer_inputs *in,
                                    int threads, struct oracle_layer *out)
{
    layer_inputs_round(w, in, NULL, threads, out);
}

static inline void oracle_layer_release(struct oracle_layer *l)
{
    for (int t = 0; t < TENSOR_COUNT; t++)
        free(l->tensor[t]);
}

#endif
