/* Operators 7-8 of the layer in one call of cuBLASLt.
 *
 *    7 out_gemm           @ Wo  [2 T D D]
 *    8 out_bias_residual  + bo, + x
 *
 * Reads x (B,S,D), merge_heads (B,S,D)
 * Weights wo (D,D), bo (1,D)
 * Writes out_bias_residual (B,S,D)
 * Two bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 */
#include "library.cuh"

extern "C" void
segment_07_08_out_gemm_out_bias_residual_library(const fp_args &a, int algorithm, cudaStream_t stream)
{
    const long D = (long)a.heads * a.head_size;
    library::product p = {};
    p.in = a.tensor[7]; /* merge_heads */
    p.weight = a.weight[2]; /* wo */
    p.bias = a.weight[3]; /* bo */
    p.residual = a.tensor[0]; /* x */
    p.out = a.tensor[9]; /* out_bias_residual */
    p.rows = (long)a.batch * a.seq_len;
    p.inner = D;
    p.columns = D;
    library::multiply<library::fp16>(p, algorithm, a.workspace, 33554432, stream);
}
