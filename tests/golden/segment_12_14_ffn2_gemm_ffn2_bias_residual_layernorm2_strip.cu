/* Operators 12-14 of the layer in one launch, as `fuseplan generate 43688` emits them.
 *
 *   12 ffn2_gemm          @ W2  [2 T F D]
 *   13 ffn2_bias_residual + b2, + layernorm1's result
 *   14 layernorm2         layernorm(gamma2, beta2)
 *
 * Reads layernorm1 (B,S,D), ffn1_bias_gelu (B,S,F)
 * Weights w2 (F,D), b2 (1,D), gamma2 (1,D), beta2 (1,D)
 * Writes ffn2_bias_residual (B,S,D), layernorm2 (B,S,D)
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all thread blocks meet:
 *   1. ffn2_gemm+ffn2_bias_residual+layernorm2: GEMM tiles; a strip's last normalises it
 */
#include "gemm.cuh"

using dtype = fp::fp16;
enum { W = 64 }; /* head size */

/* tokens, columns, buffers, warps down and across, thread blocks that share a sum */
using tile = fp::gemm_shape<dtype, 64, 64, 3, 2, 2, 1>;

static FP_DEVICE void
stage_12_14_ffn2_gemm_ffn2_bias_residual_layernorm2(const fp_args &a, void *shared)
{
    const int D = a.heads * W;
    const int F = a.ffn;
    const auto layernorm1 = fp::tensor<dtype>(a, 10);
    const auto ffn1_bias_gelu = fp::tensor<dtype>(a, 12);
    const auto ffn2_bias_residual = fp::tensor<dtype>(a, 14);
    const auto layernorm2 = fp::tensor<dtype>(a, 15);
    const auto w2 = fp::weight<dtype>(a, 8);
    const auto b2 = fp::weight<dtype>(a, 9);
    const auto gamma2 = fp::weight<dtype>(a, 10);
    const auto beta2 = fp::weight<dtype>(a, 11);

    const fp::token_view<dtype> in{ffn1_bias_gelu, F};
    const fp::store_tokens<dtype> store{ffn2_bias_residual, D};
    const fp::add_residual<dtype, decltype(store)> residual{layernorm1, D, store};
    const fp::add_bias<dtype, decltype(residual)> bias{b2, residual};
    const fp::norm_weights<dtype> norm{gamma2, beta2, layernorm2, D, a.eps};
    const fp::norm_strip<dtype, fp::token_view<dtype>> strip{norm, {ffn2_bias_residual, D}};
    fp::gemm<tile>(a, {D, F}, in, w2, bias, strip, shared);
}

extern "C" __global__ void __launch_bounds__(128, 1)
segment_12_14_ffn2_gemm_ffn2_bias_residual_layernorm2_strip(const __grid_constant__ fp_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    fp::await_dependencies();
    stage_12_14_ffn2_gemm_ffn2_bias_residual_layernorm2(a, shared);
}
