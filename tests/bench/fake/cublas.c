/* A libcublasLt.so.13 that computes on the host, in fp32; in the stand-in of CUDA's runtime, too.
 * It offers four algorithms: 0 is right, 1 is not, 2 cannot be run, and 3 is right for as many rows
 * as it was proposed for.  Of e4m3 it has what NVIDIA's has: A transposed, C and bias in a half
 * type. */
#include "tests/bench/fake/cuda.h"

#include "bench/oracle/oracle.h"

enum { ALGORITHMS = 4, INTERNAL_ERROR = 14, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { RELU = 2, BIAS = 4, GELU = 32 };

struct desc {
    int32_t transposed, bias_type;
    uint32_t epilogue;
    int8_t fast;
    const void *bias;
    const float *factor;
};

struct matrix {
    uint64_t rows, columns;
    int type;
};

struct heuristic {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

static float gelu(double x)
{
    return (float)(0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))));
}

static bool is_half(int type)
{
    return type == FAKE_FP16 || type == FAKE_BF16;
}

static enum dtype half_of(enum fake_type type)
{
    return type == FAKE_BF16 ? DTYPE_BF16 : DTYPE_FP16;
}

/* A matrix in fp32: itself, or a copy in *room. */
static const float *widen(const void *from, enum fake_type type, uint64_t n, float **room)
{
    if (type == FAKE_FP32)
        return from;
    *room = mem_alloc(n, sizeof(**room));
    if (type != FAKE_E4M3)
        elements_unpack(half_of(type), from, (int64_t)n, *room);
    for (uint64_t i = 0; type == FAKE_E4M3 && i < n; i++)
        (*room)[i] = e4m3_unpack(((const uint8_t *)from)[i]);
    return *room;
}

/* Column j of the output. */
static void store(const struct fake_product *p, uint64_t j, const float *column)
{
    const uint64_t at = j * p->rows;
    if (p->stored == FAKE_FP32)
        memcpy((float *)p->d + at, column, p->rows * sizeof(*column));
    else if (p->stored != FAKE_E4M3)
        elements_pack(half_of(p->stored), column, (int64_t)p->rows, (uint16_t *)p->d + at);
    for (uint64_t i = 0; p->stored == FAKE_E4M3 && i < p->rows; i++)
        ((uint8_t *)p->d)[at + i] = e4m3_pack(column[i]);
}

/* A matrix (rows,inner) as (inner,rows). */
static const float *transpose(const float *from, uint64_t rows, uint64_t inner, float **room)
{
    *room = mem_alloc(rows * inner, sizeof(**room));
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t k = 0; k < inner; k++)
            (*room)[k * rows + i] = from[i * inner + k];
    return *room;
}

/* Without sanitizers, which would be most of its time. */
__attribute__((no_sanitize("address", "undefined"), optimize("O3"))) static void
add_products(const float *a, uint64_t rows, const float *b, uint64_t count, double *sum)
{
    for (uint64_t k = 0; k < count; k++)
        for (uint64_t i = 0; i < rows; i++)
            sum[i] += (double)a[k * rows + i] * b[k];
}

/* Sanitizers see the last element of each row and column. */
static void run(const struct fake_product *p)
{
    const uint64_t last = p->inner - 1, rows = p->rows;
    const float factor = p->factor != NULL ? *p->factor : 1;
    SCOPED float *room_a = NULL, *room_b = NULL, *room_c = NULL, *bias_room = NULL, *turned = NULL,
                 *out = mem_alloc(rows, sizeof(*out));
    SCOPED double *sums = mem_alloc(rows, sizeof(*sums));
    const float *a = widen(p->a, p->type, p->inner * rows, &room_a),
                *b = widen(p->b, p->type, p->inner * p->columns, &room_b),
                *c = p->beta != 0 ? widen(p->c, p->added, rows * p->columns, &room_c) : NULL,
                *bias =
                    (p->epilogue & BIAS) != 0 ? widen(p->bias, p->added, rows, &bias_room) : NULL;
    if (p->transposed)
        a = transpose(a, rows, p->inner, &turned);
    for (uint64_t j = 0; j < p->columns; j++, b += p->inner) {
        memset(sums, 0, rows * sizeof(*sums));
        add_products(a, rows, b, last, sums);
        for (uint64_t i = 0; i < rows; i++) {
            double sum = bias != NULL ? bias[i] : 0;
            sum += p->alpha * (sums[i] + (double)a[last * rows + i] * b[last]);
            if (p->beta != 0)
                sum += p->beta * c[j * rows + i];
            if ((p->epilogue & RELU) != 0)
                sum = fmax(sum, 0);
            out[i] = (p->epilogue & GELU) != 0 ? gelu(sum) : (float)sum;
            out[i] = (out[i] + p->extra) * factor;
        }
        store(p, j, out);
    }
}

#define FAKE __attribute__((visibility("default")))
/* No prototypes: nothing calls these by name. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

FAKE size_t cublasLtGetVersion(void)
{
    return 130204;
}

FAKE const char *cublasLtGetStatusString(int status)
{
    return status == INTERNAL_ERROR ? "fake internal error" : "fake error";
}

/* The handle is any memory: who destroys it twice is found. */
FAKE int cublasLtCreate(void **out)
{
    *out = malloc(1);
    return 0;
}

FAKE int cublasLtDestroy(void *handle)
{
    free(handle);
    return 0;
}

FAKE int cublasLtMatmulDescCreate(struct desc **out, int compute, int scale_type)
{
    *out = calloc(1, sizeof(**out));
    return 0;
}

FAKE int cublasLtMatmulDescDestroy(struct desc *d)
{
    free(d);
    return 0;
}

FAKE int cublasLtMatmulDescSetAttribute(struct desc *d, int attribute, const void *value,
                                        size_t bytes)
{
    const struct {
        int attribute;
        void *to;
        size_t bytes;
    } known[] = {{3, &d->transposed, sizeof(d->transposed)},
                 {7, &d->epilogue, sizeof(d->epilogue)},
                 {8, &d->bias, sizeof(d->bias)},
                 {20, &d->factor, sizeof(d->factor)},
                 {25, &d->fast, sizeof(d->fast)},
                 {26, &d->bias_type, sizeof(d->bias_type)}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].attribute == attribute && known[i].bytes == bytes) {
            memcpy(known[i].to, value, bytes);
            return 0;
        }
    return INVALID_VALUE;
}

FAKE int cublasLtMatrixLayoutInit(struct matrix *l, int type, uint64_t rows, uint64_t columns,
                                  int64_t ld)
{
    *l = (struct matrix){rows, columns, type};
    return (type == FAKE_FP32 || is_half(type) || type == FAKE_E4M3) && (uint64_t)ld == rows
               ? 0
               : NOT_SUPPORTED;
}

FAKE int cublasLtMatrixLayoutCreate(struct matrix **out, int type, uint64_t rows, uint64_t columns,
                                    int64_t ld)
{
    *out = malloc(sizeof(**out));
    return cublasLtMatrixLayoutInit(*out, type, rows, columns, ld);
}

FAKE int cublasLtMatrixLayoutDestroy(struct matrix *l)
{
    free(l);
    return 0;
}

FAKE int cublasLtMatmulPreferenceCreate(void **out)
{
    *out = malloc(1);
    return 0;
}

FAKE int cublasLtMatmulPreferenceDestroy(void *p)
{
    free(p);
    return 0;
}

FAKE int cublasLtMatmulPreferenceSetAttribute(void *p, int attribute, const void *value,
                                              size_t bytes)
{
    return attribute == 1 && bytes == sizeof(uint64_t) ? 0 : INVALID_VALUE;
}

/* Rows of e4m3 have a multiple of 16 bytes. */
static bool is_supported(const struct desc *d, const struct matrix *la, const struct matrix *lb,
                         const struct matrix *lc, const struct matrix *ld)
{
    const bool e4m3 = la->type == FAKE_E4M3;
    if (la->type != lb->type || (d->transposed != 0) != e4m3)
        return false;
    if (!e4m3)
        return lc->type == la->type && ld->type == la->type && d->factor == NULL;
    return is_half(lc->type) && (ld->type == lc->type || ld->type == FAKE_E4M3) &&
           (d->factor != NULL) == (ld->type == FAKE_E4M3) && d->bias_type == lc->type &&
           d->fast == 1 && la->rows % 16 == 0 &&
           ld->rows * (ld->type == FAKE_E4M3 ? 1 : 2) % 16 == 0;
}

FAKE int cublasLtMatmulAlgoGetHeuristic(void *handle, const struct desc *d, const struct matrix *la,
                                        const struct matrix *lb, const struct matrix *lc,
                                        const struct matrix *ld, void *preference, int wanted,
                                        struct heuristic *out, int *count)
{
    const uint64_t rows = d->transposed != 0 ? la->columns : la->rows,
                   inner = d->transposed != 0 ? la->rows : la->columns;
    if (inner != lb->rows || lc->rows != rows || ld->rows != rows || ld->columns != lb->columns)
        return INVALID_VALUE;
    *count = 0;
    if (!is_supported(d, la, lb, lc, ld))
        return NOT_SUPPORTED;
    *count = wanted < ALGORITHMS ? wanted : ALGORITHMS;
    for (int i = 0; i < *count; i++)
        out[i] =
            (struct heuristic){.algorithm = {(uint64_t)i, ld->columns}, .workspace_bytes = 1000};
    return 0;
}

FAKE int cublasLtMatmul(void *handle, const struct desc *desc, const float *alpha, const void *a,
                        const struct matrix *la, const void *b, const struct matrix *lb,
                        const float *beta, const void *c, const struct matrix *lc, void *d,
                        const struct matrix *ld, const uint64_t *algorithm, void *workspace,
                        size_t workspace_bytes, void *stream)
{
    if (!is_supported(desc, la, lb, lc, ld))
        return NOT_SUPPORTED;
    if (workspace == NULL || workspace_bytes < 1000)
        return INVALID_VALUE;
    if (*algorithm == 2)
        return INTERNAL_ERROR;
    bool wrong = *algorithm == 1 || (*algorithm == 3 && algorithm[1] != ld->columns);
    const struct fake_product p = {.a = a,
                                   .b = b,
                                   .c = c,
                                   .bias = desc->bias,
                                   .d = d,
                                   .type = (enum fake_type)lb->type,
                                   .added = (enum fake_type)lc->type,
                                   .stored = (enum fake_type)ld->type,
                                   .transposed = desc->transposed != 0,
                                   .factor = desc->factor,
                                   .alpha = *alpha,
                                   .beta = *beta,
                                   .extra = wrong ? 1 : 0,
                                   .rows = ld->rows,
                                   .columns = ld->columns,
                                   .inner = lb->rows,
                                   .epilogue = desc->epilogue};
    return fake_cuda_launch(&p, run, stream);
}
