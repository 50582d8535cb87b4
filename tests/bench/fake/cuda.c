/* A libcuda.so.1 that computes on the host, in fp32.  A segment's kernel does what its "cubin"
 * says, see kernels.h.  FAKE_GPU=none|old|later|hopper|shy makes the driver see no GPU, one of
 * capability 7.5, 8.6 or 9.0, or one that does not say how wide its memory is.  FAKE_GPU_BYTES is
 * the memory that it has. */
#include "tests/bench/fake/cuda.h"
#include "base/base.h"
#include "bench/worker/cuda_driver_int.h"
#include "tests/bench/fake/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 4096, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200, NOT_FOUND = 500 };

struct node {
    double *event;          /* to record; else null */
    struct fake_code *code; /* of a kernel; else null */
    struct fp_args args;
    struct fake_product product;
    void (*run)(const struct fake_product *p); /* of a product; else null */
    unsigned grid, block;
};

struct graph {
    int count;
    struct node nodes[NODES_MAX];
};

static struct graph *captured; /* being captured; else null */
static int sticky;
static size_t taken; /* bytes of memory */

struct block {
    _Alignas(16) size_t bytes;
    _Alignas(16) unsigned char memory[];
};

static bool gpu_is(const char *what)
{
    const char *given = getenv("FAKE_GPU");
    return given != NULL && strcmp(given, what) == 0;
}

static size_t memory_bytes(void)
{
    const char *given = getenv("FAKE_GPU_BYTES");
    return given != NULL ? strtoull(given, NULL, 10) : 1 << 28;
}

static void execute(const struct node *n)
{
    if (n->event != NULL)
        *n->event = clock_seconds();
    else if (n->run != NULL)
        n->run(&n->product);
    else if (fake_code_run(n->code, &n->args) != 0)
        sticky = ILLEGAL_ADDRESS;
}

/* No prototypes: nothing calls these by name. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define FAKE __attribute__((visibility("default"))) int

FAKE cuInit(unsigned flags)
{
    (void)flags;
    return gpu_is("none") ? NO_DEVICE : 0;
}

FAKE cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

FAKE cuGetErrorName(int error, const char **out)
{
    *out = error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_UNKNOWN";
    return 0;
}

FAKE cuGetErrorString(int error, const char **out)
{
    *out = error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "unknown error";
    return 0;
}

FAKE cuDeviceGet(int *device, int index)
{
    *device = index;
    return 0;
}

FAKE cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}

FAKE cuDeviceGetName(char *out, int size, int device)
{
    (void)device;
    snprintf(out, (size_t)size, "Fake GPU");
    return 0;
}

FAKE cuDeviceGetUuid_v2(unsigned char out[16], int device)
{
    (void)device;
    for (int i = 0; i < 16; i++)
        out[i] = (unsigned char)(i * 17);
    return 0;
}

FAKE cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = memory_bytes();
    return 0;
}

FAKE cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    const int values[][2] = {
        {13, 1000000},                 /* kHz of the multiprocessors */
        {16, 4},                       /* multiprocessors */
        {36, 500000},                  /* kHz of the memory */
        {37, gpu_is("shy") ? 0 : 256}, /* bits of its bus */
        {38, 1 << 20},                 /* bytes of second-level cache */
        {39, 2048},                    /* threads of a multiprocessor */
        {75, gpu_is("old")      ? 7
             : gpu_is("hopper") ? 9
                                : 8}, /* capability: major */
        {76, gpu_is("old")     ? 5
             : gpu_is("later") ? 6
                               : 0}, /* and minor */
        {97, 100000},                /* bytes of shared memory of a thread block */
    };
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        if (values[i][0] == attribute) {
            *value = values[i][1];
            return 0;
        }
    return 1;
}

FAKE cuDevicePrimaryCtxRetain(void **out, int device)
{
    (void)device;
    *out = &sticky;
    return 0;
}

FAKE cuCtxSetCurrent(void *context)
{
    return context == &sticky ? 0 : 1;
}

FAKE cuMemGetInfo_v2(size_t *available, size_t *total)
{
    *total = memory_bytes();
    *available = *total - taken;
    return 0;
}

FAKE cuMemAlloc_v2(unsigned long long *out, size_t bytes)
{
    struct block *block = bytes > memory_bytes() - taken ? NULL : malloc(sizeof(*block) + bytes);
    if (block == NULL)
        return OUT_OF_MEMORY;
    block->bytes = bytes;
    taken += bytes;
    *out = (unsigned long long)(uintptr_t)block->memory;
    return sticky;
}

FAKE cuMemFree_v2(unsigned long long memory)
{
    struct block *block = (struct block *)(uintptr_t)(memory - offsetof(struct block, memory));
    taken -= block->bytes;
    free(block);
    return sticky;
}

FAKE cuMemAllocHost_v2(void **out, size_t bytes)
{
    *out = mem_alloc(bytes, 1);
    return sticky;
}

#define FREES(name)                                                                                \
    FAKE name(void *memory)                                                                        \
    {                                                                                              \
        free(memory);                                                                              \
        return sticky;                                                                             \
    }
FREES(cuMemFreeHost)
FREES(cuGraphDestroy)
FREES(cuGraphExecDestroy)

FAKE cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return sticky;
}

FAKE cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
    (void)stream;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return sticky;
}

FAKE cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void *stream)
{
    (void)stream;
    memset((void *)(uintptr_t)to, value, bytes);
    return sticky;
}

FAKE cuStreamCreate(void **out, unsigned flags)
{
    (void)flags;
    *out = &captured;
    return 0;
}

FAKE cuStreamSynchronize(void *stream)
{
    (void)stream;
    return sticky;
}

FAKE cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)stream;
    (void)mode;
    captured = mem_alloc(1, sizeof(*captured));
    return sticky;
}

FAKE cuStreamEndCapture(void *stream, void **out)
{
    (void)stream;
    *out = captured;
    captured = NULL;
    return sticky;
}

FAKE cuGraphInstantiateWithFlags(void **out, const struct graph *from, unsigned long long flags)
{
    (void)flags;
    struct graph *exec = malloc(sizeof(*exec));
    exec->count = from->count;
    memcpy(exec->nodes, from->nodes, (size_t)from->count * sizeof(from->nodes[0]));
    *out = exec;
    return sticky;
}

FAKE cuGraphLaunch(void *exec, void *stream)
{
    (void)stream;
    struct graph *g = exec;
    for (int i = 0; i < g->count; i++)
        execute(&g->nodes[i]);
    return 0; /* a fault shows at the next synchronisation */
}

FAKE cuEventCreate(void **out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof(double));
    return 0;
}

FAKE cuEventRecord(void *event, void *stream)
{
    (void)stream;
    *(double *)event = clock_seconds();
    return 0;
}

/* External: a node of the graph that is being captured. */
FAKE cuEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    (void)stream;
    if (captured == NULL || captured->count == NODES_MAX || flags != 1)
        return 1;
    captured->nodes[captured->count++].event = event;
    return 0;
}

FAKE cuEventDestroy_v2(void *event)
{
    free(event);
    return 0;
}

FAKE cuEventElapsedTime(float *ms, const void *start, const void *end)
{
    *ms = (float)((*(const double *)end - *(const double *)start) * 1e3);
    return sticky;
}

FAKE cuModuleLoadData(void **out, const void *image)
{
    struct fake_code *code = calloc(1, sizeof(*code));
    code->rested_runs = 30; /* more than it takes to verify a plan before it is timed */
    if (sscanf(image, "fake %15[a-z] %d", code->kind, &code->rested_runs) < 1) {
        free(code);
        return INVALID_IMAGE;
    }
    if (strcmp(code->kind, "vast") == 0) {
        free(code);
        return OUT_OF_MEMORY;
    }
    *out = code;
    return sticky;
}

FAKE cuModuleGetFunction(void **out, void *module, const char *name)
{
    static const char prefix[] = "segment_";
    struct fake_code *code = *out = module;
    char *end;
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return NOT_FOUND;
    code->first = (int)strtol(name + sizeof(prefix) - 1, &end, 10);
    code->last = (int)strtol(end + 1, NULL, 10); /* after "_" */
    return sticky;
}

FAKE cuFuncGetAttribute(int *value, int attribute, void *function)
{
    (void)function;
    *value = attribute == 4 ? 32 : 0; /* registers */
    return 0;
}

FAKE cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)function;
    (void)attribute;
    return value <= 100000 ? 0 : 1;
}

FAKE cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                 size_t shared_bytes)
{
    (void)function;
    (void)shared_bytes;
    *blocks = 2048 / threads;
    return 0;
}

/* Into the graph being captured, else runs at once. */
static int launch(const struct node *n)
{
    if (captured == NULL)
        execute(n);
    else if (captured->count == NODES_MAX)
        return 1;
    else
        captured->nodes[captured->count++] = *n;
    return 0;
}

FAKE fake_cuda_launch(const struct fake_product *p, void (*run)(const struct fake_product *p))
{
    return launch(&(struct node){.product = *p, .run = run});
}

FAKE cuLaunchKernelEx(const struct cuda_launch_config *config, void *function, void **params,
                      void **extra)
{
    (void)extra;
    for (int i = 0; i < 3; i++)
        if (config->grid[i] == 0 || config->block[i] == 0)
            return 1;
    struct node n = {.code = function, .grid = config->grid[0], .block = config->block[0]};
    memcpy(&n.args, params[0], sizeof(n.args));
    return launch(&n);
}
