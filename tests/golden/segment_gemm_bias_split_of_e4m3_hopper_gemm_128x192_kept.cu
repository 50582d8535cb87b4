/* A GEMM and the operators around it in one launch.  Its operands, fp_args.gemm, are those of:
 *
 * Operators 0-1 of the layer, as `fuseplan generate 38229` emits them.
 *    0 qkv_gemm           x @ Wqkv  [2 T D 3D]
 *    1 qkv_bias_split     + bqkv, split into q, k, v, each to heads
 *
 * Reads x (B,S,D)
 * Weights wqkv (D,3D), bqkv (1,3D)
 * Writes qkv_bias_split 3x(B,H,S,W)
 *
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 * The GEMM's input and weight are e4m3, one byte an element.
 */
#include "hopper_gemm.cuh"

using dtype = fp::fp16;
enum { W = 64 }; /* head size */

constexpr fp_hopper_gemm config = {
    /* rows */ 128, /* columns */ 192, /* step */ 128, /* teams */ 2, /* groups */ 1, /* depth */ 4,
    /* split */ 1, /* cluster */ 1, FP_NORM_NONE, /* swap */ false, /* adds */ false,
    /* keeps */ false, /* rms */ false, /* gate */ false,
    /* e4m3 */ true, /* out_e4m3 */ false, /* out_both */ false, /* kept */ 6};

extern "C" __global__ void __launch_bounds__(384, 1)
segment_gemm_bias_split_of_e4m3_hopper_gemm_128x192_kept(const __grid_constant__ fp_args a, const __grid_constant__ fp_maps maps)
{
    extern __shared__ __align__(16) unsigned char shared[];
    fp::begin_next(a);
    const fp::token_view<dtype> in{fp::elements<dtype>(a.gemm.in), a.gemm.inner};
    const fp::store_qkv<dtype, W> store{fp::elements<dtype>(a.gemm.out), a.batch, a.seq_len,
                                         a.heads, a.unpacked};
    using ending = fp::hopper_gemm::ending<dtype, fp::keep, decltype(store)>;
    const ending end{fp::elements<dtype>(a.gemm.bias),
                     nullptr, {}, store};
    fp::hopper_gemm::run<dtype, config>(a, maps, in, end, shared);
}
