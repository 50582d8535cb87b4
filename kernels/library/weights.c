/* HuggingFace's names and shapes, and the library's: a table.  nn.Linear computes x @ weight^T, so
 * its matrices are transposed on the way. */
#include "weights.h"

#include "elements.h"
#include "safetensors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { WEIGHTS = 12 };
enum size { ONE, HIDDEN, FFN };

static const struct row {
    const char *name, *older; /* behind "encoder.layer.N."; older: before 2020; null: the same */
    int weight;               /* its place in struct encoder_weights */
    int part, parts;          /* which of how many equal parts of its columns */
    enum size in, out;        /* rows and columns of the part; in ONE: a vector */
} rows[] = {
    {"attention.self.query.weight", NULL, 0, 0, 3, HIDDEN, HIDDEN},
    {"attention.self.key.weight", NULL, 0, 1, 3, HIDDEN, HIDDEN},
    {"attention.self.value.weight", NULL, 0, 2, 3, HIDDEN, HIDDEN},
    {"attention.self.query.bias", NULL, 1, 0, 3, ONE, HIDDEN},
    {"attention.self.key.bias", NULL, 1, 1, 3, ONE, HIDDEN},
    {"attention.self.value.bias", NULL, 1, 2, 3, ONE, HIDDEN},
    {"attention.output.dense.weight", NULL, 2, 0, 1, HIDDEN, HIDDEN},
    {"attention.output.dense.bias", NULL, 3, 0, 1, ONE, HIDDEN},
    {"attention.output.LayerNorm.weight", "attention.output.LayerNorm.gamma", 4, 0, 1, ONE, HIDDEN},
    {"attention.output.LayerNorm.bias", "attention.output.LayerNorm.beta", 5, 0, 1, ONE, HIDDEN},
    {"intermediate.dense.weight", NULL, 6, 0, 1, HIDDEN, FFN},
    {"intermediate.dense.bias", NULL, 7, 0, 1, ONE, FFN},
    {"output.dense.weight", NULL, 8, 0, 1, FFN, HIDDEN},
    {"output.dense.bias", NULL, 9, 0, 1, ONE, HIDDEN},
    {"output.LayerNorm.weight", "output.LayerNorm.gamma", 10, 0, 1, ONE, HIDDEN},
    {"output.LayerNorm.bias", "output.LayerNorm.beta", 11, 0, 1, ONE, HIDDEN},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static size_t size_of(enum size s)
{
    const struct encoder_info *l = encoder_describe();
    return s == ONE ? 1 : s == FFN ? (size_t)l->ffn : (size_t)l->heads * (size_t)l->head_size;
}

/* A model with a head names its encoder "bert.encoder". */
static const struct safetensor *find(const struct safetensors *f, const char *name, int layer)
{
    static const char *const prefixes[] = {"", "bert."};
    const struct safetensor *t = NULL;
    char full[128];
    for (int i = 0; i < 2 && t == NULL && name != NULL; i++) {
        snprintf(full, sizeof(full), "%sencoder.layer.%d.%s", prefixes[i], layer, name);
        t = safetensors_find(f, full);
    }
    return t;
}

static const struct safetensor *find_row(const struct safetensors *f, const struct row *r,
                                         int layer)
{
    const struct safetensor *t = find(f, r->name, layer);
    return t != NULL ? t : find(f, r->older, layer);
}

static bool has_shape(const struct safetensor *t, size_t in, size_t out)
{
    return in == 1 ? t->dims == 1 && t->shape[0] == out
                   : t->dims == 2 && t->shape[0] == out && t->shape[1] == in;
}

/* Where the values' type is known; -1: it is none of these. */
static int dtype_of(const struct safetensor *t)
{
    return strcmp(t->dtype, "F32") == 0    ? ENCODER_FP32
           : strcmp(t->dtype, "F16") == 0  ? ENCODER_FP16
           : strcmp(t->dtype, "BF16") == 0 ? ENCODER_BF16
                                           : -1;
}

/* data (out, in) becomes columns part*out.. of to (in, parts*out). */
static void copy(const struct row *r, enum encoder_dtype dtype, const void *data, void *to)
{
    size_t in = size_of(r->in), out = size_of(r->out), columns = (size_t)r->parts * out;
    for (size_t i = 0; i < in; i++)
        for (size_t o = 0; o < out; o++)
            element_store(encoder_describe()->dtype, to, i * columns + (size_t)r->part * out + o,
                          element_load(dtype, data, o * in + i));
}

static int load_row(const struct safetensors *f, const struct row *r, int layer, void **arrays,
                    struct weights *w)
{
    size_t in = size_of(r->in), out = size_of(r->out);
    const struct safetensor *t = find_row(f, r, layer);
    if (t == NULL || !has_shape(t, in, out) || dtype_of(t) < 0) {
        snprintf(w->error, sizeof(w->error),
                 "layer %d: %s %s; expected %zu x %zu of F32, F16 or BF16", layer, r->name,
                 t == NULL                ? "is missing"
                 : !has_shape(t, in, out) ? "has another shape"
                                          : "has another type",
                 out, in);
        return -1;
    }
    size_t bytes = in * out * (size_t)r->parts * (size_t)encoder_describe()->element_bytes;
    void *data = malloc((size_t)(t->end - t->begin)); /* aligned, unlike the file's */
    if (arrays[r->weight] == NULL)
        arrays[r->weight] = malloc(bytes);
    if (data == NULL || arrays[r->weight] == NULL) {
        free(data);
        snprintf(w->error, sizeof(w->error), "out of memory");
        return -1;
    }
    memcpy(data, f->data + t->begin, (size_t)(t->end - t->begin));
    copy(r, (enum encoder_dtype)dtype_of(t), data, arrays[r->weight]);
    free(data);
    return 0;
}

static int load_layers(const struct safetensors *f, struct weights *w)
{
    while (find(f, rows[0].name, w->layers) != NULL)
        w->layers++;
    if (w->layers == 0) {
        snprintf(w->error, sizeof(w->error), "it has no tensor 'encoder.layer.0.%s'", rows[0].name);
        return -1;
    }
    w->list = calloc((size_t)w->layers, sizeof(*w->list));
    w->arrays = calloc((size_t)w->layers * WEIGHTS, sizeof(*w->arrays));
    if (w->list == NULL || w->arrays == NULL) {
        snprintf(w->error, sizeof(w->error), "out of memory");
        return -1;
    }
    for (int layer = 0; layer < w->layers; layer++) {
        void **a = w->arrays + (size_t)layer * WEIGHTS;
        for (int r = 0; r < ROWS; r++)
            if (load_row(f, &rows[r], layer, a, w) != 0)
                return -1;
        w->list[layer] = (struct encoder_weights){a[0], a[1], a[2], a[3], a[4],  a[5],
                                                  a[6], a[7], a[8], a[9], a[10], a[11]};
    }
    return 0;
}

int weights_load(const char *path, struct weights *out)
{
    struct safetensors f;
    *out = (struct weights){.layers = 0};
    int result = safetensors_open(path, &f);
    if (result == 0)
        result = load_layers(&f, out);
    else
        snprintf(out->error, sizeof(out->error), "%s", f.error);
    safetensors_close(&f);
    return result;
}

void weights_release(struct weights *w)
{
    for (int i = 0; i < w->layers * WEIGHTS && w->arrays != NULL; i++)
        free(w->arrays[i]);
    free(w->arrays);
    free(w->list);
    *w = (struct weights){.layers = 0};
}
