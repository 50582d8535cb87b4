/* Segments that cuBLASLt runs, in host code:
 *
 *   out (rows, columns) = in (rows, inner) @ weight (inner, columns) + bias (columns) + residual
 *
 * or GELU of that in its tanh form; matrices are row-major, sums in fp32.
 *
 * cuBLASLt takes column-major matrices, and a row-major (rows, columns) is a column-major (columns,
 * rows).  So it computes out^T = weight^T @ in^T: no operand is transposed, and its bias, one value
 * for a row of out^T, is one value for a column of out. */
#ifndef FP_LIBRARY_CUH
#define FP_LIBRARY_CUH

#include "abi.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cublasLt.h>

namespace library
{

struct product {
    const void *in, *weight, *bias, *residual; /* bias, residual: null if there is none */
    void *out;
    long rows, inner, columns;
    bool gelu;
};

/* Element types: what is stored, and what products are computed in. */
template <cudaDataType_t STORED, cublasComputeType_t COMPUTED> struct element {
    static constexpr cudaDataType_t stored = STORED;
    static constexpr cublasComputeType_t computed = COMPUTED;
};
using fp32 = element<CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC>;
using tf32 = element<CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32>;
using fp16 = element<CUDA_R_16F, CUBLAS_COMPUTE_32F>;
using bf16 = element<CUDA_R_16BF, CUBLAS_COMPUTE_32F>;

inline void check(cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return;
    fprintf(stderr, "cuBLASLt cannot %s: %s\n", what, cublasLtGetStatusString(status));
    exit(1);
}

inline cublasLtHandle_t handle()
{
    static cublasLtHandle_t made;
    if (!made)
        check(cublasLtCreate(&made), "start");
    return made;
}

struct matmul {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t weight, in, out;

    template <class ELEMENT> void describe(const product &p, ELEMENT)
    {
        cublasLtEpilogue_t epilogue = p.gelu   ? CUBLASLT_EPILOGUE_GELU_BIAS
                                      : p.bias ? CUBLASLT_EPILOGUE_BIAS
                                               : CUBLASLT_EPILOGUE_DEFAULT;
        const char *what = "describe a product";
        check(cublasLtMatmulDescCreate(&desc, ELEMENT::computed, CUDA_R_32F), what);
        check(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                             sizeof(epilogue)),
              what);
        if (p.bias)
            check(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.bias,
                                                 sizeof(p.bias)),
                  what);
        lay_out(&weight, ELEMENT::stored, p.columns, p.inner);
        lay_out(&in, ELEMENT::stored, p.inner, p.rows);
        lay_out(&out, ELEMENT::stored, p.columns, p.rows);
    }

    /* Number `algorithm` of those that the library proposes, its best guess first. */
    cublasLtMatmulAlgo_t choose(int algorithm, uint64_t workspace_bytes) const
    {
        enum { ALGORITHMS = 8 };
        cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
        cublasLtMatmulPreference_t wish;
        const char *what = "choose an algorithm";
        int count = 0;
        check(cublasLtMatmulPreferenceCreate(&wish), what);
        check(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace_bytes, sizeof(workspace_bytes)),
              what);
        check(cublasLtMatmulAlgoGetHeuristic(handle(), desc, weight, in, out, out, wish, ALGORITHMS,
                                             found, &count),
              what);
        check(algorithm < count ? found[algorithm].state : CUBLAS_STATUS_NOT_SUPPORTED, what);
        check(cublasLtMatmulPreferenceDestroy(wish), what);
        return found[algorithm].algo;
    }

    void release()
    {
        for (cublasLtMatrixLayout_t layout : {weight, in, out})
            check(cublasLtMatrixLayoutDestroy(layout), "forget a product");
        check(cublasLtMatmulDescDestroy(desc), "forget a product");
    }

  private:
    static void lay_out(cublasLtMatrixLayout_t *layout, cudaDataType_t type, long rows,
                        long columns)
    {
        check(cublasLtMatrixLayoutCreate(layout, type, (uint64_t)rows, (uint64_t)columns, rows),
              "describe a matrix");
    }
};

template <class ELEMENT>
void multiply(const product &p, int algorithm, void *workspace, size_t workspace_bytes,
              cudaStream_t stream)
{
    const float one = 1, zero = 0;
    matmul m;
    m.describe(p, ELEMENT());
    cublasLtMatmulAlgo_t algo = m.choose(algorithm, workspace_bytes);
    check(cublasLtMatmul(handle(), m.desc, &one, p.weight, m.weight, p.in, m.in,
                         p.residual ? &one : &zero, p.residual ? p.residual : p.out, m.out, p.out,
                         m.out, &algo, workspace, workspace_bytes, stream),
          "run a product");
    m.release();
}

} // namespace library

#endif
