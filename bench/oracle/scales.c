#include "bench/oracle/oracle_int.h"

static int input_of(const struct chain *c, int gemm)
{
    return c->ops[chain_gemm(c, gemm)].input;
}

static float scale_of(const struct workload *w, int t, const float *values)
{
    return e4m3_input_scale(e4m3_largest(values, tensor_elements(t, w)));
}

void scales_of_layer(const struct workload *w, const struct flow *in,
                     const struct oracle_results *layer, float (*out)[GEMM_COUNT])
{
    for (int g = 0; g < GEMM_COUNT; g++) {
        const int t = input_of(w->chain, g), from = chain_handed_on_as(w->chain, t);
        const float of_layers = scale_of(w, t, layer->tensor[from]);
        for (int l = 0; l < w->layers; l++)
            out[l][g] = l % 2 == 0 ? of_layers : 2 * of_layers;
        if (from != t) /* layer 0 gets what no layer has handed on */
            out[0][g] = scale_of(w, t, in->tensor[t]);
    }
}

static void compute(const struct workload *w, struct inputs in, struct calibration *out)
{
    const struct workload *first = workload_of_layer(w, 0);
    uint32_t tensors = 0;
    SCOPED_BY(flow_release) struct flow x;
    float *weight[WEIGHT_MAX];
    SCOPED_BY(oracle_results_release) struct oracle_results layer;
    for (int g = 0; g < GEMM_COUNT; g++)
        tensors |= SET_OF(chain_handed_on_as(w->chain, input_of(w->chain, g)));
    inputs_weights(w, in, 0, NULL, false, weight);
    inputs_flow(w, in, &x);
    SCOPED_BY(spans_release) struct spans all = spans_all(w);
    oracle_results_init(&layer, first, tensors, &all);
    const struct oracle_taker taker = oracle_results_taker(&layer);
    oracle_layer_run(first, &x, (const float *const *)weight, &all, NULL, 0, &taker);
    scales_of_layer(w, &x, &layer, out->scale);
    weights_release(weight);
}

static void read_drawn(const void *ctx, const struct workload *w, int layer, int id, float *out)
{
    inputs_weight(w, *(const struct inputs *)ctx, layer, id, out);
}

void scales_draw(const struct workload *w, struct inputs in, struct calibration *out)
{
    *out = (struct calibration){
        .layers = w->layers,
        .model = mem_alloc(FINGERPRINT_SIZE, 1),
        .scale = mem_alloc((size_t)w->layers, sizeof(*out->scale)),
    };
    weights_fingerprint(w, read_drawn, &in, out->model);
    compute(w, in, out);
}
