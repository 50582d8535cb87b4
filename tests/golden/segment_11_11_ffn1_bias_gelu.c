/* Operators 11-11 of the layer in one launch, as `fuseplan generate 43690` emits them.
 *
 *   11 ffn1_bias_gelu     + b1, GELU
 *
 * Reads ffn1_gemm (B,S,F)
 * Weights b1 (1,F)
 * Writes ffn1_bias_gelu (B,S,F)
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all threads meet:
 *   1. ffn1_bias_gelu: row by row
 */
#include "tokens.h"

static void stage_11_11_ffn1_bias_gelu(const struct fp_args *a)
{
    const struct fp_step s = {
        .pointwise = FP_BIAS_GELU,
        .bias = a->weight[7] /* b1 */,
        .columns = a->ffn,
        .input = a->tensor[11] /* ffn1_gemm */,
        .out = a->tensor[12] /* ffn1_bias_gelu */,
    };
    fp_pointwise_stage(a, &s);
}

fp_segment segment_11_11_ffn1_bias_gelu;
void segment_11_11_ffn1_bias_gelu(const struct fp_args *a)
{
#pragma omp parallel
    {
        stage_11_11_ffn1_bias_gelu(a);
    }
}
