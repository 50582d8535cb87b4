/* What the fake libraries of CUDA say to each other. */
#ifndef FUSEPLAN_TESTS_BENCH_FAKE_CUDA_H
#define FUSEPLAN_TESTS_BENCH_FAKE_CUDA_H

#include <stdint.h>

/* D = A B + bias + beta C, all one column after another: D and C (rows, columns), A (rows, inner),
 * B (inner, columns), each without gaps; with GELU in its tanh form where epilogue has that bit. */
struct fake_product {
    const float *a, *b, *c, *bias;
    float *d, beta, extra; /* extra: added to every element */
    uint64_t rows, columns, inner;
    uint32_t epilogue; /* cublasLtEpilogue_t */
};

/* Runs a product at once or, while a graph is captured, in it; not 0 where that is full.  stream:
 * of CUDA's runtime; the driver has one. */
int fake_cuda_launch(const struct fake_product *p, void (*run)(const struct fake_product *p),
                     void *stream);

#endif
