/* Operators 12-13 of the layer in one launch, as `fuseplan generate 43689` emits them.
 *
 *   12 ffn2_gemm          @ W2  [2 T F D]
 *   13 ffn2_bias_residual + b2, + layernorm1's result
 *
 * Reads layernorm1 (B,S,D), ffn1_bias_gelu (B,S,F)
 * Weights w2 (F,D), b2 (1,D)
 * Writes ffn2_bias_residual (B,S,D)
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 */
#include "gemm_tma.cuh"

using dtype = fp::fp16;
enum { W = 64 }; /* head size */

/* tokens, columns, elements of a step, teams, warpgroups of a team, steps in flight, thread
 * blocks that share a sum, how a layernorm follows, thread blocks that share columns of the
 * weight, and rows; whether the weight is the first operand */
using tile = fp::tma_shape<dtype, 64, 96, 128, 1, 1, 4, 4, fp::NORM_NONE, 1, 1, false>;

static FP_DEVICE void
stage_12_13_ffn2_gemm_ffn2_bias_residual(const fp_args &a, const fp_maps &maps,
    void *shared)
{
    const int D = a.heads * W;
    const int F = a.ffn;
    const auto layernorm1 = fp::tensor<dtype>(a, 10);
    const auto ffn1_bias_gelu = fp::tensor<dtype>(a, 12);
    const auto ffn2_bias_residual = fp::tensor<dtype>(a, 14);
    const auto b2 = fp::weight<dtype>(a, 9);

    const fp::token_view<dtype> in{ffn1_bias_gelu, F};
    const fp::store_tokens<dtype> store{ffn2_bias_residual, D};
    using ending = fp::gemm_end<dtype, fp::keep, decltype(store)>;
    const ending end{b2, layernorm1, {}, store};
    fp::gemm_tma<tile, decltype(in), ending>(a, maps, D, F, in, end, shared).run();
}

extern "C" __global__ void __launch_bounds__(256, 1) __cluster_dims__(4, 1, 1)
segment_12_13_ffn2_gemm_ffn2_bias_residual_hopper_gemm_64x96_split4(const __grid_constant__ fp_args a, const __grid_constant__ fp_maps maps)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    stage_12_13_ffn2_gemm_ffn2_bias_residual(a, maps, shared);
}
