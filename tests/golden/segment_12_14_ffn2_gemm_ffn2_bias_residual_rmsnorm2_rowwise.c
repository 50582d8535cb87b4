/* Operators 12-14 of the layer in one launch, as `fuseplan generate 43688` emits them.
 *
 *   12 ffn2_gemm          @ W2  [2 T F D]
 *   13 ffn2_bias_residual + b2, + out_bias_residual's result
 *   14 rmsnorm2           rmsnorm(gamma2)
 *
 * Reads out_bias_residual (B,S,D), ffn1_bias_gelu (B,S,F)
 * Weights w2 (F,D), b2 (1,D), gamma2 (1,D)
 * Writes ffn2_bias_residual (B,S,D), rmsnorm2 (B,S,D)
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all threads meet:
 *   1. ffn2_gemm+ffn2_bias_residual+rmsnorm2: blocks of whole rows from one operator to the next
 */
#include "tokens.h"

static void stage_12_14_ffn2_gemm_ffn2_bias_residual_rmsnorm2(const struct fp_args *a)
{
    const int size = fp_even_rows(a, a->knob[1]);
    const int blocks = fp_row_blocks(a, size);
#pragma omp for schedule(static) nowait
    for (int i = 0; i < blocks; i++) {
        const struct fp_range rows = fp_row_block(a, size, i);
        float *const out_bias_residual = fp_rows_of(a->tensor[9], rows, fp_hidden(a));
        float *const ffn1_bias_gelu = fp_rows_of(a->tensor[12], rows, a->ffn);
        float *const ffn2_bias_residual = fp_rows_of(a->tensor[14], rows, fp_hidden(a));
        float *const rmsnorm2 = fp_rows_of(a->tensor[15], rows, fp_hidden(a));
        const struct fp_step step_12 = {
            .inner = a->ffn,
            .weight = a->weight[8] /* w2 */,
            .pointwise = FP_BIAS_RESIDUAL,
            .bias = a->weight[9] /* b2 */,
            .residual = out_bias_residual,
            .columns = fp_hidden(a),
            .input = ffn1_bias_gelu,
            .out = ffn2_bias_residual,
        };
        fp_gemm_rows(a, &step_12, rows);
        const struct fp_step step_14 = {
            .gamma = a->weight[10] /* gamma2 */,
            .columns = fp_hidden(a),
            .input = ffn2_bias_residual,
            .out = rmsnorm2,
        };
        fp_rmsnorm_rows(a, &step_14, rows);
    }
    fp_zero_padding(a, a->tensor[15], fp_hidden(a));
}

fp_segment segment_12_14_ffn2_gemm_ffn2_bias_residual_rmsnorm2_rowwise;
void segment_12_14_ffn2_gemm_ffn2_bias_residual_rmsnorm2_rowwise(const struct fp_args *a)
{
#pragma omp parallel
    {
        stage_12_14_ffn2_gemm_ffn2_bias_residual_rmsnorm2(a);
    }
}
