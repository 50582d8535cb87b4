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
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 */
#include "gemm_tma.cuh"

using dtype = fp::fp16;
enum { W = 64 }; /* head size */

/* tokens, columns, elements of a step, teams, warpgroups of a team, steps in flight, thread
 * blocks that share a sum, how a layernorm follows, thread blocks that share columns of the
 * weight, and rows; whether the weight is the first operand */
using tile = fp::tma_shape<dtype, 128, 192, 64, 2, 1, 4, 1, fp::NORM_MEMORY, 1, 1, false>;

static FP_DEVICE void
stage_06_09_merge_heads_out_gemm_out_bias_residual_layernorm1(const fp_args &a, const fp_maps &maps,
    void *shared)
{
    const int D = a.heads * W;
    const auto x = fp::tensor<dtype>(a, 0);
    const auto context = fp::tensor<dtype>(a, 6);
    const auto layernorm1 = fp::tensor<dtype>(a, 10);
    const auto bo = fp::weight<dtype>(a, 3);
    const auto gamma1 = fp::weight<dtype>(a, 4);
    const auto beta1 = fp::weight<dtype>(a, 5);

    const fp::head_view<dtype, W> in{context, a.seq_len, a.heads, a.unpacked};
    const fp::store_tokens<dtype> store{layernorm1, D};
    using ending = fp::gemm_end<dtype, fp::keep, decltype(store)>;
    const ending end{bo, x, {}, store, gamma1, beta1, a.eps};
    fp::gemm_tma<tile, decltype(in), ending>(a, maps, D, D, in, end, shared).run();
}

extern "C" __global__ void __launch_bounds__(384, 1)
segment_06_09_merge_heads_out_gemm_out_bias_residual_layernorm1_hopper_gemm_memory(const __grid_constant__ fp_args a, const __grid_constant__ fp_maps maps)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    stage_06_09_merge_heads_out_gemm_out_bias_residual_layernorm1(a, maps, shared);
}
