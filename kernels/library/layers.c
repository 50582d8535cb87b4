/* A call's work: its x, all layers by their segments, its y. */
#include "plan.h"

/* Where a layer writes.  Where y and flow take turns, y is the last output. */
static void *output_of(const struct run *r, int layer, void *y, void *flow)
{
    return flow == NULL || (r->e->layers - 1 - layer) % 2 == 0 ? y : flow;
}

/* Where the caller wants a layer's output, unless it is y; null: nowhere. */
static void *wanted(const struct run *r, int layer)
{
    const struct encoder_info *l = &encoder_library;
    size_t bytes = (size_t)r->call->batch * (size_t)r->call->seq_len * (size_t)l->hidden *
                   (size_t)l->element_bytes;
    if (r->call->outputs == NULL || layer == r->e->layers - 1)
        return NULL;
    return (char *)r->call->outputs + (size_t)layer * bytes;
}

/* A layer's output is the next one's input; likewise its norm, where norms stand before. */
static int run_layers(struct run *r)
{
    bool pre = encoder_has(ENCODER_PRE);
    void *x = r->x, *n = pre ? output_of(r, -1, r->yn, r->flow_n) : NULL;
    int status = pre ? encoder_normalise(r, x, n) : ENCODER_OK;
    for (int layer = 0; layer < r->e->layers && status == ENCODER_OK; layer++) {
        void *y = output_of(r, layer, r->y, r->flow), *yn = output_of(r, layer, r->yn, r->flow_n);
        void *out = wanted(r, layer);
        if (out != NULL && !r->padded)
            y = out;
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
        if (status == ENCODER_OK && out != NULL && r->padded)
            status = encoder_give(r, y, out);
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
