/* The same products by cuBLASLt, in the fastest of the algorithms that it proposes. */
#pragma once

#include "gemm_ours.cuh"

#include <cublasLt.h>
#include <functional>

#define CHECK_BLAS(call)                                                                           \
    do {                                                                                           \
        cublasStatus_t status = (call);                                                            \
        if (status != CUBLAS_STATUS_SUCCESS) {                                                     \
            fprintf(stderr, "%s: %s, line %d\n", #call, cublasLtGetStatusString(status),           \
                    __LINE__);                                                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Launches in a graph, one after the other. */
inline cudaGraphExec_t record(cudaStream_t stream, int launches,
                              const std::function<void(cudaStream_t)> &launch)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < launches; i++)
        launch(stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return exec;
}

/* Column-major out^T (columns, rows) = weight^T in^T.  Of e4m3 cuBLASLt takes matrices that both
 * lie by rows of the inner dimension: its first operand is a transposed one then. */
struct cublas_product {
    enum { PROPOSED = 16, WORKSPACE = 32 << 20 };
    problem p;
    bool e4m3;
    ending as;
    float *factor; /* on the device */
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t weight, in, added, out;
    std::vector<cublasLtMatmulHeuristicResult_t> found;
    cublasLtMatmulAlgo_t algorithm;
    void *workspace;

    template <typename T> void set(cublasLtMatmulDescAttributes_t what, T value)
    {
        CHECK_BLAS(cublasLtMatmulDescSetAttribute(desc, what, &value, sizeof(value)));
    }

    cublas_product(const problem &of, bool is_e4m3, bool fast, ending ends)
        : p(of), e4m3(is_e4m3), as(ends)
    {
        const cudaDataType_t type = e4m3 ? CUDA_R_8F_E4M3 : CUDA_R_16F;
        CHECK_BLAS(cublasLtCreate(&handle));
        CHECK_BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
        if (e4m3) {
            set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
            set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, (int8_t)fast);
        }
        if (as >= GELU)
            set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU);
        CHECK(cudaMalloc(&factor, sizeof(FACTOR)));
        CHECK(cudaMemcpy(factor, &FACTOR, sizeof(FACTOR), cudaMemcpyHostToDevice));
        if (as == GELU_E4M3)
            set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, factor);
        CHECK_BLAS(cublasLtMatrixLayoutCreate(&weight, type, e4m3 ? p.inner : p.columns,
                                              e4m3 ? p.columns : p.inner,
                                              e4m3 ? p.inner : p.columns));
        CHECK_BLAS(cublasLtMatrixLayoutCreate(&in, type, p.inner, p.rows, p.inner));
        CHECK_BLAS(cublasLtMatrixLayoutCreate(&added, CUDA_R_16F, p.columns, p.rows, p.columns));
        CHECK_BLAS(cublasLtMatrixLayoutCreate(&out, as == GELU_E4M3 ? CUDA_R_8F_E4M3 : CUDA_R_16F,
                                              p.columns, p.rows, p.columns));
        CHECK(cudaMalloc(&workspace, WORKSPACE));
        propose();
    }

    ~cublas_product()
    {
        cudaFree(workspace);
        cudaFree(factor);
        cublasLtMatrixLayoutDestroy(added);
        cublasLtMatrixLayoutDestroy(out);
        cublasLtMatrixLayoutDestroy(in);
        cublasLtMatrixLayoutDestroy(weight);
        cublasLtMatmulDescDestroy(desc);
        cublasLtDestroy(handle);
    }

    cublas_product(const cublas_product &) = delete;

    void propose()
    {
        const uint64_t bytes = WORKSPACE;
        int count = 0;
        cublasLtMatmulPreference_t wish;
        found.resize(PROPOSED);
        CHECK_BLAS(cublasLtMatmulPreferenceCreate(&wish));
        CHECK_BLAS(cublasLtMatmulPreferenceSetAttribute(
            wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)));
        /* Fails where there is none: then count is 0. */
        cublasLtMatmulAlgoGetHeuristic(handle, desc, weight, in, added, out, wish, PROPOSED,
                                       found.data(), &count);
        CHECK_BLAS(cublasLtMatmulPreferenceDestroy(wish));
        found.resize(count);
    }

    cublasStatus_t run(cudaStream_t stream) const
    {
        const float alpha = e4m3 ? ALPHA : 1, beta = as == RESIDUAL ? 1 : 0;
        const void *other = as != RESIDUAL ? (const void *)p.in
                            : e4m3         ? p.residual
                                           : p.half_residual;
        return cublasLtMatmul(handle, desc, &alpha, e4m3 ? (const void *)p.weight_codes : p.weight,
                              weight, e4m3 ? (const void *)p.codes : p.in, in, &beta, other, added,
                              p.out, out, &algorithm, workspace, WORKSPACE, stream);
    }

    /* Keeps the fastest algorithm, each timed in three graphs of ten launches; false: there
     * is none. */
    bool tune(cudaStream_t stream)
    {
        float best = INFINITY;
        cublasLtMatmulAlgo_t winner;
        for (const cublasLtMatmulHeuristicResult_t &f : found) {
            algorithm = f.algo;
            if (f.state != CUBLAS_STATUS_SUCCESS || run(stream) != CUBLAS_STATUS_SUCCESS)
                continue;
            cudaGraphExec_t exec = record(stream, 10, [&](cudaStream_t s) { CHECK_BLAS(run(s)); });
            for (int i = 0; i < 3; i++) {
                const float ms = timed(stream, [&] { CHECK(cudaGraphLaunch(exec, stream)); });
                if (ms < best)
                    best = ms, winner = f.algo;
            }
            CHECK(cudaGraphExecDestroy(exec));
        }
        algorithm = winner;
        return best < INFINITY;
    }
};
