/* Arrays of layers from HuggingFace's tensors.  nn.Linear computes x @ weight^T, so its matrices
 * are transposed on the way; parts are put side by side, and factors multiplied in, in fp32. */
#include "weights_int.h"

#include "elements.h"

#include <stdio.h>

enum { BUCKETS = 32, WEIGHT = 0, BIAS = 1 };
enum size { ONE, D, A, A3, F };

/* Rows and columns of each array, and the module of its first column. */
static const struct array {
    enum size rows, columns;
    enum module module;
    int part;
} arrays[WEIGHTS_ARRAYS] = {
    {D, A3, QUERY, WEIGHT},
    {ONE, A3, QUERY, BIAS},
    {A, D, ATTENTION_OUT, WEIGHT},
    {ONE, D, ATTENTION_OUT, BIAS},
    {ONE, D, NORM1, WEIGHT},
    {ONE, D, NORM1, BIAS},
    {D, F, FFN1, WEIGHT},
    {ONE, F, FFN1, BIAS},
    {F, D, FFN2, WEIGHT},
    {ONE, D, FFN2, BIAS},
    {ONE, D, NORM2, WEIGHT},
    {ONE, D, NORM2, BIAS},
    [WEIGHTS_FIRST_GAMMA] = {ONE, D, NORM1, WEIGHT},
    [WEIGHTS_FIRST_BETA] = {ONE, D, NORM1, BIAS},
};

static size_t size_of(const struct weights_as *as, enum size s)
{
    const size_t heads = (size_t)as->heads * (size_t)as->head_size;
    const size_t sizes[] = {1, (size_t)as->hidden, heads, 3 * heads, (size_t)as->ffn};
    return sizes[s];
}

/* Of an array, of a gate with both halves. */
static size_t columns_of(const struct weights_as *as, int weight)
{
    bool gate = arrays[weight].module == FFN1 && (as->functions & ENCODER_GATE) != 0;
    return size_of(as, arrays[weight].columns) * (gate ? 2 : 1);
}

size_t weights_elements(const struct weights_as *as, int weight)
{
    return weight == WEIGHTS_BIAS_TABLE ? (size_t)as->heads * (2 * (size_t)as->seq_len - 1)
                                        : size_of(as, arrays[weight].rows) * columns_of(as, weight);
}

/* ---- what a file has ------------------------------------------------------------------------- */

static bool has(const struct weights_file *f, enum traits trait)
{
    return (f->family->traits & trait) != 0;
}

int weights_layers(const struct weights_file *f, const struct weights_as *as)
{
    return has(f, SHARED_LAYERS) ? as->layers : f->layers;
}

int weights_check(const struct weights_file *f, const struct weights_as *as,
                  char error[WEIGHTS_ERROR])
{
    static const char *const names[] = {"norms before attention and feed-forward network",
                                        "RMS norms",
                                        "gates",
                                        "rotary positions",
                                        "biases of scores",
                                        "local ones among them"};
    unsigned known = has(f, PRE_OR_POST) ? ~(unsigned)ENCODER_PRE : ~0u;
    bool before = has(f, FINAL_SAYS_PRE) && f->final[0] != NULL;
    unsigned functions = f->family->functions | (before ? ENCODER_PRE : 0);
    unsigned differ = (functions ^ as->functions) & known;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if ((differ >> i & 1) != 0)
            return weights_refuse(error, "its layers are those of %s, %s %s; expected layers %s",
                                  f->family->name,
                                  (as->functions >> i & 1) != 0 ? "without" : "with", names[i],
                                  (as->functions >> i & 1) != 0 ? "with them" : "without");
    if (has(f, SCALED_ROTATIONS) && !(as->rope_factor > 0))
        return weights_refuse(error,
                              "its layers are those of %s, whose rotary embeddings may have a "
                              "factor; expected layers with a rope_factor: that of the model's "
                              "config.json, 1 where it has none",
                              f->family->name);
    const bool bare = (as->functions & ENCODER_RMS) != 0 || has(f, BARE_NORMS);
    const bool last = (as->functions & ENCODER_PRE) != 0 && f->family->finals[0] != NULL;
    for (int part = 0; last && part < (bare ? 1 : 2); part++)
        if (f->final[part] == NULL)
            return weights_refuse(error, "'%s.%s', of the last norm, is missing",
                                  f->family->finals[0], part == 0 ? "weight" : "bias");
    return 0;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Where a column of an array is in the file. */
struct column {
    enum module module;
    size_t row, rows; /* of that module's outputs */
    float factor;
};

/* Heads of keys and values. */
static size_t key_heads(const struct weights_file *f, const struct weights_as *as,
                        const struct safetensor *const *tensors)
{
    size_t heads = (size_t)as->heads;
    uint64_t rows = has(f, FEWER_KEY_HEADS) ? tensors[2 * KEY]->shape[0] : 0;
    uint64_t found = rows / (uint64_t)as->head_size;
    return found > 0 && found <= heads && heads % found == 0 ? (size_t)found : heads;
}

/* Column `at` of q, k and v, each in head by head. */
static struct column qkv_column(const struct weights_file *f, const struct weights_as *as,
                                const struct safetensor *const *tensors, size_t at)
{
    size_t width = (size_t)as->head_size, each = size_of(as, A), part = at / each;
    size_t head = at % each / width, in_head = at % width;
    float factor = part == 0 && has(f, UNSCALED) ? sqrtf((float)as->head_size) : 1;
    if (f->family->modules[KEY] == NULL)
        return (struct column){QUERY,
                               has(f, HEADS_OUTSIDE) ? (3 * head + part) * width + in_head : at,
                               3 * each, factor};
    size_t kept = part > 0 ? key_heads(f, as, tensors) : (size_t)as->heads;
    return (struct column){(enum module)(QUERY + part),
                           head / ((size_t)as->heads / kept) * width + in_head, kept * width,
                           factor};
}

/* Of a gate columns 2c are activated. */
static struct column gate_column(const struct weights_file *f, const struct weights_as *as,
                                 size_t at)
{
    size_t ffn = (size_t)as->ffn, second = at % 2;
    if (f->family->modules[FFN1_FACTOR] != NULL)
        return (struct column){second ? FFN1_FACTOR : FFN1, at / 2, ffn, 1};
    second = has(f, SECOND_ACTIVATED) ? 1 - second : second;
    return (struct column){FFN1, second * ffn + at / 2, 2 * ffn, 1};
}

/* Sets the factor of LayerScale, if there is one. */
static int scale_column(const struct safetensor *scale, struct column *c, char *error)
{
    if (scale == NULL)
        return 0;
    if (weights_check_tensor(scale, c->rows, 0, error) != 0)
        return -1;
    c->factor = weights_value(scale, c->row);
    return 0;
}

static int find_column(const struct weights_file *f, const struct weights_as *as,
                       const struct safetensor *const *tensors, enum module m, size_t at,
                       struct column *out, char *error)
{
    if (m == QUERY)
        *out = qkv_column(f, as, tensors, at);
    else if (m == FFN1 && (as->functions & ENCODER_GATE) != 0)
        *out = gate_column(f, as, at);
    else
        *out = (struct column){m, at, size_of(as, m == FFN1 ? F : D), 1};
    return m == ATTENTION_OUT || m == FFN2
               ? scale_column(tensors[2 * (m == FFN2 ? SCALE2 : SCALE1)], out, error)
               : 0;
}

static int refuse_value(const struct safetensor *t, size_t row, size_t column, float value,
                        const struct weights_as *as, char *error)
{
    static const char *const names[] = {[ENCODER_FP32] = "fp32",
                                        [ENCODER_TF32] = "tf32",
                                        [ENCODER_FP16] = "fp16",
                                        [ENCODER_BF16] = "bf16"};
    char at[60];
    weights_shape_text((const uint64_t[]){row, column}, t->dims == 1 ? 1 : 2, at, sizeof(at));
    return isfinite(value)
               ? weights_refuse(error,
                                "'%.*s' is %g at %s, which is infinite in %s; export the library "
                                "in another type",
                                NAME(t), (double)value, at, names[as->dtype])
               : weights_refuse(error,
                                "'%.*s' is %g at %s: the file is damaged, or training failed",
                                NAME(t), (double)value, at);
}

/* Writes a value, and checks that the type of `as` holds it. */
static bool store(const struct weights_as *as, float value, size_t i, void *out)
{
    union {
        float single;
        uint16_t half;
    } stored = {0};
    element_store(as->dtype, &stored, 0, value);
    if (out != NULL)
        element_store(as->dtype, out, i, value);
    return isfinite(element_load(as->dtype, &stored, 0));
}

/* Reads column `at` of an array (rows, columns), to whose first element `out` points.  scale: of a
 * matrix; null: it has none. */
static int read_column(const struct weights_file *f, const struct weights_as *as,
                       const struct safetensor *t, const struct safetensor *scale,
                       const struct column *c, const size_t size[2], size_t at, void *out,
                       char *error)
{
    bool vector = size[0] == 1, by_input = has(f, CONV1D) && !vector;
    size_t rows = by_input ? size[0] : c->rows, columns = by_input ? c->rows : size[0];
    if ((vector ? weights_check_tensor(t, rows, 0, error)
                : weights_check_matrix(t, scale, rows, columns, by_input, error)) != 0)
        return -1;
    for (size_t i = 0; i < size[0]; i++) {
        size_t row = by_input ? i : c->row, column = by_input ? c->row : i;
        float value = weights_value(t, vector ? row : row * columns + column) * c->factor;
        float factor = scale != NULL ? weights_scale(scale, t, row, column) : 1;
        value *= factor;
        if (!isfinite(factor))
            return weights_refuse(error, "'%.*s' is %g for element (%zu,%zu): the file is damaged",
                                  NAME(scale), (double)factor, row, column);
        if (!store(as, value, i * size[1] + at, out))
            return refuse_value(t, row, column, value, as, error);
    }
    return 0;
}

/* ---- the bias of scores ---------------------------------------------------------------------- */

/* Of T5 and MPNet, of j - i: exact below 8, then logarithmic up to 128. */
static size_t bucket_of(int distance)
{
    static const int begins[] = {12, 16, 23, 32, 46, 64, 91}; /* of buckets 9..15 */
    int n = distance < 0 ? -distance : distance, bucket = n < 8 ? n : 8;
    for (int i = 0; i < 7; i++)
        bucket += n >= begins[i];
    return (size_t)bucket + (distance > 0 ? BUCKETS / 2 : 0);
}

/* Press, Smith and Lewis, ALiBi (2021): 2^(-8(h+1)/H) for a power of two of heads; beyond the
 * largest one below H, every second slope of twice as many. */
static double alibi_slope(int head, int heads)
{
    int power = 1;
    while (2 * power <= heads)
        power *= 2;
    return head < power ? exp2(-8.0 * (head + 1) / power)
                        : exp2(-8.0 * (2 * (head - power) + 1) / (2 * power));
}

static int read_bias_table(const struct weights_file *f, const struct weights_as *as, float *out,
                           char *error)
{
    const struct safetensor *t = f->buckets;
    size_t heads = (size_t)as->heads, distances = 2 * (size_t)as->seq_len - 1;
    if (t != NULL && weights_check_tensor(t, BUCKETS, heads, error) != 0)
        return -1;
    for (size_t i = 0; t != NULL && i < BUCKETS * heads; i++)
        if (!isfinite(weights_value(t, i)))
            return refuse_value(t, i / heads, i % heads, weights_value(t, i), as, error);
    for (size_t i = 0; i < heads * distances && out != NULL; i++) {
        int head = (int)(i / distances), d = (int)(i % distances) - (as->seq_len - 1);
        int far = has(f, ALIBI_BOTH_WAYS) && d > 0 ? -d : d;
        out[i] = t != NULL ? weights_value(t, bucket_of(d) * heads + (size_t)head)
                           : (float)(alibi_slope(head, as->heads) * far);
    }
    return 0;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The tensors of the norm that is an array's: where norms stand before, the second of a layer is
 * the next layer's first, or the last. */
static const struct safetensor *norm_tensor(const struct weights_file *f,
                                            const struct weights_as *as,
                                            const struct safetensor *const *tensors,
                                            const struct array *a, int layer, bool first)
{
    bool pre = (as->functions & ENCODER_PRE) != 0;
    enum module other = a->module == NORM1 ? NORM2 : NORM1;
    if (!pre || first)
        return tensors[2 * a->module + a->part];
    if (a->module == NORM1)
        return tensors[2 * other + a->part];
    if (layer + 1 == weights_layers(f, as))
        return f->final[a->part];
    return f->tensors[(layer + 1) * WEIGHTS_TENSORS + 2 * other + a->part];
}

bool weights_has_first(const struct weights_file *f)
{
    return f->tensors[2 * NORM1] != NULL;
}

int weights_read(const struct weights_file *f, const struct weights_as *as, int layer, int weight,
                 void *out, char error[WEIGHTS_ERROR])
{
    if (weight == WEIGHTS_BIAS_TABLE)
        return read_bias_table(f, as, out, error);
    const struct array *a = &arrays[weight];
    const size_t size[] = {size_of(as, a->rows), columns_of(as, weight)};
    int number = has(f, SHARED_LAYERS) ? layer * f->layers / as->layers : layer;
    const struct safetensor *const *tensors = f->tensors + number * WEIGHTS_TENSORS;
    for (size_t at = 0; at < size[1]; at++) {
        struct column c;
        if (find_column(f, as, tensors, a->module, at, &c, error) != 0)
            return -1;
        const struct safetensor *t =
            a->module == NORM1 || a->module == NORM2
                ? norm_tensor(f, as, tensors, a, layer,
                              weight == WEIGHTS_FIRST_GAMMA || weight == WEIGHTS_FIRST_BETA)
                : tensors[2 * c.module + a->part];
        const struct safetensor *scale =
            a->part == WEIGHT ? tensors[2 * c.module + SCALE] : NULL; /* no norm has one */
        if (t != NULL && read_column(f, as, t, scale, &c, size, at, out, error) != 0)
            return -1;
        if (t == NULL) /* a bias of 0, or a last norm that only divides */
            store(as, a->part == WEIGHT ? 1 : 0, at, out);
    }
    return 0;
}
