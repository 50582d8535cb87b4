/* All layers of a file. */
#include "weights_int.h"

#include <stdbool.h>
#include <stdlib.h>

enum { WEIGHTS = sizeof(struct encoder_weights) / sizeof(void *) };

/* What a library's layers are. */
static struct weights_as as_of(const struct encoder_info *info)
{
    return (struct weights_as){.dtype = info->dtype,
                               .heads = info->heads,
                               .head_size = info->head_size,
                               .hidden = info->hidden,
                               .ffn = info->ffn,
                               .layers = info->layers,
                               .seq_len = info->seq_len,
                               .functions = info->functions,
                               .rope_factor = info->rope_factor};
}

static bool has_shared(const struct weights_file *f, const struct weights_as *as, int weight)
{
    if (weight == WEIGHTS_BIAS_TABLE)
        return (as->functions & ENCODER_SCORE_BIAS) != 0;
    return (as->functions & ENCODER_PRE) != 0 && weights_has_first(f);
}

static int load(const struct weights_file *f, const struct weights_as *as, int layer, int weight,
                size_t element_bytes, void **out, struct weights *w)
{
    size_t bytes = weight == WEIGHTS_BIAS_TABLE ? sizeof(float) : element_bytes;
    *out = malloc(weights_elements(as, weight) * bytes);
    if (*out == NULL)
        return weights_refuse(w->error, "out of memory");
    return weights_read(f, as, layer, weight, *out, w->error);
}

static int load_layers(const struct weights_file *f, const struct weights_as *as,
                       size_t element_bytes, struct weights *w)
{
    if (weights_check(f, as, w->error) != 0)
        return -1;
    w->layers = weights_layers(f, as);
    w->list = calloc((size_t)w->layers, sizeof(*w->list));
    w->arrays = calloc((size_t)w->layers * WEIGHTS, sizeof(*w->arrays));
    if (w->list == NULL || w->arrays == NULL)
        return weights_refuse(w->error, "out of memory");
    for (int i = 0; i < WEIGHTS_SHARED; i++)
        if (has_shared(f, as, WEIGHTS_BIAS_TABLE + i) &&
            load(f, as, 0, WEIGHTS_BIAS_TABLE + i, element_bytes, &w->shared[i], w) != 0)
            return -1;
    for (int layer = 0; layer < w->layers; layer++) {
        void **a = w->arrays + (size_t)layer * WEIGHTS;
        for (int i = 0; i < WEIGHTS; i++)
            if (load(f, as, layer, i, element_bytes, &a[i], w) != 0)
                return -1;
        memcpy(&w->list[layer], a, sizeof(w->list[layer]));
    }
    return 0;
}

int weights_load(const char *path, const char *prefix, const struct encoder_info *as,
                 struct weights *out)
{
    struct weights_file f;
    const struct weights_as layers = as_of(as);
    *out = (struct weights){.layers = 0};
    int result = weights_open(path, prefix, &f);
    if (result == 0)
        result = load_layers(&f, &layers, (size_t)as->element_bytes, out);
    else
        weights_refuse(out->error, "%s", f.error);
    weights_close(&f);
    return result;
}

void weights_release(struct weights *w)
{
    for (int i = 0; i < w->layers * WEIGHTS && w->arrays != NULL; i++)
        free(w->arrays[i]);
    for (int i = 0; i < WEIGHTS_SHARED; i++)
        free(w->shared[i]);
    free(w->arrays);
    free(w->list);
    *w = (struct weights){.layers = 0};
}
