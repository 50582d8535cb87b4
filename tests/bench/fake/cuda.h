/* What the fake libraries of CUDA say to each other. */
#ifndef FUSEPLAN_TESTS_BENCH_FAKE_CUDA_H
#define FUSEPLAN_TESTS_BENCH_FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

/* What cuBLASLt stores; numbers of cudaDataType. */
enum fake_type { FAKE_FP32 = 0, FAKE_FP16 = 2, FAKE_BF16 = 14, FAKE_E4M3 = 28 };

/* D = (alpha A B + bias + beta C) * factor, all one column after another: D and C (rows, columns),
 * A (rows, inner), B (inner, columns), each without gaps; with GELU in its tanh form where epilogue
 * has that bit. */
struct fake_product {
    const void *a, *b, *c, *bias;
    void *d;
    enum fake_type type, added, stored; /* of A and B, of C and the bias, of D */
    bool transposed;                    /* A is (inner, rows) */
    const float *factor;                /* null: 1 */
    float alpha, beta, extra;           /* extra: added to every element before the factor */
    uint64_t rows, columns, inner;
    uint32_t epilogue; /* cublasLtEpilogue_t */
};

/* Runs a product at once or, while a graph is captured, in it; not 0 where that is full.  stream:
 * of CUDA's runtime; the driver has one. */
int fake_cuda_launch(const struct fake_product *p, void (*run)(const struct fake_product *p),
                     void *stream);

#endif
