/* The kernels that the stand-in of CUDA's runtime knows; stubs.c has them. */
#ifndef FUSEPLAN_TESTS_CUDA_RUNTIME_H
#define FUSEPLAN_TESTS_CUDA_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

struct stub {
    const void *kernel;
    size_t bytes; /* of its first argument */
    void (*run)(const struct stub *stub, void *argument);
    int first, last; /* operators of a segment */
};
extern const struct stub stubs[];
extern const int stub_count;

/* Runs a stub on a copy of its argument, or keeps it for the graph that is captured. */
void launch_stub(const struct stub *stub, const void *argument);

/* Does what the operators of a segment do, in fp32. */
void run_segment(const struct stub *stub, void *argument);

#endif
