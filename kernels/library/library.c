/* What the library is, and a call: its plan and its workspace.  encoder.h says what functions do.
 */
#include "plan.h"

#include <limits.h>
#include <stdint.h>

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
    r->places = first;
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

static bool is_padded(const struct run *r)
{
    if (r->call->device_lengths != NULL || r->call->device_mask != NULL)
        return true;
    for (int b = 0; b < r->plan->about.batch; b++)
        if (encoder_length(r, b) != r->plan->about.seq_len)
            return true;
    return false;
}

int encoder_run(const struct encoder *e, const struct encoder_call *call)
{
    int status = encoder_check_call(e, call);
    if (status != ENCODER_OK)
        return status;
    const int index = encoder_find(call->batch, call->seq_len);
    status = encoder_check_memory(e, call, encoder_plan_at(index),
                                  encoder_workspace_bytes(call->batch, call->seq_len));
    if (status == ENCODER_OK)
        status = encoder_start();
    if (status != ENCODER_OK)
        return status;
    const struct encoder_info *l = &encoder_library;
    struct run r = {.e = e, .call = call, .stream = call->stream, .index = index};
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

/* ---- embeddings ------------------------------------------------------------------------------ */

static int check_embedding(const struct encoder_embedding *e)
{
    enum { ALIGNMENT = 16 };
    if (e == NULL || e->ids == NULL || e->word == NULL || e->gamma == NULL || e->x == NULL)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "%s null",
                            e == NULL          ? "the embedding is"
                            : e->ids == NULL   ? "ids are"
                            : e->word == NULL  ? "the table word is"
                            : e->gamma == NULL ? "gamma is"
                                               : "the output x is");
    if (e->batch < 1 || e->seq_len < 1 || (long)e->batch * e->seq_len > INT_MAX)
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "the batch is (%d, %d); expected positive sizes, and at most %d tokens",
                            e->batch, e->seq_len, INT_MAX);
    if (e->mask != NULL && e->lengths != NULL)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "mask and lengths are given; give one of them");
    if (e->word_rows < 1 || (e->type != NULL && e->type_rows < 1))
        return encoder_fail(ENCODER_BAD_ARGUMENT, "word has %ld rows, type %ld; expected some",
                            e->word_rows, e->type_rows);
    const unsigned long before = e->padding_id >= 0 ? (unsigned long)e->padding_id + 1 : 0;
    const unsigned long rows = (unsigned long)e->seq_len + before;
    if (e->position != NULL && (e->position_rows < 0 || (unsigned long)e->position_rows < rows))
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "position has %ld rows; sequences of %d need at least %lu",
                            e->position_rows, e->seq_len, rows);
    if (((uintptr_t)e->word | (uintptr_t)e->type | (uintptr_t)e->position | (uintptr_t)e->gamma |
         (uintptr_t)e->beta | (uintptr_t)e->x) %
            ALIGNMENT !=
        0)
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "x, a table, gamma or beta is not aligned to %d bytes", ALIGNMENT);
    if (e->stream != NULL && encoder_on_cpu())
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "a stream is given to a library for CPUs; give null");
    return ENCODER_OK;
}

int encoder_embed(const struct encoder_embedding *e)
{
    int status = check_embedding(e);
    if (status == ENCODER_OK)
        status = encoder_check_eps("embedding", e->eps);
    if (status == ENCODER_OK)
        status = encoder_start();
    return status == ENCODER_OK ? encoder_launch_embed(e) : status;
}
