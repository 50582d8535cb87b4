/* The section of base.h on the processor and its memory.  Include base.h. */
#pragma once

#include "base/base.h"

/* ---- cpu_info.c: the processor and its memory ------------------------------------------------ */

struct cpu_info {
    char model[128];                 /* "Intel(R) Xeon(R) Processor" */
    char extension[32];              /* its widest vectors: "avx512" */
    char kernel[64];                 /* "Linux 6.1.0" */
    char flags_hash[HASH_TEXT_SIZE]; /* of all its flags, on which -march=native depends */
};
void cpu_info_read(struct cpu_info *out);

/* Seconds in which the machine's cores have worked since it started, for any program or, under a
 * hypervisor, for another machine; -1 if unknown. */
double cpu_busy_seconds(void);

/* Cores that this process may use, by its affinity and its control group's quota; at least 1. */
int cpu_threads(void);
/* Seconds for which the quota of its control group, or of one above it, has stopped its threads,
 * each counted, since the group was made. */
double cpu_throttled_seconds(void);

/* Bytes that the machine and its control group let this process map; UINT64_MAX: unknown. */
uint64_t mem_available_bytes(void);
/* The quota of a group alone, by a list of groups like /proc/self/cgroup and the directory where
 * groups are mounted; UINT64_MAX: no limit. */
uint64_t mem_group_bytes(const char *list, const char *root);
