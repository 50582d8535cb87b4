#include "bench/worker/worker_int.h"

#include <stdlib.h>
#include <string.h>

void reference_init(struct reference *r, const struct workload *w, struct inputs inputs)
{
    *r = (struct reference){.w = w, .inputs = inputs};
    r->x = mem_alloc((size_t)w->layers + 1, sizeof(*r->x));
    r->y = mem_alloc((size_t)w->layers, sizeof(*r->y));
    r->x[0] = mem_alloc((size_t)tensor_elements(TENSOR_X, w), sizeof(**r->x));
    inputs_x(w, inputs, r->x[0]);
}

void reference_release(struct reference *r)
{
    for (int l = 0; l < r->known; l++)
        free(r->y[l]);
    for (int l = 0; r->x != NULL && l <= r->known; l++)
        free(r->x[l]);
    if (r->known > 0)
        oracle_layer_release(&r->first);
    free(r->x);
    free(r->y);
    *r = (struct reference){0};
}

static void run_layer(struct reference *r, int layer, struct oracle_layer *out)
{
    float *weight[WEIGHT_COUNT];
    for (int i = 0; i < WEIGHT_COUNT; i++) {
        weight[i] = mem_alloc((size_t)weight_elements((enum weight_id)i, r->w), sizeof(**weight));
        inputs_weight(r->w, r->inputs, layer, (enum weight_id)i, weight[i]);
    }
    size_t n = (size_t)tensor_elements(TENSOR_X, r->w);
    double *x = mem_alloc(n, sizeof(*x));
    for (size_t i = 0; i < n; i++)
        x[i] = r->x[layer][i];
    oracle_layer_run(r->w, x, (const float *const *)weight, 0, out);
    free(x);
    for (int i = 0; i < WEIGHT_COUNT; i++)
        free(weight[i]);
}

void reference_need(struct reference *r, int layers, void (*beat)(void *ctx, int layer), void *ctx)
{
    size_t n = (size_t)tensor_elements(TENSOR_X, r->w);
    for (; r->known < layers; r->known++) {
        int l = r->known;
        struct oracle_layer later, *layer = l == 0 ? &r->first : &later;
        beat(ctx, l);
        run_layer(r, l, layer);
        r->y[l] = mem_alloc(n, sizeof(**r->y));
        memcpy(r->y[l], layer->tensor[TENSOR_Y], n * sizeof(**r->y));
        r->x[l + 1] = mem_alloc(n, sizeof(**r->x));
        for (size_t i = 0; i < n; i++)
            r->x[l + 1][i] = element_round(r->w->dtype, (float)r->y[l][i]);
        if (l > 0)
            oracle_layer_release(&later);
    }
}
