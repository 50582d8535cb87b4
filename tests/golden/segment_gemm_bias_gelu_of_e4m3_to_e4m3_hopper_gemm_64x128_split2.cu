/* A GEMM and the operators around it in one launch.  Its operands, fp_args.gemm, are those of:
 *
 * Operators 10-11 of the layer, as `fuseplan generate 43685` emits them.
 *   10 ffn1_gemm          @ W1  [2 T D F]
 *   11 ffn1_bias_gelu     + b1, GELU
 *
 * Reads layernorm1 (B,S,D)
 * Weights w1 (D,F), b1 (1,F)
 * Writes ffn1_bias_gelu (B,S,F)
 *
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 * The GEMM's input and weight are e4m3, one byte an element.
 * The result is stored in e4m3, one byte an element.
 */
#include "hopper_gemm.cuh"

using dtype = fp::bf16;
enum { W = 64 }; /* head size */

constexpr fp_hopper_gemm config = {
    /* rows */ 64, /* columns */ 128, /* step */ 128, /* teams */ 1, /* groups */ 1, /* depth */ 8,
    /* split */ 2, /* cluster */ 1, FP_NORM_NONE, /* swap */ false, /* adds */ false,
    /* keeps */ false, /* rms */ false, /* gate */ false,
    /* e4m3 */ true, /* out_e4m3 */ true, /* out_both */ false};

extern "C" __global__ void __launch_bounds__(256, 1) __cluster_dims__(2, 1, 1)
segment_gemm_bias_gelu_of_e4m3_to_e4m3_hopper_gemm_64x128_split2(const __grid_constant__ fp_args a, const __grid_constant__ fp_maps maps)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    const fp::token_view<dtype> in{fp::elements<dtype>(a.gemm.in), a.gemm.inner};
    const fp::store_tokens<dtype> store{fp::elements<dtype>(a.gemm.out), a.gemm.columns};
    using ending = fp::hopper_gemm::ending<dtype, fp::apply_gelu<dtype, fp::keep>, decltype(store)>;
    const ending end{fp::elements<dtype>(a.gemm.bias),
                     nullptr, {}, store};
    fp::hopper_gemm::run<dtype, config>(a, maps, in, end, shared);
}
