/* Operators 6-9 of the layer in one launch, as `fuseplan generate 43541` emits them.
 *
 *    6 merge_heads        heads side by side again
 *    7 out_gemm           @ Wo  [2 T D D]
 *    8 out_bias_residual  + bo, + x
 *    9 layernorm1         layernorm(gamma1, beta1)
 *
 * Reads x (B,S,D), context (B,H,S,W)
 * Weights wo (D,D), bo (1,D), gamma1 (1,D), beta1 (1,D)
 * Writes layernorm1 (B,S,D)
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all threads meet:
 *   1. merge_heads+out_gemm+out_bias_residual+layernorm1: blocks of whole rows from one operator to the next
 */
#include "tokens.h"

static void stage_06_09_merge_heads_out_gemm_out_bias_residual_layernorm1(const struct fp_args *a)
{
    const int size = fp_even_rows(a, a->knob[1]);
    const int blocks = fp_row_blocks(a, size);
#pragma omp for schedule(static) nowait
    for (int i = 0; i < blocks; i++) {
        const struct fp_range rows = fp_row_block(a, size, i);
        float *scratch = fp_scratch((size_t)rows.count * (fp_hidden(a) + fp_hidden(a)));
        float *const x = fp_rows_of(a->tensor[0], rows, fp_hidden(a));
        float *const merge_heads = scratch;
        scratch += (size_t)rows.count * fp_hidden(a);
        float *const out_bias_residual = scratch;
        scratch += (size_t)rows.count * fp_hidden(a);
        float *const layernorm1 = fp_rows_of(a->tensor[10], rows, fp_hidden(a));
        const struct fp_step step_6 = {
            .pointwise = FP_MERGE_HEADS,
            .columns = fp_hidden(a),
            .input = a->tensor[6] /* context */,
            .out = merge_heads,
        };
        fp_pointwise_rows(a, &step_6, rows);
        const struct fp_step step_7 = {
            .inner = fp_hidden(a),
            .weight = a->weight[2] /* wo */,
            .pointwise = FP_BIAS_RESIDUAL,
            .bias = a->weight[3] /* bo */,
            .residual = x,
            .columns = fp_hidden(a),
            .input = merge_heads,
            .out = out_bias_residual,
        };
        fp_gemm_rows(a, &step_7, rows);
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

fp_segment segment_06_09_merge_heads_out_gemm_out_bias_residual_layernorm1_rowwise;
void segment_06_09_merge_heads_out_gemm_out_bias_residual_layernorm1_rowwise(const struct fp_args *a)
{
#pragma omp parallel
    {
        stage_06_09_merge_heads_out_gemm_out_bias_residual_layernorm1(a);
    }
}
