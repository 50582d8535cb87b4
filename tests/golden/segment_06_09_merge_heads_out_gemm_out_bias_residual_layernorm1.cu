/* Operators 6-9 of the layer in one launch, as `fuseplan generate 43541` emits them.
 *
 *    6 merge_heads        heads side by side again
 *    7 out_gemm           @ Wo  [2 T D D]
 *    8 out_bias_residual  + bo, + x
 *    9 layernorm1         layernorm(gamma1, beta1)
 *
 * Reads x (B,S,D), context (B,H,S,W)
 * Weights wo (D,D), bo (1,D), gamma1 (1,D), beta1 (1,D)
 * Writes out_bias_residual (B,S,D), layernorm1 (B,S,D)
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all thread blocks meet:
 *   1. merge_heads+out_gemm+out_bias_residual: tiles of a GEMM, each with its epilogue
 *   2. layernorm1: a warp a row
 */
#include "gemm.cuh"
#include "tokens.cuh"

using dtype = fp::fp16;
enum { W = 64 }; /* head size */

/* tokens, columns, buffers, warps down and across, thread blocks that share a sum */
using tile = fp::gemm_shape<dtype, 64, 64, 3, 2, 2, 1>;

static FP_DEVICE void
stage_06_08_merge_heads_out_gemm_out_bias_residual(const fp_args &a, void *shared)
{
    const int D = a.heads * W;
    const auto x = fp::tensor<dtype>(a, 0);
    const auto context = fp::tensor<dtype>(a, 6);
    const auto out_bias_residual = fp::tensor<dtype>(a, 9);
    const auto wo = fp::weight<dtype>(a, 2);
    const auto bo = fp::weight<dtype>(a, 3);

    const fp::head_view<dtype, W> in{context, a.seq_len, a.heads, a.unpacked};
    const fp::store_tokens<dtype> store{out_bias_residual, D};
    const fp::add_residual<dtype, decltype(store)> residual{x, D, store};
    const fp::add_bias<dtype, decltype(residual)> bias{bo, residual};
    fp::gemm<tile>(a, {D, D}, in, wo, bias, fp::nothing(), shared);
}

static FP_DEVICE void
stage_09_09_layernorm1(const fp_args &a, void *shared)
{
    const int D = a.heads * W;
    const auto out_bias_residual = fp::tensor<dtype>(a, 9);
    const auto layernorm1 = fp::tensor<dtype>(a, 10);
    const auto gamma1 = fp::weight<dtype>(a, 4);
    const auto beta1 = fp::weight<dtype>(a, 5);

    const fp::token_view<dtype> in{out_bias_residual, D};
    const fp::norm_weights<dtype> norm{gamma1, beta1, layernorm1, D, a.eps};
    fp::norm_rows<dtype>(a, norm, in, fp::keep());
}

extern "C" __global__ void __launch_bounds__(128, 1)
segment_06_09_merge_heads_out_gemm_out_bias_residual_layernorm1(const __grid_constant__ fp_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    fp::await_dependencies();
    stage_06_08_merge_heads_out_gemm_out_bias_residual(a, shared);
    fp::grid_barrier(a.sync);
    stage_09_09_layernorm1(a, shared);
}
