/* Operators 3-4 of the layer in one launch, as `fuseplan generate 44373` emits them.
 *
 *    3 mask               drop the keys that the mask does not keep
 *    4 softmax            softmax over the keys
 *
 * Reads scores (B,H,S,S)
 * Writes softmax (B,H,S,S)
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all thread blocks meet:
 *   1. mask+softmax: 64 query rows at a time
 */
#include "attention.cuh"

using dtype = fp::fp32;
enum { W = 32 }; /* head size */

static FP_DEVICE void
stage_03_04_mask_softmax(const fp_args &a, void *shared)
{
    constexpr int ops =
        FP_MASK | FP_SOFTMAX;
    fp_attention io = {};
    io.scores = &a.tensor[3]; /* scores */
    io.out = &a.tensor[5]; /* softmax */
    fp::attention<dtype, W, ops, 128>(a, io, shared).run();
}

extern "C" __global__ void __launch_bounds__(128, 1)
segment_03_04_mask_softmax(const __grid_constant__ fp_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    fp::await_dependencies();
    stage_03_04_mask_softmax(a, shared);
}
