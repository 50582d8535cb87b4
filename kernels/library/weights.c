/* HuggingFace's names and shapes, and the library's: a table.  nn.Linear computes x @ weight^T, so
 * its matrices are transposed on the way. */
#include "weights.h"

#include "elements.h"

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

static size_t size_of(const struct encoder_info *as, enum size s)
{
    return s == ONE ? 1 : s == FFN ? (size_t)as->ffn : (size_t)as->heads * (size_t)as->head_size;
}

/* In a model with a head the names of the layers begin with "bert.". */
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

/* Writes part r of an array (in, parts*out), whose rows begin in `to`, from a tensor (out, in). */
static int read_part(const struct safetensors *f, const struct row *r, const struct safetensor *t,
                     const struct encoder_info *as, void *to)
{
    size_t in = size_of(as, r->in), out = size_of(as, r->out), columns = (size_t)r->parts * out;
    void *data = malloc((size_t)(t->end - t->begin)); /* aligned, unlike the file's */
    if (data == NULL)
        return -1;
    memcpy(data, f->data + t->begin, (size_t)(t->end - t->begin));
    for (size_t i = 0; i < in; i++)
        for (size_t o = 0; o < out; o++)
            element_store(as->dtype, to, i * columns + (size_t)r->part * out + o,
                          element_load((enum encoder_dtype)dtype_of(t), data, o * in + i));
    free(data);
    return 0;
}

int weights_read(const struct safetensors *f, const struct encoder_info *as, int layer, int weight,
                 void *out, char error[WEIGHTS_ERROR])
{
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        if (r->weight != weight)
            continue;
        size_t rows_in = size_of(as, r->in), columns = size_of(as, r->out);
        const struct safetensor *t = find_row(f, r, layer);
        if (t == NULL || !has_shape(t, rows_in, columns) || dtype_of(t) < 0) {
            snprintf(error, WEIGHTS_ERROR,
                     "layer %d: %s %s; expected %zu x %zu of F32, F16 or BF16", layer, r->name,
                     t == NULL                         ? "is missing"
                     : !has_shape(t, rows_in, columns) ? "has another shape"
                                                       : "has another type",
                     columns, rows_in);
            return -1;
        }
        if (out != NULL && read_part(f, r, t, as, out) != 0) {
            snprintf(error, WEIGHTS_ERROR, "out of memory");
            return -1;
        }
    }
    return 0;
}

int weights_layers(const struct safetensors *f)
{
    int layers = 0;
    while (find(f, rows[0].name, layers) != NULL)
        layers++;
    return layers;
}

/* Bytes of an array in the type of `as`. */
static size_t array_bytes(const struct encoder_info *as, int weight)
{
    const struct row *r = rows;
    while (r->weight != weight)
        r++;
    return size_of(as, r->in) * size_of(as, r->out) * (size_t)r->parts * (size_t)as->element_bytes;
}

static int load_layers(const struct safetensors *f, const struct encoder_info *as,
                       struct weights *w)
{
    w->layers = weights_layers(f);
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
        for (int i = 0; i < WEIGHTS; i++) {
            a[i] = malloc(array_bytes(as, i));
            if (a[i] == NULL) {
                snprintf(w->error, sizeof(w->error), "out of memory");
                return -1;
            }
            if (weights_read(f, as, layer, i, a[i], w->error) != 0)
                return -1;
        }
        w->list[layer] = (struct encoder_weights){a[0], a[1], a[2], a[3], a[4],  a[5],
                                                  a[6], a[7], a[8], a[9], a[10], a[11]};
    }
    return 0;
}

int weights_load(const char *path, const struct encoder_info *as, struct weights *out)
{
    struct safetensors f;
    *out = (struct weights){.layers = 0};
    int result = safetensors_open(path, &f);
    if (result == 0)
        result = load_layers(&f, as, out);
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
