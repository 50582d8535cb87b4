/* The library's functions, the same for every target.  encoder.h says what they do. */
#include "plan.h"

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
    if (p->local != NULL) {
        struct run local = {.plan = p->local, .local = true};
        encoder_carve_run(p->local, &c, &local);
        r->local_space = local.space;
    }
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

/* local: what runs local layers, if there are any.  A layer's output is the next one's input;
 * likewise its norm, where norms stand before. */
static int run_layers(struct run *r, struct run *local)
{
    bool pre = encoder_has(ENCODER_PRE);
    void *x = r->x, *n = pre ? output_of(r, -1, r->yn, r->flow_n) : NULL;
    int status = pre ? encoder_normalise(r, x, n) : ENCODER_OK;
    for (int layer = 0; layer < r->e->layers && status == ENCODER_OK; layer++) {
        void *y = output_of(r, layer, r->y, r->flow), *yn = output_of(r, layer, r->yn, r->flow_n);
        struct run *of = encoder_is_local(layer) ? local : r;
        of->args.tensor[TENSOR_X] = x;
        of->args.tensor[TENSOR_N] = n;
        if (pre)
            of->args.tensor[TENSOR_SUM] = y;
        of->args.tensor[TENSOR_Y] = pre ? yn : y;
        for (int i = 0; i < FIRST_GAMMA; i++)
            of->args.weight[i] = r->e->weight[layer * WEIGHTS + i];
        of->args.weight[SCORE_BIAS] = r->e->score_bias[r->index];
        of->began = of->began || r->began;
        for (int s = 0; s < r->plan->about.kernels && status == ENCODER_OK; s++)
            status = encoder_launch(of, layer, s);
        x = y;
        n = yn;
    }
    return status;
}

/* Sets what runs local layers, if there are any: all but mask and lists are the same. */
static int begin_local(const struct run *r, struct run *out)
{
    *out = *r;
    if (r->plan->local == NULL)
        return ENCODER_OK;
    out->plan = r->plan->local;
    out->local = true;
    out->space = r->local_space;
    encoder_share_lengths(r, out);
    return encoder_begin(out);
}

/* A call whose x the layers do not read where it lies is padded: its plan is larger, or packed. */
int encoder_work(struct run *r)
{
    struct run local;
    int status = encoder_begin(r);
    if (status == ENCODER_OK)
        status = begin_local(r, &local);
    if (status == ENCODER_OK && r->x != r->call->x)
        status = encoder_take_x(r);
    if (status == ENCODER_OK)
        status = run_layers(r, &local);
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
