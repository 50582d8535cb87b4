/* A model's weights on the device. */
#include "plan.h"
#include "rotations.h"

#include <stdlib.h>

static const double theta_min = 1, theta_max = 1e12, factor_max = 1e6;

/* Whether layers with all of these functions have rotations: given, or by their base. */
static bool is_base(const float *given, double theta, unsigned functions)
{
    return (encoder_library.functions & functions) != functions || given != NULL ||
           (theta >= theta_min && theta <= theta_max);
}

static int refuse_base(const char *name, double theta)
{
    return encoder_fail(ENCODER_BAD_ARGUMENT,
                        "the model has %s %g; expected a number from %g to %g, such as 10000", name,
                        theta, theta_min, theta_max);
}

static int check_model(const struct encoder_model *m)
{
    static const char *const dtypes[] = {"fp32", "tf32", "fp16", "bf16"};
    const struct encoder_info *l = &encoder_library;
    if (m == NULL || m->weights == NULL)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "the model or its weights are null");
    if (m->heads != l->heads || m->head_size != l->head_size || m->ffn != l->ffn)
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "the model has %d heads of %d columns and ffn %d; the library runs %d "
                            "heads of %d and ffn %d",
                            m->heads, m->head_size, m->ffn, l->heads, l->head_size, l->ffn);
    int hidden = m->hidden != 0 ? m->hidden : m->heads * m->head_size;
    if (hidden != l->hidden)
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "the model has the hidden size %d; the library runs %d", hidden,
                            l->hidden);
    unsigned type = (unsigned)m->dtype; /* may be any number */
    if (type >= sizeof(dtypes) / sizeof(dtypes[0]))
        return encoder_fail(ENCODER_BAD_ARGUMENT, "%d is no type of weights; the library takes %s",
                            (int)type, dtypes[l->dtype]);
    if (m->dtype != l->dtype && !encoder_is_rounded(m))
        return encoder_fail(ENCODER_BAD_ARGUMENT, "the weights are %s; the library takes %s%s",
                            dtypes[type], dtypes[l->dtype],
                            l->element_bytes == 2 ? " or fp32" : "");
    if (m->layers < 1)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "the model has %d layers; expected at least 1",
                            m->layers);
    if (encoder_check_eps("model", m->eps) != ENCODER_OK)
        return ENCODER_BAD_ARGUMENT;
    if (encoder_on_cpu() && m->on_device != 0)
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "on_device is %d for a library for CPUs; give 0, and weights in the "
                            "host's memory",
                            m->on_device);
    if (encoder_has(ENCODER_SCORE_BIAS) && m->score_bias == NULL)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "score_bias is null");
    if (!is_base(m->rope, m->rope_theta, ENCODER_ROPE))
        return refuse_base("rope_theta", m->rope_theta);
    if (!is_base(m->local_rope, m->local_rope_theta, ENCODER_ROPE | ENCODER_LOCAL))
        return refuse_base("local_rope_theta", m->local_rope_theta);
    if (encoder_has(ENCODER_ROPE) && m->rope_factor != 0 &&
        !(m->rope_factor >= 1 && m->rope_factor <= factor_max))
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "the model has rope_factor %g; expected 0, or a number from 1 to %g",
                            m->rope_factor, factor_max);
    for (int layer = 0; layer < m->layers; layer++)
        for (int i = 0; i < ROPE; i++)
            if (encoder_layer_weights[i].name != NULL && encoder_given_weight(m, layer, i) == NULL)
                return encoder_fail(ENCODER_BAD_ARGUMENT, "layer %d: %s is null", layer,
                                    encoder_layer_weights[i].name);
    return ENCODER_OK;
}

/* Numbers of the score bias for each head, of sequences of this length. */
static size_t distances(int seq_len)
{
    return 2 * (size_t)seq_len - 1;
}

/* The first layer that has a layer's weight: rotations are those of its kind. */
static int owner(int layer, int id)
{
    return id < ROPE ? layer : id == ROPE ? encoder_kind(layer) : 0;
}

/* Whether no kernel reads a layer's matrix but in e4m3. */
static bool is_in_e4m3(int id)
{
    static const unsigned gemms[ROPE] = {[0] = 1, [2] = 2, [6] = 4, [8] = 8};
    return id < ROPE && (encoder_library.precision & gemms[id]) != 0;
}

/* Gives all weights their places: those that layers share once, the score bias for each plan. */
static size_t place_weights(const struct encoder_model *m, void *base, struct encoder *e)
{
    const struct encoder_info *l = &encoder_library;
    struct carving c = {.base = (char *)base};
    for (int i = 0; i < m->layers * WEIGHTS; i++) {
        int layer = i / WEIGHTS, id = i % WEIGHTS;
        bool is_given =
            encoder_layer_weights[id].name != NULL && encoder_given_weight(m, layer, id) != NULL;
        if (owner(layer, id) != layer)
            e->weight[i] = e->weight[owner(layer, id) * WEIGHTS + id];
        else if (id != SCORE_BIAS && !is_in_e4m3(id) &&
                 (is_given || (id == ROPE && encoder_has(ENCODER_ROPE))))
            e->weight[i] = encoder_carve(&c, encoder_weight_bytes(id));
    }
    for (int i = 0; i < l->plans && encoder_has(ENCODER_SCORE_BIAS); i++)
        e->score_bias[i] = encoder_carve(
            &c, (size_t)l->heads * distances(encoder_plans[i]->about.seq_len) * sizeof(float));
    return c.used;
}

/* The rotations of rotary embeddings, as encoder.h says. */
static int compute_rope(const struct encoder_model *m, double base, void *to)
{
    const struct encoder_info *l = &encoder_library;
    float *table = malloc(encoder_weight_bytes(ROPE));
    if (table == NULL)
        return encoder_fail(ENCODER_NO_MEMORY, "out of memory");
    fp_rotations(l->seq_len, l->head_size, base, m->rope_factor, table);
    int status = encoder_device_copy(to, table, encoder_weight_bytes(ROPE), false);
    free(table);
    return status;
}

/* Of global or of local layers. */
static int copy_rope(const struct encoder_model *m, bool local, void *to)
{
    const float *given = local ? m->local_rope : m->rope;
    return given == NULL
               ? compute_rope(m, local ? m->local_rope_theta : m->rope_theta, to)
               : encoder_device_copy(to, given, encoder_weight_bytes(ROPE), m->on_device != 0);
}

/* Distances that are in the plan's sequences lie in the middle of all. */
static int copy_score_bias(const struct encoder_model *m, int plan, float *to)
{
    const struct encoder_info *l = &encoder_library;
    int seq_len = encoder_plans[plan]->about.seq_len, status = ENCODER_OK;
    size_t n = distances(seq_len), first = (size_t)(l->seq_len - seq_len);
    for (int h = 0; h < l->heads && status == ENCODER_OK; h++)
        status = encoder_device_copy(to + (size_t)h * n,
                                     m->score_bias + (size_t)h * distances(l->seq_len) + first,
                                     n * sizeof(float), m->on_device != 0);
    return status;
}

static int copy_weights(const struct encoder_model *m, struct encoder *e)
{
    int status = encoder_device_allocate(place_weights(m, NULL, e), &e->weights);
    if (status == ENCODER_OK)
        place_weights(m, e->weights, e);
    for (int i = 0; i < m->layers * WEIGHTS && status == ENCODER_OK; i++) {
        int layer = i / WEIGHTS, id = i % WEIGHTS;
        void *to = (void *)(uintptr_t)e->weight[i];
        if (to == NULL || owner(layer, id) != layer)
            continue;
        status = id == ROPE ? copy_rope(m, encoder_kind(layer) == 1, to)
                            : encoder_copy_weight(m, layer, id, to);
    }
    for (int i = 0; i < encoder_library.plans && status == ENCODER_OK; i++)
        if (encoder_has(ENCODER_SCORE_BIAS))
            status = copy_score_bias(m, i, e->score_bias[i]);
    return status;
}

int encoder_create(const struct encoder_model *model, struct encoder **out)
{
    if (out == NULL)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "there is no place for the handle");
    *out = NULL;
    int status = check_model(model);
    if (status == ENCODER_OK)
        status = encoder_device_check();
    if (status != ENCODER_OK)
        return status;
    struct encoder *e = calloc(1, sizeof(*e));
    if (e != NULL) {
        e->weight = calloc((size_t)model->layers * WEIGHTS, sizeof(*e->weight));
        e->score_bias = calloc((size_t)encoder_library.plans, sizeof(*e->score_bias));
    }
    if (e == NULL || e->weight == NULL || e->score_bias == NULL) {
        encoder_destroy(e);
        return encoder_fail(ENCODER_NO_MEMORY, "out of memory: %d layers", model->layers);
    }
    e->layers = model->layers;
    e->eps = model->eps;
    status = copy_weights(model, e);
    if (status == ENCODER_OK)
        status = encoder_device_open(model, e);
    if (status == ENCODER_OK)
        *out = e;
    else
        encoder_destroy(e);
    return status;
}

void encoder_destroy(struct encoder *e)
{
    if (e == NULL)
        return;
    encoder_device_close(e);
    encoder_device_free(e->weights);
    free(e->weight);
    free(e->score_bias);
    free(e);
}
