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
