/* Segments that cuBLASLt runs.
 *
 * cuBLASLt takes column-major matrices, and a row-major (rows, columns) is a column-major (columns,
 * rows).  So it computes out^T = weight^T @ in^T: no operand is transposed, and its bias, one value
 * for a row of out^T, is one value for a column of out. */
#include "launch.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = FP_ROW_STEPS };
enum { WORKSPACE_BYTES = 32 << 20 }; /* NVIDIA's advice for sm_90, its largest */

struct product {
    cublasLtHandle_t handle; /* shared by all layers of a segment; the first one's to destroy */
    bool owns_handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t weight, in, out;
    cublasLtMatmulAlgo_t algo[STEPS]; /* of each step of rows */
};

static int check(cublasStatus_t status, const char *what)
{
    return status == CUBLAS_STATUS_SUCCESS
               ? ENCODER_OK
               : encoder_fail(ENCODER_DEVICE_FAILED, "cuBLASLt cannot %s: %s", what,
                              cublasLtGetStatusString(status));
}

/* What is stored, and what products are computed in. */
static cudaDataType_t stored_type(void)
{
    return encoder_library.dtype == ENCODER_FP16   ? CUDA_R_16F
           : encoder_library.dtype == ENCODER_BF16 ? CUDA_R_16BF
                                                   : CUDA_R_32F;
}

static cublasComputeType_t computed_type(void)
{
    return encoder_library.dtype == ENCODER_FP32   ? CUBLAS_COMPUTE_32F_PEDANTIC
           : encoder_library.dtype == ENCODER_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                   : CUBLAS_COMPUTE_32F;
}

static cublasStatus_t lay_out(cublasLtMatrixLayout_t *layout, long rows, long columns)
{
    return cublasLtMatrixLayoutCreate(layout, stored_type(), (uint64_t)rows, (uint64_t)columns,
                                      rows);
}

/* A layout in the caller's memory: a call shares none with other calls. */
static cublasStatus_t set_rows(cublasLtMatrixLayoutOpaque_t *layout, long columns, long rows)
{
    return cublasLtMatrixLayoutInit(layout, stored_type(), (uint64_t)columns, (uint64_t)rows,
                                    columns);
}

static int describe(struct product *p, const struct plan_product *of, const void *bias)
{
    static const char what[] = "describe a product";
    cublasLtEpilogue_t epilogue = (cublasLtEpilogue_t)of->epilogue;
    int status = check(cublasLtMatmulDescCreate(&p->desc, computed_type(), CUDA_R_32F), what);
    if (status == ENCODER_OK)
        status = check(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                      &epilogue, sizeof(epilogue)),
                       what);
    if (status == ENCODER_OK && bias != NULL)
        status = check(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                      &bias, sizeof(bias)),
                       what);
    if (status == ENCODER_OK)
        status = check(lay_out(&p->weight, of->columns, of->inner), what);
    if (status == ENCODER_OK)
        status = check(lay_out(&p->in, of->inner, of->rows), what);
    if (status == ENCODER_OK)
        status = check(lay_out(&p->out, of->columns, of->rows), what);
    return status;
}

/* Takes number `algorithm` of the algorithms that cuBLASLt proposes, its best guess first.  Another
 * version of cuBLASLt than the one that the plan was tuned with may propose fewer: then the best
 * guess. */
static int choose(const struct product *p, cublasLtMatrixLayout_t in, cublasLtMatrixLayout_t out,
                  int algorithm, cublasLtMatmulAlgo_t *algo)
{
    static const char what[] = "choose an algorithm";
    cublasLtMatmulHeuristicResult_t found[FP_ALGORITHMS];
    cublasLtMatmulPreference_t wish;
    uint64_t bytes = WORKSPACE_BYTES;
    int count = 0, status = check(cublasLtMatmulPreferenceCreate(&wish), what);
    if (status != ENCODER_OK)
        return status;
    status = check(cublasLtMatmulPreferenceSetAttribute(
                       wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)),
                   what);
    if (status == ENCODER_OK)
        status = check(cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->weight, in, out, out,
                                                      wish, FP_ALGORITHMS, found, &count),
                       what);
    cublasLtMatmulPreferenceDestroy(wish);
    if (algorithm >= count || found[algorithm].state != CUBLAS_STATUS_SUCCESS)
        algorithm = 0;
    if (status == ENCODER_OK)
        status = check(count > 0 ? found[algorithm].state : CUBLAS_STATUS_NOT_SUPPORTED, what);
    if (status == ENCODER_OK)
        *algo = found[algorithm].algo;
    return status;
}

static long step_rows(const struct plan_product *of)
{
    return (of->rows + STEPS - 1) / STEPS;
}

/* The most rows of a step. */
static long rows_of_step(const struct plan_product *of, int step)
{
    long rows = (step + 1) * step_rows(of);
    return rows < of->rows ? rows : of->rows;
}

static int choose_step(struct product *p, const struct plan_product *of, int step, int algorithm)
{
    cublasLtMatrixLayoutOpaque_t in, out;
    long rows = rows_of_step(of, step);
    if (set_rows(&in, of->inner, rows) != CUBLAS_STATUS_SUCCESS ||
        set_rows(&out, of->columns, rows) != CUBLAS_STATUS_SUCCESS)
        return encoder_fail(ENCODER_DEVICE_FAILED, "cuBLASLt cannot describe a product");
    return choose(p, &in, &out, algorithm, &p->algo[step]);
}

/* Packed tensors have fewer rows, known in a call alone: each step of them has its algorithm.  The
 * tuned one is of a single step; the others take the library's best guess. */
static int choose_all(struct product *p, const struct plan_product *of, bool packed)
{
    int tuned = (int)((of->tuned_rows - 1) / step_rows(of));
    int status = choose_step(p, of, tuned, of->algorithm);
    for (int i = packed ? 0 : STEPS; i < STEPS && status == ENCODER_OK; i++)
        if (i != tuned)
            status = choose_step(p, of, i, 0);
    return status;
}

/* rows: of the tensors; fewer than the product's own where they are packed. */
static int multiply(const struct product *p, const struct fp_args *a, const struct plan_product *of,
                    long rows, cudaStream_t stream)
{
    cublasLtMatrixLayoutOpaque_t in, packed_out;
    const float one = 1, zero = 0;
    void *out = a->tensor[of->out];
    const void *residual = of->residual >= 0 ? a->tensor[of->residual] : out;
    cublasLtMatrixLayout_t from = p->in, to = p->out;
    if (rows != of->rows) {
        int status = check(set_rows(&in, of->inner, rows), "describe a product");
        if (status == ENCODER_OK)
            status = check(set_rows(&packed_out, of->columns, rows), "describe a product");
        if (status != ENCODER_OK)
            return status;
        from = &in;
        to = &packed_out;
    }
    return check(cublasLtMatmul(p->handle, p->desc, &one, a->weight[of->weight], p->weight,
                                a->tensor[of->in], from, of->residual >= 0 ? &one : &zero, residual,
                                to, out, to, &p->algo[(rows - 1) / step_rows(of)], a->workspace,
                                WORKSPACE_BYTES, stream),
                 "run a product");
}

/* Loads the kernels of a product for a step of rows: a run on memory of its own. */
static int warm_up(const struct product *p, const struct plan_product *of, int step,
                   const void *weight)
{
    size_t each = (size_t)of->rows * (size_t)encoder_library.element_bytes;
    size_t in = each * (size_t)of->inner, out = each * (size_t)of->columns;
    struct fp_args a = {.batch = 0};
    void *memory;
    int status = encoder_device_allocate(in + 2 * out + WORKSPACE_BYTES, &memory);
    if (status != ENCODER_OK)
        return status;
    a.workspace = memory;
    a.tensor[of->in] = (char *)memory + WORKSPACE_BYTES;
    if (of->residual >= 0)
        a.tensor[of->residual] = (char *)memory + WORKSPACE_BYTES + in;
    a.tensor[of->out] = (char *)memory + WORKSPACE_BYTES + in + out;
    a.weight[of->weight] = weight;
    status = multiply(p, &a, of, rows_of_step(of, step), NULL);
    if (status == ENCODER_OK)
        status = encoder_check(cudaDeviceSynchronize(), "cannot run a product");
    encoder_device_free(memory);
    return status;
}

static void product_close(struct product *p)
{
    if (p->out != NULL)
        cublasLtMatrixLayoutDestroy(p->out);
    if (p->in != NULL)
        cublasLtMatrixLayoutDestroy(p->in);
    if (p->weight != NULL)
        cublasLtMatrixLayoutDestroy(p->weight);
    if (p->desc != NULL)
        cublasLtMatmulDescDestroy(p->desc);
    if (p->owns_handle)
        cublasLtDestroy(p->handle);
    free(p);
}

static int product_open(struct encoder *e, int plan, int segment)
{
    const struct plan_segment *s = &encoder_plans[plan]->segments[segment];
    const struct plan_product *of = s->product;
    const bool packed = encoder_plans[plan]->about.packed != 0;
    const struct product *first = NULL;
    cublasLtHandle_t handle = NULL;
    int status = check(cublasLtCreate(&handle), "start");
    for (int layer = 0; layer < e->layers && status == ENCODER_OK; layer++) {
        const void **weight = e->weight + (size_t)layer * WEIGHTS;
        struct product *p = calloc(1, sizeof(*p));
        if (p == NULL) {
            if (layer == 0) /* later the first product owns it */
                cublasLtDestroy(handle);
            return encoder_fail(ENCODER_NO_MEMORY, "out of memory");
        }
        e->device->plans[plan].products[layer * encoder_plans[plan]->about.kernels + segment] = p;
        p->handle = handle;
        p->owns_handle = layer == 0;
        status = describe(p, of, of->bias >= 0 ? weight[of->bias] : NULL);
        if (status == ENCODER_OK && layer == 0)
            status = choose_all(p, of, packed);
        else if (status == ENCODER_OK)
            memcpy(p->algo, first->algo, sizeof(p->algo));
        for (int i = packed ? 0 : STEPS - 1; i < STEPS && status == ENCODER_OK && layer == 0; i++)
            status = warm_up(p, of, i, weight[of->weight]);
        first = layer == 0 ? p : first;
    }
    return status;
}

static int product_run(const struct product *p, const struct run *r, const struct plan_product *of)
{
    return multiply(p, &r->args, of, r->packed ? r->args.tokens : of->rows,
                    (cudaStream_t)r->stream);
}

const struct product_calls encoder_products = {product_open, product_close, product_run};
