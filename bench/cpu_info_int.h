/* cpu_info.c: the processor, for both sides of the CPU target. */
#ifndef FUSEPLAN_BENCH_CPU_INFO_INT_H
#define FUSEPLAN_BENCH_CPU_INFO_INT_H

#include "base/base.h"

struct cpu_info {
    char model[128];                 /* "Intel(R) Xeon(R) Processor" */
    char extension[32];              /* its widest vectors: "avx512" */
    char kernel[64];                 /* "Linux 6.1.0" */
    char flags_hash[HASH_TEXT_SIZE]; /* of all that it can do: -march=native depends on it */
};
void cpu_info_read(struct cpu_info *out);

/* Cores that this process may use: affinity and the control group's quota. */
int cpu_threads(void);

#endif
