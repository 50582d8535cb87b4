/* Operators 1-6 of the layer in one launch, as `fuseplan generate 48981` emits them.
 *
 *    1 qkv_bias_split     + bqkv, split into q, k, v, each to heads
 *    2 scores             q @ k^T / sqrt(W)  [2 P D]
 *    3 mask               drop the keys that the mask does not keep
 *    4 softmax            softmax over the keys
 *    5 context            probs @ v  [2 P D]
 *    6 merge_heads        heads side by side again
 *
 * Reads qkv_gemm (B,S,3D)
 * Weights bqkv (1,3D)
 * Writes merge_heads (B,S,D)
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 */
#include "hopper_attention.cuh"

using dtype = fp::bf16;
enum { W = 72 }; /* head size */

/* head size, warpgroups that compute, query blocks, key blocks in flight, warps that load, thread
 * blocks that share a tile, and that a multiprocessor holds; tiles drawn, overlap, q in
 * registers, tiles of a cover */
constexpr fp_hopper_attention shape = {72, 1, 1, 2, 1, 1, 2, true, false, false, false, false, true};

extern "C" __global__ void __launch_bounds__(160, 2)
segment_01_06_qkv_bias_split_scores_mask_softmax_context_merge_heads_hopper_attention_joined(const __grid_constant__ fp_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    constexpr int ops =
        FP_SPLIT | FP_BIAS | FP_SCORES | FP_MASK | FP_SOFTMAX | FP_CONTEXT | FP_MERGE;
    fp_attention io = {};
    io.in = &a.tensor[1]; /* qkv_gemm */
    io.bias = &a.weight[1]; /* bqkv */
    io.out = &a.tensor[7]; /* merge_heads */
    fp::hopper_attention::run<dtype, ops, shape>(a, io, shared);
}
