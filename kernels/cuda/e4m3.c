/* GEMMs whose operands are e4m3: their weights, rounded once, and the scales of a calibration. */
#include "e4m3.h"
#include "elements.h"
#include "launch.h"

#include <stdlib.h>

enum { CALIBRATED = 10 }; /* the weights that a fingerprint is of: from the first one on */

static const int matrices[PLAN_GEMMS] = {0, 2, 6, 8}; /* in struct encoder_weights */

/* The weight (columns, inner) of a GEMM on operands of e4m3; of no columns: there is none. */
struct matrix {
    long columns, inner;
};

/* All plans have the same of them. */
static struct matrix find_gemm(int gemm)
{
    const struct plan *p = encoder_plans[0];
    for (int i = 0; i < p->about.kernels; i++) {
        const struct plan_segment *s = &p->segments[i];
        if (s->e4m3.in == gemm && s->product != NULL)
            return (struct matrix){s->product->columns, s->product->inner};
        if (s->e4m3.in == gemm)
            return (struct matrix){s->gemm.columns, s->gemm.inner};
    }
    return (struct matrix){0, 0};
}

static size_t place_codes(void *base, struct encoder *e)
{
    struct carving c = {.base = base};
    for (int i = 0; i < e->layers * PLAN_GEMMS; i++) {
        const struct matrix g = find_gemm(i % PLAN_GEMMS);
        if (g.columns > 0)
            e->device->codes[i].at = encoder_carve(&c, (size_t)g.columns * (size_t)g.inner);
    }
    return c.used;
}

/* Room on the host for the largest weight, as it is given, in fp32 and as codes. */
struct room {
    uint16_t *halves;
    float *values;
    uint8_t *codes;
};

static int quantise(int gemm, const struct room *room, struct codes *out)
{
    const struct matrix g = find_gemm(gemm);
    const size_t n = (size_t)g.columns * (size_t)g.inner;
    out->scale = e4m3_weight_scale(room->values, (int64_t)n);
    e4m3_pack_weight(room->values, g.inner, g.columns, out->scale, room->codes);
    return encoder_device_copy(out->at, room->codes, n, false);
}

/* Adds a weight to the fingerprint, and rounds it if its GEMM has operands of e4m3. */
static int take(const struct encoder_model *m, struct encoder *e, int layer, int weight,
                const struct room *room, unsigned long long *fingerprint)
{
    const size_t n = encoder_weight_elements(weight);
    int status = n > 0 ? encoder_read_weight(m, layer, weight, room->halves) : ENCODER_OK;
    for (size_t i = 0; i < n && status == ENCODER_OK; i++) {
        room->values[i] = element_load(encoder_library.dtype, room->halves, i);
        *fingerprint += e4m3_fingerprint(layer, weight, i, room->halves[i]);
        if (!isfinite(room->values[i]))
            status =
                encoder_fail(ENCODER_BAD_ARGUMENT,
                             "layer %d: element %zu of %s is %g in %s; expected finite weights",
                             layer, i, encoder_layer_weights[weight].name, (double)room->values[i],
                             encoder_library.dtype == ENCODER_BF16 ? "bf16" : "fp16");
    }
    for (int g = 0; g < PLAN_GEMMS && status == ENCODER_OK; g++)
        if (matrices[g] == weight && find_gemm(g).columns > 0)
            status = quantise(g, room, &e->device->codes[layer * PLAN_GEMMS + g]);
    return status;
}

static int take_all(const struct encoder_model *m, struct encoder *e, const struct room *room)
{
    unsigned long long found = 0, expected = encoder_scales.model;
    int status = ENCODER_OK;
    for (int i = 0; i < e->layers * CALIBRATED && status == ENCODER_OK; i++)
        status = take(m, e, i / CALIBRATED, i % CALIBRATED, room, &found);
    if (status != ENCODER_OK || found == expected)
        return status;
    return encoder_fail(ENCODER_BAD_ARGUMENT,
                        "the library's scales are of the weights %016llx, and these are %016llx: "
                        "another model; give the one that was calibrated, or calibrate this one "
                        "and export a library of it",
                        expected, found);
}

static size_t largest_weight(void)
{
    size_t most = 0;
    for (int i = 0; i < CALIBRATED; i++) {
        size_t n = encoder_weight_elements(i);
        most = n > most ? n : most;
    }
    return most;
}

int encoder_e4m3_open(const struct encoder_model *m, struct encoder *e)
{
    const size_t most = largest_weight(), layers = (size_t)e->layers;
    if (encoder_scales.layers == 0)
        return ENCODER_OK;
    if (encoder_scales.layers != e->layers)
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "the model has %d layers, and the library scales of %d; calibrate this "
                            "model, and export a library of it",
                            e->layers, encoder_scales.layers);
    e->device->codes = calloc(layers * PLAN_GEMMS, sizeof(*e->device->codes));
    struct room room = {malloc(most * sizeof(*room.halves)), malloc(most * sizeof(*room.values)),
                        malloc(most)};
    int status = ENCODER_OK;
    if (e->device->codes == NULL || room.halves == NULL || room.values == NULL ||
        room.codes == NULL)
        status = encoder_fail(ENCODER_NO_MEMORY, "out of memory");
    if (status == ENCODER_OK)
        status = encoder_device_allocate(place_codes(NULL, e), &e->device->codes_memory);
    if (status == ENCODER_OK) {
        place_codes(e->device->codes_memory, e);
        status = take_all(m, e, &room);
    }
    free(room.halves);
    free(room.values);
    free(room.codes);
    return status;
}

const struct codes *encoder_codes(const struct encoder *e, int layer, int gemm)
{
    return &e->device->codes[layer * PLAN_GEMMS + gemm];
}

/* What the first GEMM of the next layer reads has that layer's scale. */
float encoder_scale_of_output(const struct encoder *e, int layer, int gemm)
{
    const int reader = layer + (gemm == 0 && layer < e->layers - 1);
    return encoder_scales.in[reader][gemm];
}

struct fp_e4m3 encoder_e4m3_of(const struct run *r, int layer, const struct plan_e4m3 *of)
{
    struct fp_e4m3 out = {.alpha = 1, .inverse = 1};
    if (of->in >= 0) {
        const struct codes *weight = encoder_codes(r->e, layer, of->in);
        out.in = r->places + 2 * of->in_at;
        out.weight = weight->at;
        out.alpha = encoder_scales.in[layer][of->in] * weight->scale;
        out.inverse = 1 / out.alpha;
    }
    if (of->out >= 0) {
        uint16_t half;
        element_store(encoder_library.dtype, &half, 0,
                      1 / encoder_scale_of_output(r->e, layer, of->out));
        out.out = r->places + 2 * of->out_at;
        out.factors = (unsigned)half << 16 | half;
    }
    return out;
}
