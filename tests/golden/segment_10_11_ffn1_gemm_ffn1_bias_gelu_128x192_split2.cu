/* Operators 10-11 of the layer in one launch, as `fuseplan generate 43685` emits them.
 *
 *   10 ffn1_gemm          @ W1  [2 T D F]
 *   11 ffn1_bias_gelu     + b1, GELU
 *
 * Reads layernorm1 (B,S,D)
 * Weights w1 (D,F), b1 (1,F)
 * Writes ffn1_bias_gelu (B,S,F)
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all thread blocks meet:
 *   1. ffn1_gemm+ffn1_bias_gelu: tiles of a GEMM, each with its epilogue
 */
#include "gemm.cuh"

using dtype = fp::tf32;
enum { W = 128 }; /* head size */

/* tokens, columns, buffers, warps down and across, thread blocks that share a sum */
using tile = fp::gemm_shape<dtype, 128, 192, 3, 2, 4, 2>;

static FP_DEVICE void
stage_10_11_ffn1_gemm_ffn1_bias_gelu(const fp_args &a, void *shared)
{
    const int D = a.heads * W;
    const int F = a.ffn;
    const auto layernorm1 = fp::tensor<dtype>(a, 10);
    const auto ffn1_bias_gelu = fp::tensor<dtype>(a, 12);
    const auto w1 = fp::weight<dtype>(a, 6);
    const auto b1 = fp::weight<dtype>(a, 7);

    const fp::token_view<dtype> in{layernorm1, D};
    const fp::store_tokens<dtype> store{ffn1_bias_gelu, F};
    const fp::apply_gelu<dtype, decltype(store)> gelu{store};
    const fp::add_bias<dtype, decltype(gelu)> bias{b1, gelu};
    fp::gemm<tile>(a, {F, D}, in, w1, bias, fp::nothing(), shared);
}

extern "C" __global__ void __launch_bounds__(256, 1)
segment_10_11_ffn1_gemm_ffn1_bias_gelu_128x192_split2(const __grid_constant__ fp_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    fp::await_dependencies();
    stage_10_11_ffn1_gemm_ffn1_bias_gelu(a, shared);
}
