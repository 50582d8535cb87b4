/* The text of each kernel file at its symbol, with a NUL behind it. */
#include "kernel_list.h"

    .section .rodata
#define X(symbol, name, path) \
    .global symbol; \
symbol: .incbin path; \
    .byte 0;
CPU_KERNELS(X)
CPU_PROGRAM(X)
CUDA_KERNELS(X)
CUDA_PROGRAM(X)
CUDA_LIBRARY(X)
#undef X

    .section .note.GNU-stack, "", %progbits
