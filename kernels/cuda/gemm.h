/* The tile of a GEMM by mma.sync, and the shared memory that it takes.  C, and C++ for nvcc. */
#ifndef FUSEPLAN_CUDA_GEMM_H
#define FUSEPLAN_CUDA_GEMM_H

#include "abi.h"

/* Bytes of the inner dimension in one buffer.  A step of 64 would make as many copies for half the
 * products. */
enum { FP_GEMM_STEP_BYTES = 128 };

struct fp_gemm_tile {
    int bm, bn;           /* tokens, columns */
    int warps_m, warps_n; /* the grid of warps that share it */
    int depth;            /* buffers, each of FP_GEMM_STEP_BYTES */
};

/* Bytes of shared memory of a thread block.  element: bytes of one; tensor_cores: they multiply,
 * else FFMA does. */
FP_CONSTANT int fp_gemm_tile_shared(struct fp_gemm_tile t, int element, bool tensor_cores)
{
    const int step = FP_GEMM_STEP_BYTES / element, pad = tensor_cores ? 8 : 4;
    const int pipe = t.depth * element * (t.bm * (step + 16 / element) + step * (t.bn + pad));
    const int slab = t.warps_m * t.warps_n * 16 * (t.bn / t.warps_n + 8) * 4;
    return pipe > slab ? pipe : slab;
}

#endif
