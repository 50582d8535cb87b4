#include "bench/trained/trained.h"

#include "layer/e4m3.h"

#include <jansson.h>

enum { CALIBRATION_MOST = 16 << 20, VERSION = 2 };

/* What a file says of a model in fp16, or in bf16. */
struct half {
    const char *name, *model; /* model: the key of its fingerprint */
    double most;              /* of its numbers */
};

static const struct half fp16 = {"fp16", "model", 65504}, bf16 = {"bf16", "model_bf16", 0x1.fep127};

/* Of a GEMM's input in a layer. */
static int read_scale(const struct half *half, json_t *layer, int number, const char *input,
                      float *out, struct status *st)
{
    double amax, scale;
    json_error_t error;
    if (json_unpack_ex(layer, &error, 0, "{s:{s:F, s:F}}", input, "amax", &amax, "scale", &scale) !=
        0)
        return status_set(st, STATUS_USAGE,
                          "layer %d: '%s' has not the numbers 'amax' and 'scale': %s", number,
                          input, error.text);
    if (!(amax >= 0 && amax <= half->most))
        return status_set(st, STATUS_USAGE,
                          "layer %d: '%s': its amax is %g; expected a number of %s, from 0 to %g",
                          number, input, amax, half->name, half->most);
    const double right = (double)e4m3_input_scale((float)amax);
    if (scale != right)
        return status_set(st, STATUS_USAGE,
                          "layer %d: '%s': its scale is %g; expected the least power of two by "
                          "which its amax of %g becomes %g or less, and at least 2^-15: %g",
                          number, input, scale, amax, (double)E4M3_INPUT_MOST, right);
    *out = (float)scale;
    return 0;
}

static int read_whole(const struct half *half, struct calibration *c, const json_t *whole,
                      struct status *st)
{
    const json_t *version = json_object_get(whole, "version");
    const json_t *model = json_object_get(whole, half->model),
                 *layers = json_object_get(whole, "layers");
    if (!json_is_object(whole))
        return status_set(st, STATUS_USAGE, "it is not a JSON object");
    if (!json_is_integer(version) || json_integer_value(version) != VERSION)
        return status_set(st, STATUS_USAGE,
                          "it has no 'version' of %d, which fuseplan.calibrate() writes", VERSION);
    if (!json_is_string(model) || !json_is_array(layers) || json_array_size(layers) == 0)
        return status_set(st, STATUS_USAGE,
                          "it has no text '%s' or no list 'layers' with something in it, as "
                          "fuseplan.calibrate() writes for models in %s",
                          half->model, half->name);
    c->model = mem_strdup(json_string_value(model));
    if (strlen(c->model) != FINGERPRINT_SIZE - 1 ||
        strspn(c->model, "0123456789abcdef") != FINGERPRINT_SIZE - 1)
        return status_set(st, STATUS_USAGE, "its '%s' is '%s'; expected %d hexadecimal digits",
                          half->model, c->model, FINGERPRINT_SIZE - 1);
    c->sentences = json_integer_value(json_object_get(whole, "sentences"));
    c->layers = (int)json_array_size(layers);
    c->scale = mem_alloc((size_t)c->layers, sizeof(*c->scale));
    for (int i = 0; i < c->layers * GEMM_COUNT; i++)
        if (read_scale(half, json_array_get(layers, (size_t)(i / GEMM_COUNT)), i / GEMM_COUNT,
                       gemm_inputs[i % GEMM_COUNT], &c->scale[i / GEMM_COUNT][i % GEMM_COUNT],
                       st) != 0)
            return -1;
    return 0;
}

int calibration_read(const char *path, enum dtype dtype, struct calibration *out, struct status *st)
{
    const struct half *half = dtype == DTYPE_BF16 ? &bf16 : &fp16;
    SCOPED_BUF text = BUF_INIT;
    json_error_t error;
    *out = (struct calibration){.path = mem_strdup(path)};
    if (file_read_text(path, CALIBRATION_MOST, &text, st) != 0)
        return status_prefix(st, "--calibration");
    hash_text(text.ptr, text.len, out->hash);
    json_auto_t *whole = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &error);
    if (whole == NULL)
        return status_set(st, STATUS_USAGE, "--calibration: '%s': it is not a JSON object: %s",
                          path, error.text);
    return read_whole(half, out, whole, st) == 0 ? 0
                                                 : status_prefix(st, "--calibration: '%s'", path);
}

void calibration_release(struct calibration *c)
{
    free(c->path);
    free(c->model);
    free(c->scale);
    *c = (struct calibration){.layers = 0};
}

int calibration_check(const struct calibration *c, const struct trained *t,
                      const struct workload *w, struct status *st)
{
    char found[FINGERPRINT_SIZE];
    if (c->layers != w->layers)
        return status_set(st, STATUS_USAGE,
                          "--calibration: '%s': it has %d layers, and the model %d; calibrate this "
                          "model",
                          c->path, c->layers, w->layers);
    if (t != NULL && strcmp(trained_fingerprint(t, w, found), c->model) != 0)
        return status_set(
            st, STATUS_USAGE,
            "--calibration: '%s': it is of weights %.16s, and those of '%s' are %s: of "
            "another model; calibrate the model as it is in that file",
            c->path, c->model, trained_path(t), found);
    return 0;
}

static int take_scales(const struct trained *t, const struct workload *w, struct calibration *out,
                       struct status *st)
{
    if (t == NULL)
        return status_set(st, STATUS_USAGE, "no weights are given; add --weights, or --model");
    out->path = mem_strdup(trained_path(t));
    out->model = mem_alloc(FINGERPRINT_SIZE, 1);
    trained_fingerprint(t, w, out->model);
    trained_hash(t, out->hash);
    out->layers = w->layers;
    out->scale = mem_alloc((size_t)w->layers, sizeof(*out->scale));
    for (int i = 0; i < w->layers * GEMM_COUNT; i++) {
        float most;
        if (trained_input_most(t, w, i / GEMM_COUNT, i % GEMM_COUNT, &most, st) != 0)
            return -1;
        out->scale[i / GEMM_COUNT][i % GEMM_COUNT] = e4m3_input_scale(most);
    }
    return 0;
}

int calibration_open(const char *path, const struct trained *t, const struct workload *w,
                     struct calibration *out, struct status *st)
{
    if (strcmp(path, CALIBRATION_WEIGHTS) != 0)
        return calibration_read(path, w->dtype, out, st) != 0 ? -1
                                                              : calibration_check(out, t, w, st);
    *out = (struct calibration){.layers = 0};
    return take_scales(t, w, out, st) == 0
               ? 0
               : status_prefix(st, "--calibration " CALIBRATION_WEIGHTS);
}
