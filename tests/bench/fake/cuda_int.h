/* What the files of the fake driver share. */
#ifndef FUSEPLAN_TESTS_BENCH_FAKE_CUDA_INT_H
#define FUSEPLAN_TESTS_BENCH_FAKE_CUDA_INT_H

#include "tests/bench/fake/cuda.h"
#include "tests/bench/fake/kernels.h"

enum { OUT_OF_MEMORY = 2 };

/* No prototypes: nothing calls these by name. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define FAKE __attribute__((visibility("default"))) int

/* The hash of memory. */
void fake_hash(void **params);

extern int fake_sticky; /* what a kernel's fault left: most calls return it from then on */

#endif
