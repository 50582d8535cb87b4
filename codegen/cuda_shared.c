/* Dynamic shared memory of kernels. */
#include "codegen/cuda_int.h"

/* The sizes of structs that only the CUDA compiler sees; a compiled test compares each with its
 * sizeof. */
enum {
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

/* sizeof(attention_smem) of attention.cuh, one for each four warps. */
static int attention_shared(enum dtype dtype, int head_size, int threads)
{
    int rows = 3 * MASK_BLOCK * (head_size * dtypes[dtype].bytes + 16);
    int words = 2 * MASK_BLOCK * 8;
    int staged = dtype == DTYPE_FP32 ? 4 * FFMA_SCORES * 4 : 16;
    return threads / CUDA_ATTENTION_THREADS * (rows + words + staged);
}

/* Stages use the same memory one after another. */
int cuda_shared_bytes(const struct cuda_kernel *k, enum dtype dtype, int head_size)
{
    int bytes = 0;
    if (k->of_kind[STAGE_GEMM] > 0)
        bytes = gemm_shared(k->tile, dtype);
    if (k->of_kind[STAGE_ATTENTION] > 0)
        bytes = (int)max_of(bytes, attention_shared(dtype, head_size, k->threads));
    return bytes;
}

/* sizeof(hand_attention::smem) of handwritten.cuh.  split_keys: the warps share 16 query rows;
 * else each takes 16. */
int cuda_hand_shared_bytes(enum dtype dtype, int head_size, bool split_keys)
{
    if (dtype == DTYPE_FP32)
        return 16 * head_size * 4;
    return (split_keys ? 4 * 16 * (head_size + 4) * 4 : 16) + 2 * 4 * 16 * 4;
}
