/* What the files of the CUDA device share. */
#ifndef FUSEPLAN_BENCH_DEVICE_CUDA_INT_H
#define FUSEPLAN_BENCH_DEVICE_CUDA_INT_H

#include "bench/worker/cuda_driver_int.h"
#include "bench/worker/nvml_int.h"
#include "bench/worker/worker_int.h"
#include "kernels/cuda/abi.h"

struct function {
    struct CUmod_st *module;
    struct CUfunc_st *code;
};

/* Memory that launches share, one after another.  What was too small stays: replays hold it. */
struct scratch {
    unsigned long long at;
    int64_t bytes;
};

/* The host's side of a copy. */
struct staging {
    void *at; /* owned */
    size_t bytes;
    bool pinned; /* in memory that the GPU reads and writes by itself */
};

struct device {
    const struct cuda_driver *cu;
    const struct workload *w; /* borrowed */
    int ordinal;              /* the driver's number of it */
    int element_bytes;
    int units;        /* multiprocessors */
    int unit_threads; /* that one can hold */
    int cache_bytes;  /* of the second level */
    int shared_bytes; /* that a thread block may have */
    struct CUstream_st *stream;
    struct CUevent_st *events[SAMPLES_AT_ONCE + 1];
    struct staging staging;
    struct function **functions;
    int function_count;
    struct matmul **matmuls;
    int matmul_count;
    struct nvml *nvml; /* null: none found */
    struct conditions conditions;
    double conditions_read_s; /* when, clock_seconds() */
    struct fp_args common;    /* what all launches have alike */
    struct scratch sync, workspace;
};

/* ---- device_cuda.c: errors and memory -------------------------------------------------------- */

static inline void *cuda_pointer(unsigned long long at)
{
    return (void *)(uintptr_t)at;
}

/* For calls that fail only when code that ran before them failed: ends the worker then. */
void cuda_must(const struct device *d, int error, const char *what);

/* Waits for all that was asked of the device. */
void cuda_finish(const struct device *d, const char *what);

void cuda_stage_release(struct device *d);

/* Bytes that may still be allocated: a share of what is free stays for code, stacks and the driver.
 */
uint64_t cuda_available(const struct device *d);

/* STATUS_UNFIT, with what is available, where the memory does not suffice. */
int cuda_take(struct device *d, int64_t bytes, unsigned long long *out, struct status *st);

/* Makes it at least so large, and zeroes what is new. */
int cuda_reserve(struct device *d, struct scratch *s, int64_t bytes, struct status *st);

/* ---- device_cuda_matmul.c: what cuBLASLt runs ------------------------------------------------ */

struct matmul; /* one choice's product, owned by the device */

/* Described when first asked for; d->workspace is large enough for it then. */
int matmul_find(struct device *d, const struct launch *l, const struct matmul **out,
                struct status *st);

/* On the device's stream, which may be capturing. */
int matmul_launch(const struct device *d, const struct matmul *m, const struct fp_args *a,
                  struct status *st);
void matmuls_release(struct device *d);

/* ---- device_cuda_limits.c, _open.c, _replay.c, _trace.c: rows of device_ops ------------------ */

void cuda_limits(struct device *d, struct limits *out);

int cuda_open(int index, const struct workload *w, struct device **out, struct status *st);
void cuda_close(struct device *d);
int cuda_load(struct device *d, const char *path, const char *symbol, const struct function **out,
              struct status *st);
int cuda_prepare(struct device *d, const struct launch *launches, int count, struct replay **out,
                 struct status *st);
void cuda_release(struct replay *r);
void cuda_resources(const struct replay *r, struct resources *out);

/* All launches `times` times as one graph, which the caller destroys; launch i between events 2i
 * and 2i+1, unless events is null.  Relaxed: a library loads its kernels as it needs them. */
int cuda_capture(struct replay *r, int times, struct CUevent_st *const *events,
                 struct CUgraphExec_st **out, struct status *st);
int cuda_run(struct replay *r, int first, int count, struct status *st);
int cuda_time(struct replay *r, int repeats, int samples, double *seconds, struct status *st);
int cuda_trace(struct device *d, struct replay *r, int count, struct launch_time *out,
               struct status *st);

#endif
