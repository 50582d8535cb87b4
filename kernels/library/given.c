/* The weights of a model as they are given: anywhere, in the library's type or in fp32. */
#include "elements.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>

size_t encoder_weight_elements(int weight)
{
    const struct plan_weight *w = &encoder_layer_weights[weight];
    return w->name != NULL ? (size_t)w->elements : 0;
}

size_t encoder_weight_bytes(int weight)
{
    bool table = weight == ROPE || weight == SCORE_BIAS;
    return encoder_weight_elements(weight) *
           (table ? sizeof(float) : (size_t)encoder_library.element_bytes);
}

const void *encoder_given_weight(const struct encoder_model *m, int layer, int weight)
{
    const void *holder = weight < ROPE ? (const void *)&m->weights[layer] : m;
    return *(const void *const *)((const char *)holder + encoder_layer_weights[weight].at);
}

bool encoder_is_rounded(const struct encoder_model *m)
{
    return m->dtype == ENCODER_FP32 && encoder_library.element_bytes == 2;
}

static int read_bytes(const struct encoder_model *m, void *to, const void *from, size_t bytes)
{
    if (m->on_device != 0)
        return encoder_device_read(to, from, bytes);
    memcpy(to, from, bytes);
    return ENCODER_OK;
}

int encoder_read_weight(const struct encoder_model *m, int layer, int weight, void *to)
{
    const void *from = encoder_given_weight(m, layer, weight);
    const size_t n = encoder_weight_elements(weight);
    if (!encoder_is_rounded(m))
        return read_bytes(m, to, from, encoder_weight_bytes(weight));
    float *values = malloc(n * sizeof(*values));
    int status = values == NULL ? encoder_fail(ENCODER_NO_MEMORY, "out of memory")
                                : read_bytes(m, values, from, n * sizeof(*values));
    for (size_t i = 0; i < n && status == ENCODER_OK; i++)
        element_store(encoder_library.dtype, to, i, values[i]);
    free(values);
    return status;
}

int encoder_copy_weight(const struct encoder_model *m, int layer, int weight, void *to)
{
    const size_t bytes = encoder_weight_bytes(weight);
    if (!encoder_is_rounded(m))
        return encoder_device_copy(to, encoder_given_weight(m, layer, weight), bytes,
                                   m->on_device != 0);
    void *rounded = malloc(bytes);
    int status = rounded == NULL ? encoder_fail(ENCODER_NO_MEMORY, "out of memory")
                                 : encoder_read_weight(m, layer, weight, rounded);
    if (status == ENCODER_OK)
        status = encoder_device_copy(to, rounded, bytes, false);
    free(rounded);
    return status;
}
