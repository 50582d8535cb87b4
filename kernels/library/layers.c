/* A call's work: its x, all layers by their segments, its y. */
#include "plan.h"

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
