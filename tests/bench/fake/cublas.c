/* A libcublasLt.so.13 that computes on the host, in fp32; in the stand-in of CUDA's runtime, too.
 * It offers four algorithms: 0 is right, 1 is not, 2 cannot be run, and 3 is right for as many rows
 * as it was proposed for. */
#include "tests/bench/fake/cuda.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { ALGORITHMS = 4, INTERNAL_ERROR = 14, EPILOGUE = 7, BIAS_POINTER = 8 };
enum { RELU = 2, BIAS = 4, GELU = 32 };

struct desc {
    uint32_t epilogue;
    const float *bias;
};

struct layout {
    uint64_t rows, columns;
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
static void run(const struct fake_product *p)
{
    const uint64_t last = p->inner - 1;
    for (uint64_t j = 0; j < p->columns; j++)
        for (uint64_t i = 0; i < p->rows; i++) {
            uint64_t at = j * p->rows + i;
            double sum = (p->epilogue & BIAS) != 0 ? p->bias[i] : 0;
            const float *a = p->a + i, *b = p->b + j * p->inner;
            sum += dot(a, p->rows, b, last) + (double)a[last * p->rows] * b[last];
            if (p->beta != 0)
                sum += p->beta * p->c[at];
            if ((p->epilogue & RELU) != 0)
                sum = fmax(sum, 0);
            p->d[at] = ((p->epilogue & GELU) != 0 ? gelu(sum) : (float)sum) + p->extra;
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
    if (attribute == EPILOGUE && bytes == sizeof(d->epilogue))
        d->epilogue = *(const uint32_t *)value;
    else if (attribute == BIAS_POINTER && bytes == sizeof(d->bias))
        d->bias = *(const float *const *)value;
    else
        return 7; /* invalid value */
    return 0;
}

FAKE int cublasLtMatrixLayoutInit(struct layout *l, int type, uint64_t rows, uint64_t columns,
                                  int64_t ld)
{
    *l = (struct layout){rows, columns};
    return type == 0 && (uint64_t)ld == rows ? 0 : 15;
}

FAKE int cublasLtMatrixLayoutCreate(struct layout **out, int type, uint64_t rows, uint64_t columns,
                                    int64_t ld)
{
    *out = malloc(sizeof(**out));
    return cublasLtMatrixLayoutInit(*out, type, rows, columns, ld);
}

FAKE int cublasLtMatrixLayoutDestroy(struct layout *l)
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
    return attribute == 1 && bytes == sizeof(uint64_t) ? 0 : 7;
}

FAKE int cublasLtMatmulAlgoGetHeuristic(void *handle, const struct desc *d, const struct layout *la,
                                        const struct layout *lb, const struct layout *lc,
                                        const struct layout *ld, void *preference, int wanted,
                                        struct heuristic *out, int *count)
{
    if (la->columns != lb->rows || lc->rows != la->rows || ld->columns != lb->columns)
        return 7;
    *count = wanted < ALGORITHMS ? wanted : ALGORITHMS;
    for (int i = 0; i < *count; i++)
        out[i] =
            (struct heuristic){.algorithm = {(uint64_t)i, ld->columns}, .workspace_bytes = 1000};
    return 0;
}

FAKE int cublasLtMatmul(void *handle, const struct desc *desc, const float *alpha, const void *a,
                        const struct layout *la, const void *b, const struct layout *lb,
                        const float *beta, const void *c, const struct layout *lc, void *d,
                        const struct layout *ld, const uint64_t *algorithm, void *workspace,
                        size_t workspace_bytes, void *stream)
{
    if (*alpha != 1 || workspace == NULL || workspace_bytes < 1000)
        return 7;
    if (*algorithm == 2)
        return INTERNAL_ERROR;
    bool wrong = *algorithm == 1 || (*algorithm == 3 && algorithm[1] != ld->columns);
    const struct fake_product p = {.a = a,
                                   .b = b,
                                   .c = c,
                                   .bias = desc->bias,
                                   .d = d,
                                   .beta = *beta,
                                   .extra = wrong ? 1 : 0,
                                   .rows = ld->rows,
                                   .columns = ld->columns,
                                   .inner = lb->rows,
                                   .epilogue = desc->epilogue};
    return fake_cuda_launch(&p, run, stream);
}
