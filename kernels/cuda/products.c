/* Segments that cuBLASLt runs.
 *
 * cuBLASLt takes column-major matrices, and a row-major (rows, columns) is a column-major (columns,
 * rows).  So it computes out^T = weight^T @ in^T: no operand is transposed, and its bias, one value
 * for a row of out^T, is one value for a column of out.
 *
 * Of e4m3 it takes the weight as (columns, inner), as kernels do, and only so.  It stores columns
 * where they stand: where these are in e4m3, weight and bias have their order. */
#include "e4m3.h"
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
    cublasLtMatrixLayout_t weight;
    cublasLtMatmulAlgo_t algo[STEPS]; /* of each step of rows */
    bool in_e4m3, out_e4m3;
    void *placed; /* with out_e4m3: the weight, the bias, and 1 over the scale of the output */
};

/* Matrices of so many rows, in the caller's memory: a call shares none with other calls. */
struct rows {
    cublasLtMatrixLayoutOpaque_t in, added, out; /* added: the residual */
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

static const char describing[] = "describe a product";

static cudaDataType_t type_of(bool e4m3)
{
    return e4m3 ? CUDA_R_8F_E4M3 : stored_type();
}

static cublasStatus_t set_rows(cublasLtMatrixLayoutOpaque_t *layout, bool e4m3, long columns,
                               long rows)
{
    return cublasLtMatrixLayoutInit(layout, type_of(e4m3), (uint64_t)columns, (uint64_t)rows,
                                    columns);
}

static int lay_out(const struct product *p, const struct plan_product *of, long rows,
                   struct rows *out)
{
    int status = check(set_rows(&out->in, p->in_e4m3, of->inner, rows), describing);
    if (status == ENCODER_OK)
        status = check(set_rows(&out->added, false, of->columns, rows), describing);
    if (status == ENCODER_OK)
        status = check(set_rows(&out->out, p->out_e4m3, of->columns, rows), describing);
    return status;
}

/* factor: by which the output is multiplied; null: by none. */
static int describe(struct product *p, const struct plan_product *of, const void *bias,
                    const void *factor)
{
    const cublasLtEpilogue_t epilogue = (cublasLtEpilogue_t)of->epilogue;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cudaDataType_t bias_type = stored_type();
    const int8_t fast = 1; /* sums as in other kernels */
    const struct {
        cublasLtMatmulDescAttributes_t name;
        bool wanted;
        const void *value;
        size_t bytes;
    } attributes[] = {
        {CUBLASLT_MATMUL_DESC_EPILOGUE, true, &epilogue, sizeof(epilogue)},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias != NULL, &bias, sizeof(bias)},
        {CUBLASLT_MATMUL_DESC_TRANSA, p->in_e4m3, &transposed, sizeof(transposed)},
        {CUBLASLT_MATMUL_DESC_FAST_ACCUM, p->in_e4m3, &fast, sizeof(fast)},
        {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p->in_e4m3, &bias_type, sizeof(bias_type)},
        {CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, factor != NULL, &factor, sizeof(factor)},
    };
    const long rows = p->in_e4m3 ? of->inner : of->columns,
               columns = p->in_e4m3 ? of->columns : of->inner;
    int status = check(cublasLtMatmulDescCreate(&p->desc, computed_type(), CUDA_R_32F), describing);
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes) && status == ENCODER_OK; i++)
        if (attributes[i].wanted)
            status = check(cublasLtMatmulDescSetAttribute(p->desc, attributes[i].name,
                                                          attributes[i].value, attributes[i].bytes),
                           describing);
    if (status == ENCODER_OK)
        status = check(cublasLtMatrixLayoutCreate(&p->weight, type_of(p->in_e4m3), (uint64_t)rows,
                                                  (uint64_t)columns, rows),
                       describing);
    return status;
}

/* Takes number `algorithm` of the algorithms that cuBLASLt proposes, its best guess first.  Another
 * version of cuBLASLt than the one that the plan was tuned with may propose fewer: then the best
 * guess. */
static int choose(const struct product *p, struct rows *rows, int algorithm,
                  cublasLtMatmulAlgo_t *algo)
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
        status = check(cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->weight, &rows->in,
                                                      &rows->added, &rows->out, wish, FP_ALGORITHMS,
                                                      found, &count),
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
    struct rows rows;
    int status = lay_out(p, of, rows_of_step(of, step), &rows);
    return status != ENCODER_OK ? status : choose(p, &rows, algorithm, &p->algo[step]);
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
    struct rows as;
    const float alpha = p->in_e4m3 ? a->e4m3.alpha : 1, beta = of->residual >= 0 ? 1 : 0;
    const void *weight = p->out_e4m3  ? p->placed
                         : p->in_e4m3 ? a->e4m3.weight
                                      : a->weight[of->weight];
    const void *in = p->in_e4m3 ? a->e4m3.in : a->tensor[of->in];
    void *out = p->out_e4m3 ? a->e4m3.out : a->tensor[of->out];
    const void *added = of->residual >= 0 ? a->tensor[of->residual] : p->out_e4m3 ? NULL : out;
    int status = lay_out(p, of, rows, &as);
    if (status != ENCODER_OK)
        return status;
    return check(cublasLtMatmul(p->handle, p->desc, &alpha, weight, p->weight, in, &as.in, &beta,
                                added, &as.added, out, &as.out,
                                &p->algo[(rows - 1) / step_rows(of)], a->workspace, WORKSPACE_BYTES,
                                stream),
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
    a.e4m3 = (struct fp_e4m3){
        .in = a.tensor[of->in], .weight = weight, .out = a.tensor[of->out], .alpha = 1};
    status = multiply(p, &a, of, rows_of_step(of, step), NULL);
    if (status == ENCODER_OK)
        status = encoder_check(cudaDeviceSynchronize(), "cannot run a product");
    encoder_device_free(memory);
    return status;
}

static void product_close(struct product *p)
{
    encoder_device_free(p->placed);
    if (p->weight != NULL)
        cublasLtMatrixLayoutDestroy(p->weight);
    if (p->desc != NULL)
        cublasLtMatmulDescDestroy(p->desc);
    if (p->owns_handle)
        cublasLtDestroy(p->handle);
    free(p);
}

/* Copies rows of a matrix to the places of as many columns. */
static int place_rows(void *to, const void *from, size_t row_bytes, long rows)
{
    enum { GROUP = 16 };
    int status = ENCODER_OK;
    for (int i = 0; i < GROUP && status == ENCODER_OK; i++)
        status = encoder_check(
            cudaMemcpy2D((char *)to + (size_t)e4m3_place(i) * row_bytes, GROUP * row_bytes,
                         (const char *)from + (size_t)i * row_bytes, GROUP * row_bytes, row_bytes,
                         (size_t)(rows / GROUP), cudaMemcpyDeviceToDevice),
            "cannot copy on the GPU");
    return status;
}

/* Weight and bias of a product that stores e4m3; *bias becomes the one in the columns' order. */
static int place(struct product *p, const struct plan_product *of, const void *weight, float factor,
                 const void **bias, void **factor_at)
{
    const size_t row = (size_t)of->inner, columns = (size_t)of->columns;
    const size_t element = (size_t)encoder_library.element_bytes;
    int status = encoder_device_allocate(columns * (row + element) + sizeof(factor), &p->placed);
    if (status != ENCODER_OK)
        return status;
    char *bias_at = (char *)p->placed + columns * row;
    *factor_at = bias_at + columns * element;
    status = place_rows(p->placed, weight, row, of->columns);
    if (status == ENCODER_OK)
        status = place_rows(bias_at, *bias, element, of->columns);
    if (status == ENCODER_OK)
        status = encoder_device_copy(*factor_at, &factor, sizeof(factor), false);
    *bias = bias_at;
    return status;
}

/* Describes a layer's product; *weight: the one that it reads. */
static int open_layer(const struct encoder *e, const struct plan_segment *s, int layer,
                      struct product *p, const void **weight)
{
    const struct plan_product *of = s->product;
    const void *const *of_layer = e->weight + (size_t)layer * WEIGHTS;
    const void *bias = of->bias >= 0 ? of_layer[of->bias] : NULL;
    void *factor = NULL;
    int status = ENCODER_OK;
    p->in_e4m3 = s->e4m3.in >= 0;
    p->out_e4m3 = s->e4m3.out >= 0;
    *weight = p->in_e4m3 ? encoder_codes(e, layer, s->e4m3.in)->at : of_layer[of->weight];
    if (p->out_e4m3)
        status = place(p, of, *weight, 1 / encoder_scale_of_output(e, layer, s->e4m3.out), &bias,
                       &factor);
    return status != ENCODER_OK ? status : describe(p, of, bias, factor);
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
        const void *weight;
        struct product *p = calloc(1, sizeof(*p));
        if (p == NULL) {
            if (layer == 0) /* later the first product owns it */
                cublasLtDestroy(handle);
            return encoder_fail(ENCODER_NO_MEMORY, "out of memory");
        }
        e->device->plans[plan].products[layer * encoder_plans[plan]->about.kernels + segment] = p;
        p->handle = handle;
        p->owns_handle = layer == 0;
        status = open_layer(e, s, layer, p, &weight);
        if (status == ENCODER_OK && layer == 0)
            status = choose_all(p, of, packed);
        else if (status == ENCODER_OK)
            memcpy(p->algo, first->algo, sizeof(p->algo));
        for (int i = packed ? 0 : STEPS - 1; i < STEPS && status == ENCODER_OK && layer == 0; i++)
            status = warm_up(p, of, i, weight);
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
