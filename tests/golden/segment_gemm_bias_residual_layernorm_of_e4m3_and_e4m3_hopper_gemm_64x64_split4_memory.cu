/* A GEMM and the operators around it in one launch.  Its operands, fp_args.gemm, are those of:
 *
 * Operators 7-9 of the layer, as `fuseplan generate 43754` emits them.
 *    7 out_gemm           @ Wo  [2 T D D]
 *    8 out_bias_residual  + bo, + x
 *    9 layernorm1         layernorm(gamma1, beta1)
 *
 * Reads x (B,S,D), merge_heads (B,S,D)
 * Weights wo (D,D), bo (1,D), gamma1 (1,D), beta1 (1,D)
 * Writes layernorm1 (B,S,D)
 *
 * Operators 12-14 of the layer, as `fuseplan generate 43688` emits them.
 *   12 ffn2_gemm          @ W2  [2 T F D]
 *   13 ffn2_bias_residual + b2, + layernorm1's result
 *   14 layernorm2         layernorm(gamma2, beta2)
 *
 * Reads layernorm1 (B,S,D), ffn1_bias_gelu (B,S,F)
 * Weights w2 (F,D), b2 (1,D), gamma2 (1,D), beta2 (1,D)
 * Writes layernorm2 (B,S,D)
 *
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 * The GEMM's input and weight are e4m3, one byte an element.
 * The result is stored in e4m3, one byte an element, too.
 */
#include "hopper_gemm.cuh"

using dtype = fp::fp16;
enum { W = 64 }; /* head size */

constexpr fp_hopper_gemm config = {
    /* rows */ 64, /* columns */ 64, /* step */ 256, /* teams */ 1, /* groups */ 1, /* depth */ 6,
    /* split */ 4, /* cluster */ 1, FP_NORM_MEMORY, /* swap */ false, /* adds */ true,
    /* keeps */ false, /* rms */ false, /* gate */ false,
    /* e4m3 */ true, /* out_e4m3 */ true, /* out_both */ true};

extern "C" __global__ void __launch_bounds__(256, 1) __cluster_dims__(4, 1, 1)
segment_gemm_bias_residual_layernorm_of_e4m3_and_e4m3_hopper_gemm_64x64_split4_memory(const __grid_constant__ fp_args a, const __grid_constant__ fp_maps maps)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    const fp::token_view<dtype> in{fp::elements<dtype>(a.gemm.in), a.gemm.inner};
    const fp::store_tokens<dtype> store{fp::elements<dtype>(a.gemm.out), a.gemm.columns};
    using ending = fp::hopper_gemm::ending<dtype, fp::keep, decltype(store)>;
    const ending end{fp::elements<dtype>(a.gemm.bias),
                     fp::elements<dtype>(a.gemm.residual), {}, store,
                     fp::elements<dtype>(a.gemm.gamma),
                     fp::elements<dtype>(a.gemm.beta), a.eps};
    fp::hopper_gemm::run<dtype, config>(a, maps, in, end, shared);
}
