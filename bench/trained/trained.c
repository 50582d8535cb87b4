#include "bench/trained/trained.h"

#include "kernels/library/elements.h"
#include "kernels/library/weights_int.h"
#include "layer/e4m3.h"

#include <assert.h>

static_assert(sizeof(struct encoder_weights) == (WEIGHT_BETA2 + 1) * sizeof(void *) &&
                  (int)WEIGHTS_BIAS_TABLE == (int)WEIGHT_SCORE_BIAS,
              "both number the weights of a layer alike");

#define HALF_MOST 65504.0f

struct trained {
    char *path, *prefix;
    struct weights_file file;
};

static int open_file(struct trained *t, const char *path, const char *prefix, struct status *st)
{
    t->path = file_absolute(path); /* the shards of an index are beside its name */
    if (t->path == NULL || weights_open(t->path, prefix, &t->file) != 0)
        return status_set(st, STATUS_USAGE, "cannot read the weights '%s': %s", path,
                          t->path == NULL ? strerror(errno) : t->file.error);
    if (!utf8_is_valid(t->path)) /* the worker gets it in JSON */
        return status_set(st, STATUS_USAGE,
                          "the path of the weights '%s' is not UTF-8; name another", path);
    if (prefix != NULL && !utf8_is_valid(prefix))
        return status_set(st, STATUS_USAGE, "--prefix: '%s' is not UTF-8", prefix);
    t->prefix = prefix != NULL ? mem_strdup(prefix) : NULL;
    return 0;
}

int trained_open(const char *path, const char *prefix, struct trained **out, struct status *st)
{
    struct trained *t = mem_alloc(1, sizeof(*t));
    int result = open_file(t, path, prefix, st);
    *out = result == 0 ? t : NULL;
    if (result != 0)
        trained_close(t);
    return result;
}

void trained_close(struct trained *t)
{
    if (t == NULL)
        return;
    weights_close(&t->file);
    free(t->prefix);
    free(t->path);
    free(t);
}

static struct weights_as layers_of(const struct workload *w, enum encoder_dtype dtype)
{
    return (struct weights_as){.dtype = dtype,
                               .heads = w->heads,
                               .head_size = w->head_size,
                               .hidden = workload_hidden(w),
                               .ffn = w->ffn,
                               .layers = w->layers,
                               .seq_len = w->seq_len,
                               .rope_factor = w->rope_factor,
                               .functions = workload_functions(w)};
}

/* Whether a file has this array of the workload's layers. */
static bool reads(const struct workload *w, int layer, int id)
{
    bool first = id == WEIGHTS_FIRST_GAMMA || id == WEIGHTS_FIRST_BETA;
    const struct weight *weight = first ? NULL : &w->chain->weights[id];
    return first ? layer == 0 && chain_has_tensor(w->chain, TENSOR_N)
                 : weight->name != NULL && weight->draw != WEIGHT_ROTATION &&
                       (layer == 0 || !weight->table);
}

int trained_check(const struct trained *t, const struct workload *w, struct status *st)
{
    const struct weights_as as = layers_of(w, w->dtype == DTYPE_FP16   ? ENCODER_FP16
                                              : w->dtype == DTYPE_BF16 ? ENCODER_BF16
                                                                       : ENCODER_FP32);
    char error[WEIGHTS_ERROR];
    if (weights_check(&t->file, &as, error) != 0)
        return status_set(st, STATUS_USAGE,
                          "the weights '%s': %s; --model takes sizes and functions "
                          "from the model's config.json",
                          t->path, error);
    if (weights_layers(&t->file, &as) < w->layers)
        return status_set(st, STATUS_USAGE,
                          "the file of weights '%s' has %d layers, and the workload has %d; give "
                          "--layers and the sizes of the model, or --model",
                          t->path, t->file.layers, w->layers);
    for (int i = 0; i < w->layers * WEIGHTS_ARRAYS; i++)
        if (reads(w, i / WEIGHTS_ARRAYS, i % WEIGHTS_ARRAYS) &&
            weights_read(&t->file, &as, i / WEIGHTS_ARRAYS, i % WEIGHTS_ARRAYS, NULL, error) != 0)
            return status_set(st, STATUS_USAGE, "the weights '%s': %s", t->path, error);
    return 0;
}

const char *trained_path(const struct trained *t)
{
    return t->path;
}

const char *trained_prefix(const struct trained *t)
{
    return t->prefix;
}

char *trained_hash(const struct trained *t, char out[HASH_TEXT_SIZE])
{
    const struct safetensors *f = &t->file.file;
    SCOPED_BUF hashes = BUF_INIT; /* of the index, and of each shard */
    for (size_t i = 0; i < f->map_count; i++)
        buf_adds(&hashes, hash_text(f->maps[i].at, f->maps[i].bytes, out));
    if (f->map_count > 1)
        hash_text(hashes.ptr, hashes.len, out);
    return out;
}

static void read_array(const struct trained *t, const struct workload *w, int layer, int array,
                       float *out)
{
    /* fp32, which elements of F32, F16 and BF16 are exactly */
    const struct weights_as as = layers_of(w, ENCODER_FP32);
    char error[WEIGHTS_ERROR];
    int result = weights_read(&t->file, &as, layer, array, out, error);
    assert(result == 0); /* after the check */
    (void)result;
}

void trained_read(const struct trained *t, const struct workload *w, int layer, int id, float *out)
{
    read_array(t, w, layer, id, out);
}

char *weights_fingerprint(const struct workload *w, weights_reader *read, const void *ctx,
                          char out[FINGERPRINT_SIZE])
{
    uint64_t sum = 0;
    for (int i = 0; i < w->layers * WEIGHT_GAMMA2; i++) {
        int layer = i / WEIGHT_GAMMA2, id = i % WEIGHT_GAMMA2;
        int64_t n = weight_elements(id, w);
        SCOPED float *values = mem_alloc((size_t)n + 1, sizeof(*values));
        if (n > 0)
            read(ctx, w, layer, id, values);
        for (int64_t k = 0; k < n; k++)
            sum += e4m3_fingerprint(layer, id, (uint64_t)k,
                                    w->dtype == DTYPE_BF16 ? element_to_bf16(values[k])
                                                           : element_to_fp16(values[k]));
    }
    snprintf(out, FINGERPRINT_SIZE, "%016llx", (unsigned long long)sum);
    return out;
}

static void read_trained(const void *t, const struct workload *w, int layer, int id, float *out)
{
    trained_read(t, w, layer, id, out);
}

char *trained_fingerprint(const struct trained *t, const struct workload *w,
                          char out[FINGERPRINT_SIZE])
{
    return weights_fingerprint(w, read_trained, t, out);
}

int trained_input_most(const struct trained *t, const struct workload *w, int layer, int gemm,
                       float *out, struct status *st)
{
    static const struct {
        enum module first, last;
    } modules[GEMM_COUNT] = {[GEMM_QKV] = {QUERY, VALUE},
                             [GEMM_OUT] = {ATTENTION_OUT, ATTENTION_OUT},
                             [GEMM_FFN1] = {FFN1, FFN1},
                             [GEMM_FFN2] = {FFN2, FFN2}};
    const struct weights_as as = layers_of(w, ENCODER_FP32);
    const int number = layer * t->file.layers / weights_layers(&t->file, &as);
    char error[WEIGHTS_ERROR];
    *out = 0;
    for (enum module m = modules[gemm].first; m <= modules[gemm].last; m++) {
        const struct safetensor *const *own = t->file.tensors + number * WEIGHTS_TENSORS + 2 * m;
        const struct safetensor *scale = own[INPUT_SCALE];
        if (own[0] == NULL) /* q, k and v are one */
            continue;
        if (scale == NULL)
            return status_set(st, STATUS_USAGE, "the weights '%s': '%.*s' has no input_scale",
                              t->path, NAME(own[0]));
        if (weights_check_scale(scale, 1, 1, true, error) != 0)
            return status_set(st, STATUS_USAGE, "the weights '%s': %s", t->path, error);
        const float most = E4M3_MOST * weights_value(scale, 0);
        if (!(most > 0 && most <= HALF_MOST))
            return status_set(st, STATUS_USAGE,
                              "the weights '%s': '%.*s' is %g; expected more than 0, and at most "
                              "%g: by it e4m3 ends where fp16 does",
                              t->path, NAME(scale), (double)weights_value(scale, 0),
                              (double)(HALF_MOST / E4M3_MOST));
        *out = fmaxf(*out, most);
    }
    return 0;
}

bool trained_first_norm(const struct trained *t, const struct workload *w, float *gamma,
                        float *beta)
{
    if (!weights_has_first(&t->file))
        return false;
    read_array(t, w, 0, WEIGHTS_FIRST_GAMMA, gamma);
    read_array(t, w, 0, WEIGHTS_FIRST_BETA, beta);
    return true;
}
