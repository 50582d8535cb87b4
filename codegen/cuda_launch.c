#include "codegen/cuda_int.h"

#include <assert.h>

static_assert(ARRAY_LEN(((struct fp_args *)0)->tensor) == TENSOR_COUNT, "abi.h: tensors");
static_assert(ARRAY_LEN(((struct fp_args *)0)->weight) == WEIGHT_MAX, "abi.h: weights");
static_assert(FP_BLOCK == MASK_BLOCK, "abi.h: blocks of the mask");

/* Blocks of query rows of all heads. */
static int64_t query_blocks(const struct workload *w)
{
    return (int64_t)w->batch * w->heads * ceil_div(w->seq_len, MASK_BLOCK);
}

static void add_gemm(const struct cuda_kernel *k, const struct cuda_stage *s,
                     const struct workload *w, struct cuda_launch *out)
{
    const struct fp_gemm_tile *t = k->tile;
    int64_t strips = ceil_div(workload_tokens(w), t->bm);
    int64_t tiles = strips * ceil_div(cuda_gemm_columns(s, w), t->bn);
    int64_t parts = tiles * k->split;
    out->tiles = max_of(out->tiles, parts);
    out->sync_words = max_of(out->sync_words, FP_SYNC_TILES + tiles + strips);
    if (k->split > 1)
        out->workspace_bytes = max_of(out->workspace_bytes, parts * t->bm * t->bn * 4);
}

static void add_stage(const struct cuda_kernel *k, const struct cuda_stage *s,
                      const struct workload *w, struct cuda_launch *out)
{
    int64_t tiles = 0;
    switch (s->kind) {
    case STAGE_GEMM:
        add_gemm(k, s, w, out);
        return;
    case STAGE_ATTENTION:
        tiles = ceil_div(query_blocks(w), k->threads / CUDA_ATTENTION_THREADS);
        break;
    case STAGE_ROWS:
        tiles = ceil_div(workload_tokens(w), k->threads / 32);
        break;
    case STAGE_ELEMENTWISE: {
        int64_t vectors =
            tensor_elements(s->chain->ops[s->first].input, w) * dtypes[w->dtype].bytes / 16;
        tiles = ceil_div(vectors, k->threads);
        break;
    }
    }
    out->tiles = max_of(out->tiles, tiles);
}

void cuda_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out)
{
    struct cuda_kernel k;
    cuda_kernel_of(c, &k);
    *out = (struct cuda_launch){.threads = k.threads,
                                .shared_bytes = cuda_shared_bytes(&k, w->dtype, w->head_size),
                                .cooperative = k.count > 1,
                                .sync_words = FP_SYNC_TILES};
    for (int i = 0; i < k.count; i++)
        add_stage(&k, &k.stages[i], w, out);
}

void cuda_launch_handwritten(const struct choice *c, const struct workload *w,
                             struct cuda_launch *out)
{
    bool split_keys = choice_value(c, CUDA_HAND_KNOB_WARPS) == CUDA_HAND_KEYS;
    int parts = w->dtype == DTYPE_FP32 || split_keys ? 4 : 1;
    *out = (struct cuda_launch){
        .threads = CUDA_ATTENTION_THREADS,
        .tiles = query_blocks(w) * parts,
        .shared_bytes = fp_handwritten_shared(w->head_size, w->dtype != DTYPE_FP32, split_keys),
        .sync_words = FP_SYNC_TILES};
}
