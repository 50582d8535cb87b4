/* Operators 5-9 of the layer in one launch, as `fuseplan generate 44010` emits them.
 *
 *    5 context            probs @ v  [2 P D]
 *    6 merge_heads        heads side by side again
 *    7 out_gemm           @ Wo  [2 T D D]
 *    8 out_bias_residual  + bo, + x
 *    9 layernorm1         layernorm(gamma1, beta1)
 *
 * Reads x (B,S,D), qkv_bias_split 3x(B,H,S,W), softmax (B,H,S,S)
 * Weights wo (D,D), bo (1,D), gamma1 (1,D), beta1 (1,D)
 * Writes merge_heads (B,S,D), out_bias_residual (B,S,D), layernorm1 (B,S,D)
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all threads meet:
 *   1. context+merge_heads: blocks of query rows, only key blocks that the mask keeps
 *   2. out_gemm+out_bias_residual: tiles of a GEMM, each with its epilogue while it is in the cache
 *   3. layernorm1: blocks of whole rows
 */
#include "attention.h"
#include "tokens.h"

static void stage_05_06_context_merge_heads(const struct fp_args *a)
{
    const struct fp_attention t = {
        .first = FP_CONTEXT,
        .last = FP_MERGE,
        .qkv = a->tensor[2] /* qkv_bias_split */,
        .input = a->tensor[5] /* softmax */,
        .out = a->tensor[7] /* merge_heads */,
    };
    fp_attention_stage(a, &t);
}

static void stage_07_08_out_gemm_out_bias_residual(const struct fp_args *a)
{
    const struct fp_step s = {
        .inner = fp_hidden(a),
        .weight = a->weight[2] /* wo */,
        .pointwise = FP_BIAS_RESIDUAL,
        .bias = a->weight[3] /* bo */,
        .residual = a->tensor[0] /* x */,
        .columns = fp_hidden(a),
        .input = a->tensor[7] /* merge_heads */,
        .out = a->tensor[9] /* out_bias_residual */,
    };
    fp_gemm_stage(a, &s, a->knob[1], a->knob[2]);
}

static void stage_09_09_layernorm1(const struct fp_args *a)
{
    const int size = FP_FEW_ROWS;
    const int blocks = fp_row_blocks(a, size);
#pragma omp for schedule(static) nowait
    for (int i = 0; i < blocks; i++) {
        const struct fp_range rows = fp_row_block(a, size, i);
        float *const out_bias_residual = fp_rows_of(a->tensor[9], rows, fp_hidden(a));
        float *const layernorm1 = fp_rows_of(a->tensor[10], rows, fp_hidden(a));
        const struct fp_step step_9 = {
            .gamma = a->weight[4] /* gamma1 */,
            .beta = a->weight[5] /* beta1 */,
            .columns = fp_hidden(a),
            .input = out_bias_residual,
            .out = layernorm1,
        };
        fp_layernorm_rows(a, &step_9, rows);
    }
}

fp_segment segment_05_09_context_merge_heads_out_gemm_out_bias_residual_layernorm1;
void segment_05_09_context_merge_heads_out_gemm_out_bias_residual_layernorm1(const struct fp_args *a)
{
#pragma omp parallel
    {
        stage_05_06_context_merge_heads(a);
#pragma omp barrier
        stage_07_08_out_gemm_out_bias_residual(a);
#pragma omp barrier
        stage_09_09_layernorm1(a);
    }
}
