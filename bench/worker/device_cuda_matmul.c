/* Segments that cuBLASLt runs.
 *
 * The library stores matrices by columns: our row-major (rows, columns) is its column-major
 * (columns, rows).  So it computes out^T = weight^T @ in^T without transposing an operand, and its
 * bias of one value a row of out^T is our bias of one value a column.
 *
 * Of e4m3 it takes the weight by rows of its inner dimension, as kernels do, and only so.  What it
 * stores in e4m3 it multiplies by a number in device memory: 1 over a scale, a power of two. */
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
    struct cublasLtMatrixLayout *weight, *in, *added, *out; /* added: the residual, like `out` */
    struct cublasLtMatmulAlgo algo;
    size_t workspace_bytes;
};

static void release_rows(struct matmul *m)
{
    struct cublasLtMatrixLayout **const layouts[] = {&m->in, &m->added, &m->out};
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        if (*layouts[i] != NULL)
            m->lib->MatrixLayoutDestroy(*layouts[i]);
        *layouts[i] = NULL;
    }
}

static int set_pointer(const struct matmul *m, int attribute, const void *to)
{
    return m->lib->MatmulDescSetAttribute(m->desc, attribute, &to, sizeof(to));
}

/* Sets what differs from layer to layer. */
static int set_pointers(const struct matmul *m, const void *bias, const float *factor)
{
    int error = CUBLAS_STATUS_SUCCESS;
    if (m->product.bias >= 0)
        error = set_pointer(m, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (error == CUBLAS_STATUS_SUCCESS && m->product.out_e4m3)
        error = set_pointer(m, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, factor);
    return error;
}

static int set_e4m3(const struct matmul *m, int stored)
{
    const int32_t transposed = CUBLAS_OP_T, bias_type = stored;
    const int8_t fast = 1; /* as the sums of other kernels: see verify_gemm_tolerance() */
    const struct {
        int name;
        const void *value;
        size_t bytes;
    } attributes[] = {
        {CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed)},
        {CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof(fast)},
        {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof(bias_type)},
    };
    int error = CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; i < ARRAY_LEN(attributes) && error == CUBLAS_STATUS_SUCCESS; i++)
        error = m->lib->MatmulDescSetAttribute(m->desc, attributes[i].name, attributes[i].value,
                                               attributes[i].bytes);
    return error;
}

static int describe(struct matmul *m, const struct workload *w, const void *bias,
                    const float *factor, struct status *st)
{
    const struct cublas *lib = m->lib;
    const struct cuda_product *p = &m->product;
    int64_t inner = dim_size(w->chain->weights[p->weight].rows, w);
    int64_t columns = dim_size(w->chain->weights[p->weight].cols, w);
    uint32_t epilogue = (uint32_t)p->epilogue;
    int type = types[w->dtype].stored;
    int error = lib->MatmulDescCreate(&m->desc, types[w->dtype].computed, CUDA_R_32F);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = lib->MatmulDescSetAttribute(m->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                            sizeof(epilogue));
    if (error == CUBLAS_STATUS_SUCCESS && p->e4m3)
        error = set_e4m3(m, type);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = set_pointers(m, bias, factor);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = p->e4m3 ? lib->MatrixLayoutCreate(&m->weight, CUDA_R_8F_E4M3, (uint64_t)inner,
                                                  (uint64_t)columns, inner)
                        : lib->MatrixLayoutCreate(&m->weight, type, (uint64_t)columns,
                                                  (uint64_t)inner, columns);
    return cublas_check(lib, error, "cuBLASLt cannot describe the GEMM", st);
}

/* Describes the matrices of so many token rows. */
static int lay_out(struct matmul *m, const struct workload *w, int64_t rows, struct status *st)
{
    const struct cublas *lib = m->lib;
    int type = types[w->dtype].stored;
    int64_t inner = dim_size(w->chain->weights[m->product.weight].rows, w);
    int64_t columns = dim_size(w->chain->weights[m->product.weight].cols, w);
    const struct {
        struct cublasLtMatrixLayout **to;
        bool e4m3;
        int64_t columns;
    } layouts[] = {{&m->in, m->product.e4m3, inner},
                   {&m->added, false, columns},
                   {&m->out, m->product.out_e4m3, columns}};
    int error = CUBLAS_STATUS_SUCCESS;
    release_rows(m);
    for (size_t i = 0; i < ARRAY_LEN(layouts) && error == CUBLAS_STATUS_SUCCESS; i++)
        error = lib->MatrixLayoutCreate(layouts[i].to, layouts[i].e4m3 ? CUDA_R_8F_E4M3 : type,
                                        (uint64_t)layouts[i].columns, (uint64_t)rows,
                                        layouts[i].columns);
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
        error = lib->MatmulAlgoGetHeuristic(lib->handle, m->desc, m->weight, m->in, m->added,
                                            m->out, wish, FP_ALGORITHMS, found, &count);
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

/* The powers of two of fp32, by its bits of the exponent. */
enum { FRACTION = 23, POWERS = 256 };

static int need_powers(struct device *d, struct status *st)
{
    uint32_t powers[POWERS];
    for (unsigned i = 0; i < POWERS; i++)
        powers[i] = i << FRACTION;
    return d->powers != 0 ? 0 : cuda_copy(d, powers, sizeof(powers), &d->powers, st);
}

/* factor: a power of two in the workload's half type, or 0. */
static const float *power_at(const struct device *d, uint16_t factor)
{
    float value = 0;
    uint32_t bits;
    if (factor != 0)
        elements_unpack(d->w->dtype, &factor, 1, &value);
    memcpy(&bits, &value, sizeof(bits));
    return cuda_pointer(d->powers + (bits >> FRACTION) * sizeof(bits));
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
    if (cublas_open(&m->lib, st) != 0 || (m->product.out_e4m3 && need_powers(d, st) != 0) ||
        describe(m, d->w, bias, power_at(d, 0), st) != 0 || lay_out(m, d->w, rows, st) != 0 ||
        choose_algorithm(m, st) != 0 ||
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

void matmul_open(struct device *d)
{
    const struct matmul *ignored;
    const int gemm = chain_gemm(d->w->chain, 0);
    struct choice choice;
    const struct launch first = {.choice = &choice};
    if (choice_parse(TARGET_CUDA, d->w->chain, (struct segment){(int8_t)gemm, (int8_t)gemm},
                     "library", "algorithm=0", &choice, STATUS_IGNORED) == 0)
        matmul_find(d, &first, &ignored, STATUS_IGNORED);
}

int matmul_launch(const struct device *d, const struct matmul *m, const struct fp_args *a,
                  struct status *st)
{
    const struct cuda_product *p = &m->product;
    const float alpha = p->e4m3 ? a->e4m3.alpha : 1, beta = p->residual >= 0 ? 1 : 0;
    const void *weight = p->e4m3 ? a->e4m3.weight : a->weight[p->weight];
    const void *in = p->e4m3 ? a->e4m3.in : a->tensor[p->in];
    void *out = p->out_e4m3 ? a->e4m3.out : a->tensor[p->out];
    const void *added = p->residual >= 0 ? a->tensor[p->residual] : p->out_e4m3 ? NULL : out;
    int error = set_pointers(m, p->bias >= 0 ? a->weight[p->bias] : NULL,
                             power_at(d, (uint16_t)a->e4m3.factors));
    if (error == CUBLAS_STATUS_SUCCESS)
        error = m->lib->Matmul(m->lib->handle, m->desc, &alpha, weight, m->weight, in, m->in, &beta,
                               added, m->added, out, m->out, &m->algo, a->workspace,
                               m->workspace_bytes, d->stream);
    return cublas_check(m->lib, error, "cuBLASLt cannot run the GEMM", st);
}

void matmuls_release(struct device *d)
{
    for (int i = 0; i < d->matmul_count; i++)
        release(d->matmuls[i]);
    free(d->matmuls);
}
