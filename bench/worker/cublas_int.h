/* The part of cuBLASLt that the worker uses, declared here so that fuseplan builds without CUDA's
 * headers.  Names and numbers are its header's.  The library takes half a gigabyte, so it is
 * opened when the first candidate needs it. */
#ifndef FUSEPLAN_BENCH_CUBLAS_INT_H
#define FUSEPLAN_BENCH_CUBLAS_INT_H

#include "base/base.h"

struct CUstream_st;
struct cublasLtContext;
struct cublasLtMatmulDesc;
struct cublasLtMatrixLayout;
struct cublasLtMatmulPreference;

struct cublasLtMatmulAlgo {
    uint64_t data[8];
};

struct cublasLtMatmulHeuristicResult {
    struct cublasLtMatmulAlgo algo;
    size_t workspace_bytes;
    int state; /* cublasStatus_t; unless it is a success the other fields are unspecified */
    float waves;
    int reserved[4];
};

enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_SUPPORTED = 15 };

enum { /* cudaDataType */
       CUDA_R_32F = 0,
       CUDA_R_16F = 2,
       CUDA_R_16BF = 14,
       CUDA_R_8F_E4M3 = 28
};

enum { /* cublasComputeType_t */
       CUBLAS_COMPUTE_32F = 68,
       CUBLAS_COMPUTE_32F_PEDANTIC = 69,
       CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};

enum { CUBLAS_OP_T = 1 };

enum { /* cublasLtMatmulDescAttributes_t */
       CUBLASLT_MATMUL_DESC_TRANSA = 3,
       CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
       CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
       CUBLASLT_MATMUL_DESC_D_SCALE_POINTER = 20,
       CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,
       CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
};

enum { /* cublasLtMatmulPreferenceAttributes_t */
       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
};

/* Result, name without "cublasLt", parameters. */
#define CUBLAS_FUNCTIONS(X)                                                                        \
    X(size_t, GetVersion, (void))                                                                  \
    X(const char *, GetStatusString, (int status))                                                 \
    X(int, Create, (struct cublasLtContext * *out))                                                \
    X(int, MatmulDescCreate, (struct cublasLtMatmulDesc * *out, int compute, int scale_type))      \
    X(int, MatmulDescDestroy, (struct cublasLtMatmulDesc * desc))                                  \
    X(int, MatmulDescSetAttribute,                                                                 \
      (struct cublasLtMatmulDesc * desc, int attribute, const void *value, size_t bytes))          \
    X(int, MatrixLayoutCreate,                                                                     \
      (struct cublasLtMatrixLayout * *out, int type, uint64_t rows, uint64_t columns, int64_t ld)) \
    X(int, MatrixLayoutDestroy, (struct cublasLtMatrixLayout * layout))                            \
    X(int, MatmulPreferenceCreate, (struct cublasLtMatmulPreference * *out))                       \
    X(int, MatmulPreferenceDestroy, (struct cublasLtMatmulPreference * preference))                \
    X(int, MatmulPreferenceSetAttribute,                                                           \
      (struct cublasLtMatmulPreference * preference, int attribute, const void *value,             \
       size_t bytes))                                                                              \
    X(int, MatmulAlgoGetHeuristic,                                                                 \
      (struct cublasLtContext * handle, struct cublasLtMatmulDesc * desc,                          \
       struct cublasLtMatrixLayout * a, struct cublasLtMatrixLayout * b,                           \
       struct cublasLtMatrixLayout * c, struct cublasLtMatrixLayout * d,                           \
       struct cublasLtMatmulPreference * preference, int wanted,                                   \
       struct cublasLtMatmulHeuristicResult *out, int *count))                                     \
    X(int, Matmul,                                                                                 \
      (struct cublasLtContext * handle, struct cublasLtMatmulDesc * desc, const void *alpha,       \
       const void *a, struct cublasLtMatrixLayout *a_layout, const void *b,                        \
       struct cublasLtMatrixLayout *b_layout, const void *beta, const void *c,                     \
       struct cublasLtMatrixLayout *c_layout, void *d, struct cublasLtMatrixLayout *d_layout,      \
       const struct cublasLtMatmulAlgo *algo, void *workspace, size_t workspace_bytes,             \
       struct CUstream_st *stream))

struct cublas {
/* A declarator takes no parentheses: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(result, name, parameters) result(*name) parameters;
    CUBLAS_FUNCTIONS(X)
#undef X
    struct cublasLtContext *handle; /* of the device whose context was current at cublas_open() */
};

/* Opens the library and makes its handle, once a process; a CUDA context must be current.  A
 * failure is STATUS_LAUNCH. */
int cublas_open(const struct cublas **out, struct status *st);

/* 0 if error is none, else STATUS_LAUNCH with "what: the library's message". */
int cublas_check(const struct cublas *lib, int error, const char *what, struct status *st);

#endif
