/* Operators 10-11 of the layer in one launch, as `fuseplan generate 43685` emits them.
 *
 *   10 ffn1_gemm          @ W1  [2 T D 2F]
 *   11 ffn1_bias_silu_gate + b1, silu(even columns) * odd columns
 *
 * Reads layernorm1 (B,S,D)
 * Weights w1 (D,2F), b1 (1,2F)
 * Writes ffn1_bias_silu_gate (B,S,F)
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all threads meet:
 *   1. ffn1_gemm+ffn1_bias_silu_gate: tiles of a GEMM, each with its epilogue while it is in the cache
 */
#include "tokens.h"

static void stage_10_11_ffn1_gemm_ffn1_bias_silu_gate(const struct fp_args *a)
{
    const struct fp_step s = {
        .inner = fp_hidden(a),
        .weight = a->weight[6] /* w1 */,
        .pointwise = FP_BIAS_SILU,
        .gate = 1,
        .bias = a->weight[7] /* b1 */,
        .columns = a->ffn,
        .input = a->tensor[10] /* layernorm1 */,
        .out = a->tensor[12] /* ffn1_bias_silu_gate */,
    };
    fp_gemm_stage(a, &s, a->knob[1], a->knob[2]);
}

fp_segment segment_10_11_ffn1_gemm_ffn1_bias_silu_gate;
void segment_10_11_ffn1_gemm_ffn1_bias_silu_gate(const struct fp_args *a)
{
#pragma omp parallel
    {
        stage_10_11_ffn1_gemm_ffn1_bias_silu_gate(a);
    }
}
