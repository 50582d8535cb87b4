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
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 */
#include "handwritten_attention.h"

fp_segment segment_02_06_scores_mask_softmax_context_merge_heads_handwritten;
void segment_02_06_scores_mask_softmax_context_merge_heads_handwritten(const struct fp_args *a)
{
#pragma omp parallel
    fp_handwritten_attention(a, a->tensor[2], a->tensor[7]);
}
