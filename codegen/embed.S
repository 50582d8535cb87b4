/* The bytes of each kernel file between two symbols, with a NUL behind them. */
#include "kernel_list.h"

    .section .rodata
#define X(symbol, name, path) \
    .global symbol; .global symbol##_end; \
symbol: .incbin path; \
symbol##_end: .byte 0;
CPU_KERNELS(X)
CPU_PROGRAM(X)
CUDA_KERNELS(X)
CUDA_PROGRAM(X)
CUDA_LIBRARY(X)
#undef X

    .section .note.GNU-stack, "", %progbits
