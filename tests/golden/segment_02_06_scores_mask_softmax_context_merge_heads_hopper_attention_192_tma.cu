/* Operators 2-6 of the layer in one launch, as `fuseplan generate 8362` emits them.
 *
 *    2 scores             q @ k^T / sqrt(W)  [2 P D]
 *    3 mask               drop the keys that the mask does not keep
 *    4 softmax            softmax over the keys
 *    5 context            probs @ v  [2 P D]
 *    6 merge_heads        heads side by side again
 *
 * Reads qkv_bias_split 3x(B,H,S,W)
 * Writes merge_heads (B,S,D)
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 */
#include "hopper_attention.cuh"

using dtype = fp::fp16;
enum { W = 64 }; /* head size */

/* head size, warpgroups that compute, query blocks, key blocks in flight, warps that load, thread
 * blocks that share a tile, and that a multiprocessor holds; tiles drawn, overlap, q in
 * registers, tiles of a cover, a result in e4m3, joined rows, TMA */
constexpr fp_hopper_attention shape = {64, 3, 3, 4, 4, 1, 1, true, true, true, false, false, false, true};

extern "C" __global__ void __launch_bounds__(512, 1)
segment_02_06_scores_mask_softmax_context_merge_heads_hopper_attention_192_tma(const __grid_constant__ fp_args a, const __grid_constant__ fp_maps maps)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    constexpr int ops =
        FP_SCORES | FP_MASK | FP_SOFTMAX | FP_CONTEXT | FP_MERGE;
    fp_attention io = {};
    io.in = &a.tensor[2]; /* qkv_bias_split */
    io.out = &a.tensor[7]; /* merge_heads */
    fp::hopper_attention::run<dtype, ops, shape>(a, io, shared, &maps);
}
