/* The CUDA target's private parts on the parent's side.  Nothing here loads a driver or a compiler:
 * the worker's program does, in processes that end at once. */
#ifndef FUSEPLAN_TARGET_CUDA_INT_H
#define FUSEPLAN_TARGET_CUDA_INT_H

#include "bench/bench_int.h"

/* ---- gpu.c: the device as the worker's probe describes it ------------------------------------ */

struct gpu {
    char name[128], uuid[64], driver[64];
    int arch;  /* 90 for sm_90 */
    int units; /* multiprocessors */
    int cuda;  /* the version that its driver supports: 13000 for 13.0 */
    int mhz, max_mhz, processes;
    char throttled[128];
};

enum {
    PROBE_LIMIT_S = 60 /* a driver that starts cold takes seconds */
};

/* Runs the worker's program and reads the one JSON object that it prints.  argument may be null. */
int ask_worker(const struct toolchain_request *from, const char *question, const char *argument,
               json_t **out, struct status *st);

int gpu_find(const struct toolchain_request *request, struct gpu *out, struct status *st);

/* What was said of it since this machine started, with the same driver and the same devices to
 * choose from, kept in the cache; else as gpu_find(), which waits for the driver to start.  Only
 * what does not change by itself is right: not its clock, its load or what throttles it.  proc:
 * "/proc". */
int gpu_recall(const struct toolchain_request *request, const struct cache *c, const char *proc,
               struct gpu *out, struct status *st);

/* Fills in what the device says, and no more. */
void gpu_describe(const struct gpu *gpu, struct fingerprint *out);

/* ---- cuda_compiler.c ------------------------------------------------------------------------- */

/* Finds the compiler that was asked for, or the fastest that serves the GPU, and proves that it
 * does.  out->where describes the GPU; out gets the rest. */
int cuda_compiler_find(const struct toolchain_request *request, const struct gpu *gpu,
                       const struct cache *c, struct toolchain *out, struct status *st);

#endif
