#include "codegen/cuda_int.h"
#include "kernels/cuda/abi.h"

#include <assert.h>

static_assert(ARRAY_LEN(((struct fp_args *)0)->tensor) == TENSOR_COUNT, "abi.h: tensors");
static_assert(ARRAY_LEN(((struct fp_args *)0)->weight) == WEIGHT_COUNT, "abi.h: weights");
static_assert(FP_BLOCK == MASK_BLOCK, "abi.h: blocks of the mask");

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- dynamic shared memory ------------------------------------------------------------------- */

/* The sizes of structs that only the CUDA compiler sees; a compiled test compares each with its
 * sizeof. */
enum {
    SWIZZLE_BYTES = 1024, /* ALIGN of wgmma_shape */
    SLAB_PAD = 8,         /* floats behind a row of a warp's tile on its way out */
    FFMA_SCORES = 16 * 68 /* floats in which a warp of fp32 stages probabilities */
};

/* sizeof(gemm_shape::smem) of gemm.cuh. */
static int gemm_shared(const struct cuda_tile *t, enum dtype dtype)
{
    int bytes = dtypes[dtype].bytes, step = CUDA_STEP_BYTES / bytes;
    int b_pad = dtype == DTYPE_FP32 ? 4 : 8;
    int pipe = t->depth * bytes * (t->bm * (step + 16 / bytes) + step * (t->bn + b_pad));
    int slab = t->warps_m * t->warps_n * 16 * (t->bn / t->warps_n + SLAB_PAD) * 4;
    return (int)max_of(pipe, slab);
}

/* sizeof(wgmma_shape::smem) of gemm_wgmma.cuh and what aligns it. */
static int wgmma_shared(const struct cuda_tile *t)
{
    int pipe = t->depth * (t->bm + t->bn) * CUDA_STEP_BYTES;
    int slab = t->warps_m * 16 * (t->bn + SLAB_PAD) * 4;
    return SWIZZLE_BYTES + (int)max_of(pipe, slab);
}

/* sizeof(attention_smem) of attention.cuh, one for each four warps. */
static int attention_shared(enum dtype dtype, int head_size, int threads)
{
    int rows = 3 * MASK_BLOCK * (head_size * dtypes[dtype].bytes + 16);
    int staged = dtype == DTYPE_FP32 ? 4 * FFMA_SCORES * 4 : 16;
    return threads / CUDA_ATTENTION_THREADS * (rows + staged);
}

/* Stages use the same memory one after another. */
int cuda_shared_bytes(const struct cuda_kernel *k, enum dtype dtype, int head_size)
{
    int bytes = 0;
    if (k->of_kind[STAGE_GEMM] > 0)
        bytes = k->tile->kind == CUDA_WGMMA ? wgmma_shared(k->tile) : gemm_shared(k->tile, dtype);
    if (k->of_kind[STAGE_ATTENTION] > 0)
        bytes = (int)max_of(bytes, attention_shared(dtype, head_size, k->threads));
    return bytes;
}

/* sizeof(hand_attention::smem) of handwritten.cuh.  split_keys: the warps share 16 query rows;
 * else each takes 16. */
static int hand_shared(enum dtype dtype, int head_size, bool split_keys)
{
    if (dtype == DTYPE_FP32)
        return 16 * head_size * 4;
    return (split_keys ? 4 * 16 * (head_size + 4) * 4 : 16) + 2 * 4 * 16 * 4;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Blocks of query rows of all heads. */
static int64_t query_blocks(const struct workload *w)
{
    return (int64_t)w->batch * w->heads * ceil_div(w->seq_len, MASK_BLOCK);
}

static void add_gemm(const struct cuda_kernel *k, const struct cuda_stage *s,
                     const struct workload *w, struct cuda_launch *out)
{
    const struct cuda_tile *t = k->tile;
    int64_t strips = ceil_div(workload_tokens(w), t->bm);
    int64_t tiles = strips * ceil_div(dim_size(ops[cuda_gemm_op(s)].columns, w), t->bn);
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
        int64_t vectors = tensor_elements(TENSOR_OF(s->last), w) * dtypes[w->dtype].bytes / 16;
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
    *out = (struct cuda_launch){.threads = CUDA_ATTENTION_THREADS,
                                .tiles = query_blocks(w) * parts,
                                .shared_bytes = hand_shared(w->dtype, w->head_size, split_keys),
                                .sync_words = FP_SYNC_TILES};
}
