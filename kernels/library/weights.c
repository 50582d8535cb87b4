/* Shapes of HuggingFace's tensors, and the library's: a table.  nn.Linear computes x @ weight^T, so
 * its matrices are transposed on the way. */
#include "weights_int.h"

#include "elements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHTS = sizeof(struct encoder_weights) / sizeof(void *) };
enum size { ONE, HIDDEN, FFN };

#define AT(weight) (offsetof(struct encoder_weights, weight) / sizeof(void *))

/* Weight and bias of each module, as weights_names.c numbers them. */
static const struct row {
    int weight;        /* its place in struct encoder_weights */
    int part, parts;   /* which of how many equal parts of its columns */
    enum size in, out; /* rows and columns of the part; in ONE: a vector */
} rows[WEIGHTS_TENSORS] = {
    [2 * QUERY] = {AT(wqkv), 0, 3, HIDDEN, HIDDEN},
    [2 * QUERY + 1] = {AT(bqkv), 0, 3, ONE, HIDDEN},
    [2 * KEY] = {AT(wqkv), 1, 3, HIDDEN, HIDDEN},
    [2 * KEY + 1] = {AT(bqkv), 1, 3, ONE, HIDDEN},
    [2 * VALUE] = {AT(wqkv), 2, 3, HIDDEN, HIDDEN},
    [2 * VALUE + 1] = {AT(bqkv), 2, 3, ONE, HIDDEN},
    [2 * ATTENTION_OUT] = {AT(wo), 0, 1, HIDDEN, HIDDEN},
    [2 * ATTENTION_OUT + 1] = {AT(bo), 0, 1, ONE, HIDDEN},
    [2 * NORM1] = {AT(gamma1), 0, 1, ONE, HIDDEN},
    [2 * NORM1 + 1] = {AT(beta1), 0, 1, ONE, HIDDEN},
    [2 * FFN1] = {AT(w1), 0, 1, HIDDEN, FFN},
    [2 * FFN1 + 1] = {AT(b1), 0, 1, ONE, FFN},
    [2 * FFN2] = {AT(w2), 0, 1, FFN, HIDDEN},
    [2 * FFN2 + 1] = {AT(b2), 0, 1, ONE, HIDDEN},
    [2 * NORM2] = {AT(gamma2), 0, 1, ONE, HIDDEN},
    [2 * NORM2 + 1] = {AT(beta2), 0, 1, ONE, HIDDEN},
};

static size_t size_of(const struct encoder_info *as, enum size s)
{
    return s == ONE ? 1 : s == FFN ? (size_t)as->ffn : (size_t)as->heads * (size_t)as->head_size;
}

static bool has_shape(const struct safetensor *t, size_t in, size_t out)
{
    return in == 1 ? t->dims == 1 && t->shape[0] == out
                   : t->dims == 2 && t->shape[0] == out && t->shape[1] == in;
}

/* The values' type; -1: a type that no library takes. */
static int dtype_of(const struct safetensor *t)
{
    return strcmp(t->dtype, "F32") == 0    ? ENCODER_FP32
           : strcmp(t->dtype, "F16") == 0  ? ENCODER_FP16
           : strcmp(t->dtype, "BF16") == 0 ? ENCODER_BF16
                                           : -1;
}

/* (3,4), (5,) */
static void shape_text(const uint64_t *shape, int dims, char *out, size_t room)
{
    size_t len = (size_t)snprintf(out, room, "(");
    for (int d = 0; d < dims && len < room; d++)
        len += (size_t)snprintf(out + len, room - len, "%s%llu", d > 0 ? "," : "",
                                (unsigned long long)shape[d]);
    if (len < room)
        snprintf(out + len, room - len, "%s)", dims == 1 ? "," : "");
}

static int check_tensor(const struct safetensor *t, size_t in, size_t out, char *error)
{
    char found[200], wanted[60];
    shape_text(t->shape, t->dims, found, sizeof(found));
    shape_text((const uint64_t[]){out, in}, in == 1 ? 1 : 2, wanted, sizeof(wanted));
    if (!has_shape(t, in, out))
        return weights_refuse(error, "'%.*s' has the shape %s; expected %s", NAME(t), found,
                              wanted);
    if (dtype_of(t) < 0)
        return weights_refuse(error, "'%.*s' is of type %s; expected F32, F16 or BF16%s", NAME(t),
                              t->dtype,
                              t->dtype[0] != 'F' || t->dtype[1] == '8'
                                  ? ": the model is quantised, save it without that"
                                  : "");
    return 0;
}

/* Whether the type of the library holds all values of a tensor, which are at `data`. */
static int check_values(const struct safetensor *t, const void *data, const struct encoder_info *as,
                        char *error)
{
    static const char *const names[] = {
        [ENCODER_FP32] = "fp32", [ENCODER_FP16] = "fp16", [ENCODER_BF16] = "bf16"};
    enum encoder_dtype dtype = (enum encoder_dtype)dtype_of(t);
    uint64_t columns = t->dims == 2 ? t->shape[1] : 1;
    uint64_t count = columns * t->shape[0];
    for (uint64_t i = 0; i < count; i++) {
        union {
            float single;
            uint16_t half;
        } stored = {0};
        float value = element_load(dtype, data, i);
        element_store(as->dtype, &stored, 0, value);
        if (isfinite(element_load(as->dtype, &stored, 0)))
            continue;
        char at[60];
        const uint64_t index[] = {t->dims == 2 ? i / columns : i, i % columns};
        shape_text(index, t->dims, at, sizeof(at));
        return isfinite(value)
                   ? weights_refuse(
                         error,
                         "'%.*s' is %g at %s, which is infinite in %s; export the library "
                         "in another type",
                         NAME(t), (double)value, at, names[as->dtype])
                   : weights_refuse(error,
                                    "'%.*s' is %g at %s: the file is damaged, or training failed",
                                    NAME(t), (double)value, at);
    }
    return 0;
}

/* Writes part r of an array (in, parts*out), whose rows begin in `to`, from a tensor (out, in). */
static int read_part(const struct row *r, const struct safetensor *t, const struct encoder_info *as,
                     void *to, char *error)
{
    size_t in = size_of(as, r->in), out = size_of(as, r->out), columns = (size_t)r->parts * out;
    size_t bytes = (size_t)(t->end - t->begin);
    if (check_tensor(t, in, out, error) != 0)
        return -1;
    void *data = calloc(bytes + 1, 1); /* aligned, unlike the file's */
    if (data == NULL)
        return weights_refuse(error, "out of memory");
    memcpy(data, t->data, bytes);
    int result = check_values(t, data, as, error);
    for (size_t i = 0; i < in && to != NULL && result == 0; i++)
        for (size_t o = 0; o < out; o++)
            element_store(as->dtype, to, i * columns + (size_t)r->part * out + o,
                          element_load((enum encoder_dtype)dtype_of(t), data, o * in + i));
    free(data);
    return result;
}

int weights_read(const struct weights_file *f, const struct encoder_info *as, int layer, int weight,
                 void *out, char error[WEIGHTS_ERROR])
{
    for (int i = 0; i < WEIGHTS_TENSORS; i++) {
        const struct row *r = &rows[i];
        const struct safetensor *t = f->tensors[layer * WEIGHTS_TENSORS + i];
        if (r->weight != weight)
            continue;
        size_t columns = size_of(as, r->out);
        for (size_t o = 0; o < columns && t == NULL && out != NULL; o++) /* a vector */
            element_store(as->dtype, out, (size_t)r->part * columns + o, 0);
        if (t != NULL && read_part(r, t, as, out, error) != 0)
            return -1;
    }
    return 0;
}

/* Bytes of an array in the type of `as`. */
static size_t array_bytes(const struct encoder_info *as, int weight)
{
    const struct row *r = rows;
    while (r->weight != weight)
        r++;
    return size_of(as, r->in) * size_of(as, r->out) * (size_t)r->parts * (size_t)as->element_bytes;
}

static int load_layers(const struct weights_file *f, const struct encoder_info *as,
                       struct weights *w)
{
    w->layers = f->layers;
    w->list = calloc((size_t)w->layers, sizeof(*w->list));
    w->arrays = calloc((size_t)w->layers * WEIGHTS, sizeof(*w->arrays));
    if (w->list == NULL || w->arrays == NULL)
        return weights_refuse(w->error, "out of memory");
    for (int layer = 0; layer < w->layers; layer++) {
        void **a = w->arrays + (size_t)layer * WEIGHTS;
        for (int i = 0; i < WEIGHTS; i++) {
            a[i] = malloc(array_bytes(as, i));
            if (a[i] == NULL)
                return weights_refuse(w->error, "out of memory");
            if (weights_read(f, as, layer, i, a[i], w->error) != 0)
                return -1;
        }
        memcpy(&w->list[layer], a, sizeof(w->list[layer]));
    }
    return 0;
}

int weights_load(const char *path, const char *prefix, const struct encoder_info *as,
                 struct weights *out)
{
    struct weights_file f;
    *out = (struct weights){.layers = 0};
    int result = weights_open(path, prefix, &f);
    if (result == 0)
        result = load_layers(&f, as, out);
    else
        weights_refuse(out->error, "%s", f.error);
    weights_close(&f);
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
