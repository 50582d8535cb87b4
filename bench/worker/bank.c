#include "bench/worker/worker_int.h"

#include <stdlib.h>
#include <string.h>

enum { LAST_TENSOR = TENSOR_COUNT - 1 };

/* Takes the memory that every plan needs, so that what only some need cannot take it first. */
static int reserve(struct bank *k, struct status *st)
{
    void *ignored;
    int result = bank_tensor(k, 0, TENSOR_X, &ignored, st);
    for (int l = 0; l < k->w->layers && result == 0; l++)
        result = bank_tensor(k, l, LAST_TENSOR, &ignored, st);
    for (int i = 0; i < k->w->layers * WEIGHT_COUNT && result == 0; i++)
        result = k->ops->alloc(k->device, weight_elements(i % WEIGHT_COUNT, k->w),
                               &k->weight[i / WEIGHT_COUNT][i % WEIGHT_COUNT], st);
    return result;
}

int bank_init(struct bank *k, const struct workload *w, const struct device_ops *on,
              struct device *d, struct inputs inputs, struct status *st)
{
    *k = (struct bank){.w = w, .ops = on, .device = d, .inputs = inputs};
    k->weight = mem_alloc((size_t)w->layers, sizeof(*k->weight));
    k->drawn = mem_alloc((size_t)w->layers, sizeof(*k->drawn));
    return reserve(k, st);
}

void bank_release(struct bank *k)
{
    if (k->ops == NULL)
        return;
    bank_trim(k, 0);
    for (int l = 0; l < k->w->layers; l++)
        for (int i = 0; i < WEIGHT_COUNT; i++)
            k->ops->free(k->device, k->weight[l][i]);
    k->ops->free(k->device, k->x);
    k->ops->free(k->device, k->flow[0]);
    k->ops->free(k->device, k->flow[1]);
    free(k->weight);
    free(k->drawn);
    free(k->values);
    *k = (struct bank){0};
}

uint16_t bank_held(const struct bank *k)
{
    uint16_t set = 0;
    for (int t = 0; t < TENSOR_COUNT; t++)
        set |= (uint16_t)((k->tensor[t] != NULL) << t);
    return set;
}

void bank_trim(struct bank *k, uint16_t keep)
{
    for (int t = 0; t < TENSOR_COUNT; t++) {
        if ((keep >> t & 1) != 0)
            continue;
        k->ops->free(k->device, k->tensor[t]);
        k->tensor[t] = NULL;
    }
}

/* Where the memory of a layer's tensor is noted down. */
static void **slot(struct bank *k, int layer, int t)
{
    if (t == TENSOR_X)
        return layer == 0 ? &k->x : &k->flow[(layer - 1) % 2];
    return t == LAST_TENSOR ? &k->flow[layer % 2] : &k->tensor[t];
}

int bank_tensor(struct bank *k, int layer, int t, void **out, struct status *st)
{
    void **memory = slot(k, layer, t);
    int result = 0;
    if (*memory == NULL)
        result = k->ops->alloc(k->device, tensor_elements(t, k->w), memory, st);
    *out = *memory;
    return result;
}

int bank_weight(struct bank *k, int layer, enum weight_id id, void **out, struct status *st)
{
    int result = 0;
    *out = k->weight[layer][id];
    if (!k->drawn[layer][id]) {
        int64_t elements = weight_elements(id, k->w);
        float *values = mem_alloc((size_t)elements, sizeof(*values));
        inputs_weight(k->w, k->inputs, layer, id, values);
        result = k->ops->upload(k->device, *out, values, elements, st);
        k->drawn[layer][id] = result == 0;
        free(values);
    }
    return result;
}

int bank_poison(struct bank *k, int layer, uint16_t set, struct status *st)
{
    int result = 0;
    for (int t = 0; t < TENSOR_COUNT && result == 0; t++) {
        void *memory;
        if ((set >> t & 1) == 0)
            continue;
        result = bank_tensor(k, layer, t, &memory, st);
        if (result == 0)
            result = k->ops->poison(k->device, memory, tensor_elements(t, k->w), st);
    }
    return result;
}

int bank_read(struct bank *k, int layer, int t, const float **out, struct status *st)
{
    int64_t n = tensor_elements(t, k->w);
    const void *stored;
    void *memory;
    *out = NULL;
    if (bank_tensor(k, layer, t, &memory, st) != 0 ||
        k->ops->view(k->device, memory, n, &stored, st) != 0)
        return -1;
    if (n > k->value_count) {
        k->values = mem_resize(k->values, (size_t)n, sizeof(*k->values));
        k->value_count = n;
    }
    elements_unpack(k->w->dtype, stored, n, k->values);
    *out = k->values;
    return 0;
}

int bank_feed(struct bank *k, int layer, const float *x, struct status *st)
{
    void *memory;
    if (layer == 0 && k->x_filled)
        return 0;
    if (bank_tensor(k, layer, TENSOR_X, &memory, st) != 0 ||
        k->ops->upload(k->device, memory, x, tensor_elements(TENSOR_X, k->w), st) != 0)
        return -1;
    k->x_filled = k->x_filled || layer == 0;
    return 0;
}

static int refill_x(struct bank *k, struct status *st)
{
    if (!k->x_filled)
        return 0;
    float *x = mem_alloc((size_t)tensor_elements(TENSOR_X, k->w), sizeof(*x));
    inputs_x(k->w, k->inputs, x);
    k->x_filled = false;
    int result = bank_feed(k, 0, x, st);
    free(x);
    return result;
}

int bank_refill(struct bank *k, struct status *st)
{
    int result = refill_x(k, st);
    for (int i = 0; i < k->w->layers * WEIGHT_COUNT && result == 0; i++) {
        int layer = i / WEIGHT_COUNT;
        enum weight_id id = (enum weight_id)(i % WEIGHT_COUNT);
        void *ignored;
        if (!k->drawn[layer][id])
            continue;
        k->drawn[layer][id] = false;
        result = bank_weight(k, layer, id, &ignored, st);
    }
    return result;
}
