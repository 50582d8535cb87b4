/* The library's functions, the same for every target.  encoder.h says what they do. */
#include "plan.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the library is --------------------------------------------------------------------- */

const struct encoder_info *encoder_describe(void)
{
    return &encoder_library;
}

const struct encoder_plan *encoder_plan_at(int index)
{
    return index >= 0 && index < encoder_library.plans ? &encoder_plans[index]->about : NULL;
}

int encoder_find(int batch, int seq_len)
{
    int found = -1;
    if (batch < 1 || seq_len < 1)
        return -1;
    for (int i = encoder_library.plans - 1; i >= 0; i--) {
        const struct encoder_plan *p = &encoder_plans[i]->about;
        if (p->batch == batch && p->seq_len == seq_len)
            return i;
        if (p->batch >= batch && p->seq_len >= seq_len)
            found = i;
    }
    return found;
}

/* ---- a model --------------------------------------------------------------------------------- */

enum { ALIGNMENT = 256 };
static const double eps_min = 1e-37, eps_max = 1; /* kernels take it as a float */
static const double theta_min = 1, theta_max = 1e12, factor_max = 1e6;

void *encoder_carve(struct carving *c, size_t bytes)
{
    void *at = c->base != NULL ? c->base + c->used : NULL;
    c->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static size_t weight_bytes(int weight)
{
    bool table = weight == ROPE || weight == SCORE_BIAS;
    return (size_t)encoder_layer_weights[weight].elements *
           (table ? sizeof(float) : (size_t)encoder_library.element_bytes);
}

static const void *weight_of(const struct encoder_model *m, int layer, int index)
{
    const void *holder = index < ROPE ? (const void *)&m->weights[layer] : m;
    return *(const void *const *)((const char *)holder + encoder_layer_weights[index].at);
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
    if (m->dtype != l->dtype)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "the weights are %s; the library takes %s",
                            dtypes[type], dtypes[l->dtype]);
    if (m->layers < 1)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "the model has %d layers; expected at least 1",
                            m->layers);
    if (!(m->eps >= eps_min && m->eps <= eps_max))
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "the model has eps %g; expected a number from %g to %g, such as 1e-12",
                            m->eps, eps_min, eps_max);
    if (encoder_on_cpu() && m->on_device != 0)
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "on_device is %d for a library for CPUs; give 0, and weights in the "
                            "host's memory",
                            m->on_device);
    if (encoder_has(ENCODER_SCORE_BIAS) && m->score_bias == NULL)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "score_bias is null");
    if (encoder_has(ENCODER_ROPE) && m->rope == NULL &&
        !(m->rope_theta >= theta_min && m->rope_theta <= theta_max))
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "the model has rope_theta %g; expected a number from %g to %g, such as "
                            "10000",
                            m->rope_theta, theta_min, theta_max);
    if (encoder_has(ENCODER_ROPE) && m->rope_factor != 0 &&
        !(m->rope_factor >= 1 && m->rope_factor <= factor_max))
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "the model has rope_factor %g; expected 0, or a number from 1 to %g",
                            m->rope_factor, factor_max);
    for (int layer = 0; layer < m->layers; layer++)
        for (int i = 0; i < ROPE; i++)
            if (encoder_layer_weights[i].name != NULL && weight_of(m, layer, i) == NULL)
                return encoder_fail(ENCODER_BAD_ARGUMENT, "layer %d: %s is null", layer,
                                    encoder_layer_weights[i].name);
    return ENCODER_OK;
}

/* Numbers of the score bias for each head, of sequences of this length. */
static size_t distances(int seq_len)
{
    return 2 * (size_t)seq_len - 1;
}

/* Gives all weights their places: those that layers share once, the score bias for each plan. */
static size_t place_weights(const struct encoder_model *m, void *base, struct encoder *e)
{
    const struct encoder_info *l = &encoder_library;
    struct carving c = {.base = (char *)base};
    for (int i = 0; i < m->layers * WEIGHTS; i++) {
        int layer = i / WEIGHTS, id = i % WEIGHTS;
        bool is_given = encoder_layer_weights[id].name != NULL && weight_of(m, layer, id) != NULL;
        if (layer > 0 && id >= ROPE)
            e->weight[i] = e->weight[id];
        else if (id != SCORE_BIAS && (is_given || (id == ROPE && encoder_has(ENCODER_ROPE))))
            e->weight[i] = encoder_carve(&c, weight_bytes(id));
    }
    for (int i = 0; i < l->plans && encoder_has(ENCODER_SCORE_BIAS); i++)
        e->score_bias[i] = encoder_carve(
            &c, (size_t)l->heads * distances(encoder_plans[i]->about.seq_len) * sizeof(float));
    return c.used;
}

/* The rotations of rotary embeddings, as encoder.h says. */
static int compute_rope(const struct encoder_model *m, void *to)
{
    const struct encoder_info *l = &encoder_library;
    const double factor = m->rope_factor > 0 ? m->rope_factor : 1, theta = factor * m->rope_theta;
    const double first = pow(factor, -2.0 / l->head_size);
    float *table = malloc(weight_bytes(ROPE));
    if (table == NULL)
        return encoder_fail(ENCODER_NO_MEMORY, "out of memory");
    for (int s = 0; s < l->seq_len; s++)
        for (int c = 0; c < l->head_size; c += 2) {
            double angle = s * (first * pow(theta, -(double)c / l->head_size));
            table[(size_t)s * (size_t)l->head_size + (size_t)c] = (float)cos(angle);
            table[(size_t)s * (size_t)l->head_size + (size_t)c + 1] = (float)sin(angle);
        }
    int status = encoder_device_copy(to, table, weight_bytes(ROPE), false);
    free(table);
    return status;
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
        if (to == NULL || (layer > 0 && id >= ROPE))
            continue;
        status = id == ROPE && m->rope == NULL
                     ? compute_rope(m, to)
                     : encoder_device_copy(to, weight_of(m, layer, id), weight_bytes(id),
                                           m->on_device != 0);
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
    if (e != NULL)
        e->weight = calloc((size_t)model->layers * WEIGHTS, sizeof(*e->weight));
    if (e != NULL)
        e->score_bias = calloc((size_t)encoder_library.plans, sizeof(*e->score_bias));
    if (e == NULL || e->weight == NULL || e->score_bias == NULL) {
        if (e != NULL) {
            free(e->weight);
            free(e->score_bias);
        }
        free(e);
        return encoder_fail(ENCODER_NO_MEMORY, "out of memory: %d layers", model->layers);
    }
    e->layers = model->layers;
    e->eps = model->eps;
    status = copy_weights(model, e);
    if (status == ENCODER_OK)
        status = encoder_device_open(e);
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

/* ---- running --------------------------------------------------------------------------------- */

/* Of x, or of y. */
static size_t batch_bytes(const struct plan *p)
{
    const struct encoder_info *l = &encoder_library;
    return (size_t)p->about.batch * (size_t)p->about.seq_len * (size_t)l->hidden *
           (size_t)l->element_bytes;
}

static bool is_exact(const struct plan *p, int batch, int seq_len)
{
    return p->about.batch == batch && p->about.seq_len == seq_len;
}

/* Lays out the workspace.  A plan that is packed, or larger than the batch, has its own x and y. */
static size_t carve(const struct plan *p, bool exact, void *workspace, struct run *r)
{
    struct carving c = {.base = workspace};
    const size_t element = (size_t)encoder_library.element_bytes;
    char *first = encoder_carve(&c, (size_t)p->tensor_elements * element);
    for (int t = 0; t < TENSORS; t++) {
        void *at = NULL;
        if (first != NULL && p->tensor_at[t] >= 0)
            at = first + (size_t)p->tensor_at[t] * element;
        r->args.tensor[t] = at;
    }
    r->flow = r->args.tensor[TENSOR_X];
    r->flow_n = r->args.tensor[TENSOR_N];
    bool copies = !exact || p->about.packed != 0;
    r->x = !copies ? NULL : encoder_carve(&c, batch_bytes(p));
    r->y = !copies ? NULL : encoder_carve(&c, batch_bytes(p));
    r->yn = !encoder_has(ENCODER_PRE) ? NULL : encoder_carve(&c, batch_bytes(p));
    encoder_carve_run(p, &c, r);
    return c.used;
}

size_t encoder_workspace_bytes(int batch, int seq_len)
{
    struct run r = {.index = encoder_find(batch, seq_len)};
    if (r.index < 0)
        return 0;
    const struct plan *p = encoder_plans[r.index];
    return carve(p, is_exact(p, batch, seq_len), NULL, &r);
}

int encoder_length(const struct run *r, int sequence)
{
    if (sequence >= r->call->batch)
        return 0;
    return r->call->lengths != NULL ? r->call->lengths[sequence] : r->call->seq_len;
}

static bool is_padded(const struct run *r)
{
    if (r->call->device_lengths != NULL)
        return true;
    for (int b = 0; b < r->plan->about.batch; b++)
        if (encoder_length(r, b) != r->plan->about.seq_len)
            return true;
    return false;
}

/* Where a layer writes.  Where y and flow take turns, y is the last output. */
static void *output_of(const struct run *r, int layer, void *y, void *flow)
{
    return flow == NULL || (r->e->layers - 1 - layer) % 2 == 0 ? y : flow;
}

/* A layer's output is the next one's input; likewise its norm, where norms stand before. */
static int run_layers(struct run *r)
{
    bool pre = encoder_has(ENCODER_PRE);
    void *x = r->x, *n = pre ? output_of(r, -1, r->yn, r->flow_n) : NULL;
    int status = pre ? encoder_normalise(r, x, n) : ENCODER_OK;
    for (int layer = 0; layer < r->e->layers && status == ENCODER_OK; layer++) {
        void *y = output_of(r, layer, r->y, r->flow), *yn = output_of(r, layer, r->yn, r->flow_n);
        r->args.tensor[TENSOR_X] = x;
        r->args.tensor[TENSOR_N] = n;
        if (pre)
            r->args.tensor[TENSOR_SUM] = y;
        r->args.tensor[TENSOR_Y] = pre ? yn : y;
        for (int i = 0; i < FIRST_GAMMA; i++)
            r->args.weight[i] = r->e->weight[layer * WEIGHTS + i];
        r->args.weight[SCORE_BIAS] = r->e->score_bias[r->index];
        for (int s = 0; s < r->plan->about.kernels && status == ENCODER_OK; s++)
            status = encoder_launch(r, layer, s);
        x = y;
        n = yn;
    }
    return status;
}

/* A call whose x the layers do not read where it lies is padded: its plan is larger, or packed. */
int encoder_work(struct run *r)
{
    int status = encoder_begin(r);
    if (status == ENCODER_OK && r->x != r->call->x)
        status = encoder_take_x(r);
    if (status == ENCODER_OK)
        status = run_layers(r);
    if (status == ENCODER_OK && r->padded)
        status = encoder_give(r, r->y, r->call->y);
    if (status == ENCODER_OK && r->padded && r->call->yn != NULL)
        status = encoder_give(r, r->yn, r->call->yn);
    return status;
}

int encoder_run(const struct encoder *e, const struct encoder_call *call)
{
    int status = encoder_check_call(e, call);
    if (status == ENCODER_OK)
        status = encoder_check_memory(call, encoder_workspace_bytes(call->batch, call->seq_len));
    if (status == ENCODER_OK)
        status = encoder_start();
    if (status != ENCODER_OK)
        return status;
    const struct encoder_info *l = &encoder_library;
    struct run r = {.e = e,
                    .call = call,
                    .stream = call->stream,
                    .index = encoder_find(call->batch, call->seq_len)};
    r.plan = encoder_plans[r.index];
    bool exact = is_exact(r.plan, call->batch, call->seq_len);
    carve(r.plan, exact, call->workspace, &r);
    r.padded = is_padded(&r);
    r.packed = r.padded && r.plan->about.packed != 0;
    if (exact && !r.packed) {
        r.x = (void *)(uintptr_t)call->x;
        r.y = call->y;
        r.yn = call->yn != NULL ? call->yn : r.yn;
    }
    r.args.batch = r.plan->about.batch;
    r.args.seq_len = r.plan->about.seq_len;
    r.args.heads = l->heads;
    r.args.head_size = l->head_size;
    r.args.hidden = l->hidden;
    r.args.ffn = l->ffn;
    r.args.eps = (float)e->eps;
    return encoder_submit(&r);
}
