#include "bench/trained/trained.h"

#include "kernels/library/weights.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct encoder_weights) == WEIGHT_COUNT * sizeof(void *),
              "both number the weights of a layer alike");

struct trained {
    char *path;
    struct safetensors file;
};

int trained_open(const char *path, struct trained **out, struct status *st)
{
    struct trained *t = mem_alloc(1, sizeof(*t));
    *out = NULL;
    t->path = realpath(path, NULL);
    if (t->path == NULL || safetensors_open(t->path, &t->file) != 0) {
        status_set(st, STATUS_USAGE, "--weights: cannot read '%s': %s", path,
                   t->path == NULL ? strerror(errno) : t->file.error);
        trained_close(t);
        return -1;
    }
    if (!utf8_is_valid(t->path)) { /* the worker gets it in JSON */
        status_set(st, STATUS_USAGE, "--weights: the path of '%s' is not UTF-8; name another",
                   path);
        trained_close(t);
        return -1;
    }
    *out = t;
    return 0;
}

void trained_close(struct trained *t)
{
    if (t == NULL)
        return;
    safetensors_close(&t->file);
    free(t->path);
    free(t);
}

/* fp32, which elements of F32, F16 and BF16 are exactly. */
static struct encoder_info sizes_of(const struct workload *w)
{
    return (struct encoder_info){.dtype = ENCODER_FP32,
                                 .element_bytes = sizeof(float),
                                 .heads = w->heads,
                                 .head_size = w->head_size,
                                 .ffn = w->ffn};
}

int trained_check(const struct trained *t, const struct workload *w, struct status *st)
{
    const struct encoder_info sizes = sizes_of(w);
    char error[WEIGHTS_ERROR];
    int layers = weights_layers(&t->file);
    if (layers < w->layers)
        return status_set(st, STATUS_USAGE,
                          "--weights: '%s' has %d layers of a BERT, and the workload has %d; give "
                          "--layers and the sizes of the model",
                          t->path, layers, w->layers);
    for (int i = 0; i < w->layers * WEIGHT_COUNT; i++)
        if (weights_read(&t->file, &sizes, i / WEIGHT_COUNT, i % WEIGHT_COUNT, NULL, error) != 0)
            return status_set(st, STATUS_USAGE, "--weights: '%s': %s; give the sizes of the model",
                              t->path, error);
    return 0;
}

const char *trained_path(const struct trained *t)
{
    return t->path;
}

char *trained_hash(const struct trained *t, char out[HASH_TEXT_SIZE])
{
    return hash_text(t->file.mapped, t->file.mapped_bytes, out);
}

void trained_read(const struct trained *t, const struct workload *w, int layer, enum weight_id id,
                  float *out)
{
    const struct encoder_info sizes = sizes_of(w);
    char error[WEIGHTS_ERROR];
    int result = weights_read(&t->file, &sizes, layer, (int)id, out, error);
    mem_checked(result == 0 ? out : NULL); /* after the check only memory can be short */
}
