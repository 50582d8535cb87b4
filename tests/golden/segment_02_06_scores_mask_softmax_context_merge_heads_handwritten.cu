/* Operators 2-6 of the layer in one launch, as `fuseplan generate 41130` emits them.
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
#include "handwritten.cuh"

using dtype = fp::fp16;
enum { W = 64 }; /* head size */

extern "C" __global__ void __launch_bounds__(128, 1)
segment_02_06_scores_mask_softmax_context_merge_heads_handwritten(const __grid_constant__ fp_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    fp_attention io = {};
    io.in = &a.tensor[2]; /* qkv_bias_split */
    io.out = &a.tensor[7]; /* merge_heads */
    fp::await_dependencies();
    fp::hand_attention<dtype, W, true>().run(a, io, shared);
}
