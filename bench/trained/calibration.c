#include "bench/trained/trained.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALIBRATION_MOST = 16 << 20, VERSION = 1 };

static int PRINTF_LIKE(3, 4)
    refuse(const struct calibration *c, struct status *st, const char *format, ...)
{
    struct buf why;
    va_list list;
    buf_init(&why);
    va_start(list, format);
    buf_addv(&why, format, list);
    va_end(list);
    status_set(st, STATUS_USAGE, "--calibration: '%s': %s", c->path, why.ptr);
    buf_release(&why);
    return -1;
}

/* ---- a tensor's numbers ---------------------------------------------------------------------- */

static int read_number(const struct calibration *c, const json_t *tensor, const char *where,
                       const char *name, double *out, struct status *st)
{
    const json_t *value = json_object_get(tensor, name);
    *out = json_number_value(value);
    if (!json_is_number(value) || *out < 0)
        return refuse(c, st, "%s: '%s' is %s; expected a number of 0 or more", where, name,
                      value == NULL ? "missing" : "something else");
    return 0;
}

static int read_tensor(const struct calibration *c, const json_t *tensor, const char *where,
                       float *scale, struct status *st)
{
    double amax, quantile, rms, found;
    int exponent;
    if (!json_is_object(tensor))
        return refuse(c, st, "%s is %s; expected an object with amax, quantile, rms and scale",
                      where, tensor == NULL ? "missing" : "something else");
    if (read_number(c, tensor, where, "amax", &amax, st) != 0 ||
        read_number(c, tensor, where, "quantile", &quantile, st) != 0 ||
        read_number(c, tensor, where, "rms", &rms, st) != 0 ||
        read_number(c, tensor, where, "scale", &found, st) != 0)
        return -1;
    if (frexp(found, &exponent) != 0.5 || exponent < -30 || exponent > 30)
        return refuse(c, st, "%s: its scale is %g; expected a power of two", where, found);
    if (amax > 0 ? !(amax / found > 112 && amax / found <= 224) : found != 1)
        return refuse(c, st,
                      "%s: its amax is %g, by its scale of %g %g; expected a number in (112,224], "
                      "or for 0 a scale of 1",
                      where, amax, found, amax / found);
    *scale = (float)found;
    return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int read_layer(struct calibration *c, const json_t *layer, int number, struct status *st)
{
    char where[64];
    for (int g = 0; g < GEMM_COUNT; g++) {
        snprintf(where, sizeof(where), "layer %d: '%s'", number, gemm_inputs[g]);
        if (read_tensor(c, json_object_get(layer, gemm_inputs[g]), where, &c->scale[number][g],
                        st) != 0)
            return -1;
    }
    if (json_object_size(layer) != GEMM_COUNT)
        return refuse(c, st, "layer %d has %zu tensors; expected x, context, norm1 and activation",
                      number, json_object_size(layer));
    return 0;
}

static int read_whole(struct calibration *c, const json_t *whole, struct status *st)
{
    const json_t *version = json_object_get(whole, "version");
    const json_t *model = json_object_get(whole, "model"),
                 *layers = json_object_get(whole, "layers");
    if (!json_is_integer(version) || json_integer_value(version) != VERSION)
        return refuse(c, st, "it has no 'version' of %d, which fuseplan.calibrate() writes",
                      VERSION);
    if (!json_is_string(model) || !json_is_array(layers) || json_array_size(layers) == 0 ||
        json_array_size(layers) > CALIBRATION_MOST)
        return refuse(c, st, "it has no text 'model' or no list 'layers' with something in it");
    c->model = mem_strdup(json_string_value(model));
    c->layers = (int)json_array_size(layers);
    c->scale = mem_alloc((size_t)c->layers, sizeof(*c->scale));
    for (int i = 0; i < c->layers; i++)
        if (read_layer(c, json_array_get(layers, (size_t)i), i, st) != 0)
            return -1;
    return 0;
}

int calibration_read(const char *path, struct calibration *out, struct status *st)
{
    struct buf text;
    json_error_t error;
    *out = (struct calibration){.path = mem_strdup(path)};
    buf_init(&text);
    int result = file_read_text(path, CALIBRATION_MOST, &text, st);
    if (result != 0) {
        status_prefix(st, "--calibration");
    } else {
        json_t *whole = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &error);
        result = json_is_object(whole)
                     ? read_whole(out, whole, st)
                     : refuse(out, st, "it is not a JSON object%s%s", whole == NULL ? ": " : "",
                              whole == NULL ? error.text : "");
        json_decref(whole);
    }
    buf_release(&text);
    return result;
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
        return refuse(c, st, "it has %d layers, and the model %d; calibrate this model", c->layers,
                      w->layers);
    if (strcmp(trained_fingerprint(t, w, found), c->model) != 0)
        return refuse(c, st,
                      "it is of weights %.16s, and those of '%s' are %s: of another model, or in "
                      "another type; calibrate the model as it is in that file",
                      c->model, trained_path(t), found);
    return 0;
}
