/* What kernels outside the segments do with rows: bring x to the layers and y back, embed,
 * normalise and round what the first layer reads. */
#include "launch.h"

/* As C sees kernels. */
void encoder_move_rows(void);      /* lengths.cu */
void encoder_embed_rows(void);     /* embed.cu */
void encoder_normalise_rows(void); /* normalise.cu */
void encoder_quantise_rows(void);  /* quantise.cu */

static int move_rows(const struct run *r, bool in, void *call, void *layers)
{
    enum { THREADS = 128, ROWS = THREADS / 32, COPY_BLOCKS = 4096, ZERO_BLOCKS = 1024 };
    const struct encoder_info *l = &encoder_library;
    struct fp_moving c = {.batch = r->call->batch,
                          .seq_len = r->call->seq_len,
                          .pieces = l->hidden * l->element_bytes / 16,
                          .in = in,
                          .lengths = r->space.lengths,
                          .offset = r->packed ? r->space.offset : NULL,
                          .place = r->call->device_mask != NULL ? r->space.place : NULL,
                          .pitch = r->plan->about.seq_len,
                          .call = call,
                          .layers = layers};
    int blocks = (c.batch * c.seq_len + ROWS - 1) / ROWS;
    int most = call == layers ? ZERO_BLOCKS : COPY_BLOCKS;
    return encoder_launch_outside(r, (const void *)encoder_move_rows, &c,
                                  blocks < most ? blocks : most, THREADS);
}

int encoder_launch_embed(const struct encoder_embedding *e)
{
    enum { THREADS = 128, ROWS = THREADS / 32 };
    struct fp_embedding c = {*e, encoder_library.hidden, encoder_library.dtype};
    const struct run r = {.stream = e->stream};
    return encoder_launch_outside(&r, (const void *)encoder_embed_rows, &c,
                                  (e->batch * e->seq_len + ROWS - 1) / ROWS, THREADS);
}

int encoder_take_x(const struct run *r)
{
    return move_rows(r, true, (void *)(uintptr_t)r->call->x, r->x);
}

int encoder_give(const struct run *r, void *from, void *to)
{
    return move_rows(r, false, to, from);
}

int encoder_normalise(const struct run *r, const void *x, void *n)
{
    enum { THREADS = 128, BLOCKS = 4096 };
    const struct encoder_info *l = &encoder_library;
    struct fp_normalising c = {.rows = r->args.tokens,
                               .columns = l->hidden,
                               .dtype = (int)l->dtype,
                               .rms = encoder_has(ENCODER_RMS),
                               .eps = r->args.eps,
                               .live = r->args.live,
                               .x = x,
                               .gamma = r->e->weight[FIRST_GAMMA],
                               .beta = r->e->weight[FIRST_BETA],
                               .n = n};
    return encoder_launch_outside(r, (const void *)encoder_normalise_rows, &c,
                                  c.rows < BLOCKS ? c.rows : BLOCKS, THREADS);
}

int encoder_quantise(const struct run *r, const struct plan_e4m3 *of)
{
    enum { THREADS = 128, BLOCKS = 4096 };
    const int tensor = encoder_has(ENCODER_PRE) ? TENSOR_N : TENSOR_X;
    struct fp_quantising c = {.rows = r->args.tokens,
                              .columns = encoder_library.hidden,
                              .dtype = (int)encoder_library.dtype,
                              .live = r->args.live,
                              .inverse = 1 / encoder_scales.in[0][of->in],
                              .x = r->args.tensor[tensor],
                              .codes = r->places + 2 * of->in_at};
    return encoder_launch_outside(r, (const void *)encoder_quantise_rows, &c,
                                  c.rows < BLOCKS ? c.rows : BLOCKS, THREADS);
}
