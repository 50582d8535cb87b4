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
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all threads meet:
 *   1. qkv_bias_split+scores+mask+softmax+context+merge_heads: key blocks stream past blocks of query rows, no scores in memory
 */
#include "streaming_attention.h"

static void stage_01_06_qkv_bias_split_scores_mask_softmax_context_merge_heads(const struct fp_args *a)
{
    const struct fp_stream t = {
        .qkv = a->tensor[1] /* qkv_gemm */,
        .bias = a->weight[1] /* bqkv */,
        .merged = 1,
        .out = a->tensor[7] /* merge_heads */,
    };
    fp_stream_stage(a, &t);
}

fp_segment segment_01_06_qkv_bias_split_scores_mask_softmax_context_merge_heads;
void segment_01_06_qkv_bias_split_scores_mask_softmax_context_merge_heads(const struct fp_args *a)
{
#pragma omp parallel
    {
        stage_01_06_qkv_bias_split_scores_mask_softmax_context_merge_heads(a);
    }
}
