/* Segments that cuBLASLt runs.
 *
 * The library stores matrices by columns: our row-major (rows, columns) is its column-major
 * (columns, rows).  So it computes out^T = weight^T @ in^T without transposing an operand, and its
 * bias of one value a row of out^T is our bias of one value a column. */
#include "bench/worker/cublas_int.h"
#include "bench/worker/device_cuda_int.h"

static const uint64_t workspace_max_bytes = CUDA_LIBRARY_WORKSPACE_BYTES;

/* The library's types.  PEDANTIC: fp32 is computed in fp32, even if the environment allows TF32. */
static const struct {
    int stored, computed;
} types[DTYPE_COUNT] = {
    [DTYPE_FP32] = {CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
    [DTYPE_TF32] = {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    [DTYPE_FP16] = {CUDA_R_16F, CUBLAS_COMPUTE_32F},
    [DTYPE_BF16] = {CUDA_R_16BF, CUBLAS_COMPUTE_32F},
};

struct matmul {
    const struct cublas *lib;
    struct choice choice;
    bool packed;
    struct cuda_product product; /* of the choice */
    struct cublasLtMatmulDesc *desc;
    struct cublasLtMatrixLayout *weight, *in, *out;
    struct cublasLtMatmulAlgo algo;
    size_t workspace_bytes;
};

static void release_rows(struct matmul *m)
{
    struct cublasLtMatrixLayout **const layouts[] = {&m->in, &m->out};
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        if (*layouts[i] != NULL)
            m->lib->MatrixLayoutDestroy(*layouts[i]);
        *layouts[i] = NULL;
    }
}

static int set_bias(const struct matmul *m, const void *bias)
{
    return m->product.bias < 0
               ? CUBLAS_STATUS_SUCCESS
               : m->lib->MatmulDescSetAttribute(m->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                                sizeof(const void *));
}

static int describe(struct matmul *m, const struct workload *w, const void *bias, struct status *st)
{
    const struct cublas *lib = m->lib;
    const struct cuda_product *p = &m->product;
    uint64_t inner = (uint64_t)dim_size(w->chain->weights[p->weight].rows, w);
    uint64_t columns = (uint64_t)dim_size(w->chain->weights[p->weight].cols, w);
    uint32_t epilogue = (uint32_t)p->epilogue;
    int type = types[w->dtype].stored;
    int error = lib->MatmulDescCreate(&m->desc, types[w->dtype].computed, CUDA_R_32F);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = lib->MatmulDescSetAttribute(m->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                            sizeof(epilogue));
    if (error == CUBLAS_STATUS_SUCCESS)
        error = set_bias(m, bias);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = lib->MatrixLayoutCreate(&m->weight, type, columns, inner, (int64_t)columns);
    return cublas_check(lib, error, "cuBLASLt cannot describe the GEMM", st);
}

/* Describes the matrices of so many token rows. */
static int lay_out(struct matmul *m, const struct workload *w, int64_t rows, struct status *st)
{
    const struct cublas *lib = m->lib;
    int type = types[w->dtype].stored;
    int64_t inner = dim_size(w->chain->weights[m->product.weight].rows, w);
    int64_t columns = dim_size(w->chain->weights[m->product.weight].cols, w);
    release_rows(m);
    int error = lib->MatrixLayoutCreate(&m->in, type, (uint64_t)inner, (uint64_t)rows, inner);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = lib->MatrixLayoutCreate(&m->out, type, (uint64_t)columns, (uint64_t)rows, columns);
    return cublas_check(lib, error, "cuBLASLt cannot describe the GEMM", st);
}

static int choose_algorithm(struct matmul *m, struct status *st)
{
    const struct cublas *lib = m->lib;
    struct cublasLtMatmulHeuristicResult found[FP_ALGORITHMS];
    struct cublasLtMatmulPreference *wish = NULL;
    int wanted = choice_knob(&m->choice, "algorithm"), count = 0;
    int error = lib->MatmulPreferenceCreate(&wish);
    if (error == CUBLAS_STATUS_SUCCESS)
        error =
            lib->MatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &workspace_max_bytes, sizeof(workspace_max_bytes));
    if (error == CUBLAS_STATUS_SUCCESS)
        error = lib->MatmulAlgoGetHeuristic(lib->handle, m->desc, m->weight, m->in, m->out, m->out,
                                            wish, FP_ALGORITHMS, found, &count);
    if (wish != NULL)
        lib->MatmulPreferenceDestroy(wish);
    if (error != CUBLAS_STATUS_NOT_SUPPORTED &&
        cublas_check(lib, error, "cuBLASLt cannot choose an algorithm", st) != 0)
        return -1;
    if (wanted >= count || found[wanted].state != CUBLAS_STATUS_SUCCESS)
        return status_set(st, STATUS_UNFIT,
                          "cuBLASLt has %d algorithms for the GEMM, and none numbered %d", count,
                          wanted);
    m->algo = found[wanted].algo;
    m->workspace_bytes = found[wanted].workspace_bytes;
    return 0;
}

static void release(struct matmul *m)
{
    const struct cublas *lib = m->lib;
    release_rows(m);
    if (m->weight != NULL)
        lib->MatrixLayoutDestroy(m->weight);
    if (m->desc != NULL)
        lib->MatmulDescDestroy(m->desc);
    free(m);
}

static int64_t all_rows(const struct workload *w)
{
    return (int64_t)w->batch * w->seq_len;
}

/* The rows for which cuBLASLt proposes the algorithms of packed tensors. */
static int64_t rows_of_algorithm(const struct workload *w)
{
    int64_t step = (all_rows(w) + FP_ROW_STEPS - 1) / FP_ROW_STEPS;
    int64_t rows = (workload_tokens(w) + step - 1) / step * step;
    return rows < all_rows(w) ? rows : all_rows(w);
}

static int make(struct device *d, const struct launch *l, struct matmul **out, struct status *st)
{
    struct matmul *m = mem_alloc(1, sizeof(*m));
    int64_t rows = l->packed ? rows_of_algorithm(d->w) : all_rows(d->w);
    *out = NULL;
    m->choice = *l->choice;
    m->packed = l->packed;
    choice_product(l->choice, &m->product);
    const void *bias = m->product.bias >= 0 ? l->weight[m->product.bias] : NULL;
    if (cublas_open(&m->lib, st) != 0 || describe(m, d->w, bias, st) != 0 ||
        lay_out(m, d->w, rows, st) != 0 || choose_algorithm(m, st) != 0 ||
        (l->packed && lay_out(m, d->w, workload_tokens(d->w), st) != 0)) {
        release(m);
        return -1;
    }
    d->matmuls = mem_resize(d->matmuls, (size_t)d->matmul_count + 1, sizeof(*d->matmuls));
    d->matmuls[d->matmul_count++] = *out = m;
    return 0;
}

int matmul_find(struct device *d, const struct launch *l, const struct matmul **out,
                struct status *st)
{
    struct matmul *m = NULL;
    for (int i = 0; i < d->matmul_count && m == NULL; i++)
        if (d->matmuls[i]->packed == l->packed && choice_equal(&d->matmuls[i]->choice, l->choice))
            m = d->matmuls[i];
    *out = NULL;
    if ((m == NULL && make(d, l, &m, st) != 0) ||
        cuda_reserve(d, &d->workspace, (int64_t)m->workspace_bytes, st) != 0)
        return -1;
    *out = m;
    return 0;
}

int matmul_launch(const struct device *d, const struct matmul *m, const struct fp_args *a,
                  struct status *st)
{
    static const float one = 1, zero = 0;
    const struct cuda_product *p = &m->product;
    bool residual = p->residual >= 0;
    int error = set_bias(m, p->bias >= 0 ? a->weight[p->bias] : NULL);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = m->lib->Matmul(
            m->lib->handle, m->desc, &one, a->weight[p->weight], m->weight, a->tensor[p->in], m->in,
            residual ? &one : &zero, a->tensor[residual ? p->residual : p->out], m->out,
            a->tensor[p->out], m->out, &m->algo, a->workspace, m->workspace_bytes, d->stream);
    return cublas_check(m->lib, error, "cuBLASLt cannot run the GEMM", st);
}

void matmuls_release(struct device *d)
{
    for (int i = 0; i < d->matmul_count; i++)
        release(d->matmuls[i]);
    free(d->matmuls);
}
