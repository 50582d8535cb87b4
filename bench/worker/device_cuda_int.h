/* What the files of the CUDA device share. */
#ifndef FUSEPLAN_BENCH_DEVICE_CUDA_INT_H
#define FUSEPLAN_BENCH_DEVICE_CUDA_INT_H

#include "bench/worker/cuda_driver_int.h"
#include "bench/worker/nvidia_int.h"
#include "bench/worker/worker_int.h"
#include "kernels/cuda/abi.h"

struct function {
    struct CUfunc_st *code;
};

/* Memory that all launches use in turn.  One that was too small is not freed: replays hold it. */
struct scratch {
    unsigned long long at;
    int64_t bytes;
};

/* Host memory that copies to and from the device pass through. */
struct staging {
    void *at; /* owned */
    size_t bytes;
    bool pinned; /* the GPU reads and writes it directly */
};

/* A mask by tiles, in device memory. */
struct tiles {
    int kind; /* of the layers that have it */
    struct tiling tiling;
    struct fp_tiles at;
};

struct device {
    const struct cuda_driver *cu;
    const struct workload *w; /* borrowed */
    int ordinal;              /* the driver's number of the device */
    int element_bytes;
    int units;                   /* multiprocessors */
    int unit_threads;            /* the most threads that a multiprocessor holds */
    int cache_bytes;             /* of the second level */
    int shared_bytes;            /* the most that a thread block may have */
    bool dependent;              /* a launch may begin before the one in front of it has ended */
    uint64_t available_at_first; /* bytes, when the device was opened */
    uint64_t taken;              /* of available_at_first, by cuda_take() */
    struct CUstream_st *stream;
    struct CUevent_st *events[SAMPLES_AT_ONCE + 1];
    struct staging staging;
    struct matmul **matmuls;
    int matmul_count;
    unsigned long long powers; /* of two, for matmuls that store e4m3; 0: there are none so far */
    struct nvml *nvml;         /* null: none found */
    struct conditions conditions;
    double conditions_read_s;          /* when, clock_seconds() */
    struct fp_args common;             /* the arguments that all launches share */
    struct fp_blocks masks[KINDS_MAX]; /* by kind of layers */
    const int *unpacked, *offset;      /* of packed launches, in device memory */
    struct tiles *tiles;               /* (tiles_count) asked for so far */
    int tiles_count;
    struct scratch sync, workspace, stamps;
    struct CUfunc_st *hash;      /* null: the driver does not compile it, or not right */
    unsigned long long hash_sum; /* what it gives, in device memory */
};

/* ---- device_cuda_memory.c: errors and memory ------------------------------------------------- */

static inline void *cuda_pointer(unsigned long long at)
{
    return (void *)(uintptr_t)at;
}

/* Ends the worker if there is an error: for calls that fail only because earlier code failed. */
void cuda_must(const struct device *d, int error, const char *what);

/* Waits for the end of the queue; `what` was queued last. */
void cuda_finish(const struct device *d, const char *what);

void cuda_stage_release(struct device *d);

/* Bytes that may still be allocated: some stay free for code, stacks and the driver. */
uint64_t cuda_available(const struct device *d);

/* Allocates device memory.  If there is too little, STATUS_ENVIRONMENT where another program has
 * taken it since the device was opened, else STATUS_UNFIT. */
int cuda_take(struct device *d, int64_t bytes, unsigned long long *out, struct status *st);

void cuda_free(struct device *d, void *memory); /* takes null */

/* Allocates device memory and copies host memory there; *out is 0 if there are no bytes. */
int cuda_copy(struct device *d, const void *from, size_t bytes, unsigned long long *out,
              struct status *st);

/* Copies all of some arrays, or none. */
struct cuda_array {
    const void *from;
    size_t bytes;
    unsigned long long at; /* the copy */
};
int cuda_copy_arrays(struct device *d, struct cuda_array *arrays, size_t count, struct status *st);

/* Makes *s at least `bytes` large: if it is smaller, new memory of zeros replaces it. */
int cuda_reserve(struct device *d, struct scratch *s, int64_t bytes, struct status *st);

/* Rows of device_ops. */
int cuda_alloc(struct device *d, int64_t bytes, void **out, struct status *st);
void cuda_write(struct device *d, void *to, const void *from, int64_t bytes);
void cuda_upload(struct device *d, void *to, enum dtype dtype, const float *from, int64_t elements);
const void *cuda_view(struct device *d, const void *memory, int64_t elements);
void cuda_poison(struct device *d, void *memory, int64_t elements);
void cuda_copy_within(struct device *d, void *to, const void *from, int64_t elements);

/* ---- device_cuda_hash.c ---------------------------------------------------------------------- */

/* Has the driver compile the kernel, and tries it. */
void cuda_hash_open(struct device *d);
bool cuda_hash(struct device *d, const void *memory, int64_t bytes, uint64_t *out);

/* ---- device_cuda_matmul.c: GEMMs that cuBLASLt runs ------------------------------------------ */

struct matmul; /* one choice's GEMM, owned by the device */

/* Opens the library and asks it for an algorithm: the first answer takes it 0.1 s. */
void matmul_open(struct device *d);

/* Describes a launch's GEMM when it is first asked for; makes d->workspace large enough for it. */
int matmul_find(struct device *d, const struct launch *l, const struct matmul **out,
                struct status *st);

/* Launches a GEMM on the device's stream, which may be capturing. */
int matmul_launch(const struct device *d, const struct matmul *m, const struct fp_args *a,
                  struct status *st);
void matmuls_release(struct device *d);

/* ---- device_cuda_mask.c: masks in device memory ---------------------------------------------- */

/* Copies the plain block lists of each kind of layers to d->masks. */
int cuda_copy_masks(struct device *d, struct status *st);

/* The mask of a kind of layers by tiles, which stay on the device once asked for. */
int cuda_tiles_find(struct device *d, int kind, const struct tiling *t, struct fp_tiles *out,
                    struct status *st);

/* ---- device_cuda_maps.c: the operands of a GEMM ---------------------------------------------- */

/* The maps of a launch with the tensors and weights of its arguments, and the arguments' gemm. */
int cuda_encode_maps(const struct device *d, const struct cuda_launch *l, struct fp_args *a,
                     struct fp_maps *out, struct status *st);

/* ---- device_cuda_replay.c, _stamps.c: a sequence of launches --------------------------------- */

struct node {
    const struct function *function; /* null: matmul runs */
    const struct matmul *matmul;     /* null: function runs */
    struct fp_args args;
    struct cuda_launch launch; /* unless matmul runs */
    struct fp_maps maps;
    struct resources resources;
    bool alone;               /* a multiprocessor holds one of its thread blocks */
    int stamped_blocks;       /* its thread blocks, if its kernel takes `stamps`; else 0 */
    struct fp_stamps *stamps; /* of its thread blocks, in device memory */
};

struct replay {
    struct device *device;
    struct CUgraphExec_st *once;  /* all launches; null until timed */
    struct CUgraphExec_st *often; /* all launches `times` times; null until needed */
    int times;
    struct fp_stamps *stamps; /* (stamped_blocks) of all nodes, in device memory */
    size_t stamped_blocks;
    int count;
    struct node nodes[];
};

/* Makes the graphs that run all launches `repeats` times. */
int cuda_make_graphs(struct replay *r, int repeats, struct status *st);

/* ---- device_cuda_limits.c, _open.c, _replay.c, _stamps.c: rows of device_ops
 * ---------------------------- */

void cuda_limits(struct device *d, struct limits *out);

int cuda_open(int index, const struct workload *w, struct device **out, struct status *st);
void cuda_close(struct device *d);
int cuda_load(struct device *d, const char *path, const char *symbol, struct function **out,
              struct status *st);
int cuda_prepare(struct device *d, const struct launch *launches, int count, struct replay **out,
                 struct status *st);
void cuda_release(struct replay *r);
void cuda_resources(const struct replay *r, struct resources *out);

int cuda_run(struct replay *r, int first, int count, struct status *st);
int cuda_time(struct replay *r, int repeats, int samples, double *seconds, struct status *st);
int cuda_stamps(struct replay *r, struct launch_stamps *out, struct status *st);

#endif
