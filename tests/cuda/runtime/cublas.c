/* A cuBLASLt that computes on the host: D = A B + bias + beta C, all one column after another.  It
 * proposes as many algorithms as it is asked for, or as the variable FAKE_PROPOSALS says; all are
 * the same. */
#include "tests/cuda/runtime/runtime.h"

#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lt_desc {
    cublasLtEpilogue_t epilogue;
    const float *bias;
};

struct product {
    const float *a, *b, *c, *bias;
    float *d, beta;
    uint64_t rows, columns, inner;
    bool gelu;
};

static float gelu(float x)
{
    return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

/* Without sanitizers, which would be most of its time. */
__attribute__((no_sanitize("address", "undefined"))) static double
dot(const float *a, uint64_t step, const float *b, uint64_t count)
{
    double sum = 0;
    for (uint64_t k = 0; k < count; k++)
        sum += (double)a[k * step] * b[k];
    return sum;
}

/* Sanitizers see the last element of each row and column. */
static void run_product(const struct stub *stub, void *argument)
{
    const struct product *p = argument;
    const uint64_t last = p->inner - 1;
    (void)stub;
    for (uint64_t n = 0; n < p->columns; n++)
        for (uint64_t m = 0; m < p->rows; m++) {
            const float *a = p->a + m, *b = p->b + n * p->inner;
            double sum = p->bias != NULL ? p->bias[m] : 0;
            sum += dot(a, p->rows, b, last) + (double)a[last * p->rows] * b[last];
            if (p->beta != 0)
                sum += p->beta * p->c[n * p->rows + m];
            p->d[n * p->rows + m] = p->gelu ? gelu((float)sum) : (float)sum;
        }
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "not supported";
}

/* The handle is any memory: who destroys it twice is found. */
cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    *out = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    (void)compute;
    (void)scale;
    *out = calloc(1, sizeof(**out));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, int attribute,
                                              const void *value, size_t bytes)
{
    if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE)
        memcpy(&desc->epilogue, value, bytes);
    else
        memcpy(&desc->bias, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t pitch)
{
    *out = malloc(sizeof(**out));
    return cublasLtMatrixLayoutInit(*out, type, rows, columns, pitch);
}

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType_t type,
                                        uint64_t rows, uint64_t columns, int64_t pitch)
{
    (void)type;
    *layout = (struct lt_layout){rows, columns};
    return (uint64_t)pitch == rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t wish, int attribute,
                                                    const void *value, size_t bytes)
{
    (void)wish;
    (void)attribute;
    (void)value;
    (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t wish)
{
    free(wish);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t wish, int most,
                                              cublasLtMatmulHeuristicResult_t *out, int *count)
{
    (void)handle;
    (void)desc;
    (void)wish;
    bool fits = a->columns == b->rows && d->rows == a->rows && d->columns == b->columns && c == d;
    const char *proposals = getenv("FAKE_PROPOSALS");
    *count = proposals != NULL ? atoi(proposals) : most;
    for (int i = 0; i < *count; i++)
        out[i] = (cublasLtMatmulHeuristicResult_t){
            {i}, fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    static const struct stub stub = {.bytes = sizeof(struct product), .run = run_product};
    const struct product p = {.a = a,
                              .b = b,
                              .c = c,
                              .d = d,
                              .bias = desc->bias,
                              .beta = *(const float *)beta,
                              .rows = d_layout->rows,
                              .columns = d_layout->columns,
                              .inner = a_layout->columns,
                              .gelu = desc->epilogue == CUBLASLT_EPILOGUE_GELU_BIAS};
    (void)handle;
    (void)alpha;
    (void)b_layout;
    (void)c_layout;
    (void)algo;
    (void)workspace;
    (void)workspace_bytes;
    return launch_stub(&stub, &p, stream) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                         : CUBLAS_STATUS_NOT_SUPPORTED;
}
