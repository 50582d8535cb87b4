/* The kernels of the made-up GPU: the chain's operators in plain loops, fp32. */
#ifndef FUSEPLAN_TESTS_BENCH_FAKE_KERNELS_H
#define FUSEPLAN_TESTS_BENCH_FAKE_KERNELS_H

#include "kernels/cuda/abi.h"

/* Operators first..last of a layer.  What passes between them goes where args says, or nowhere. */
void fake_segment(const struct fp_args *a, int first, int last);

#endif
