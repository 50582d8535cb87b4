/* Dynamic shared memory of kernels. */
#include "codegen/cuda_int.h"

/* The sizes of structs that only the CUDA compiler sees; a compiled test compares each with its
 * sizeof. */
enum {
    SLAB_PAD = 8 /* floats behind a row of a warp's tile on its way out */
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

/* Stages use the same memory one after another. */
int cuda_shared_bytes(const struct cuda_kernel *k, enum dtype dtype, int head_size)
{
    int bytes = 0;
    if (k->of_kind[STAGE_GEMM] > 0)
        bytes = gemm_shared(k->tile, dtype);
    if (k->of_kind[STAGE_ATTENTION] > 0)
        bytes = (int)max_of(
            bytes, k->threads / CUDA_ATTENTION_THREADS *
                       fp_attention_shared(head_size, dtypes[dtype].bytes, dtype != DTYPE_FP32));
    return bytes;
}
