/* A libcuda.so.1 that computes on the host, in fp32.  A segment's kernel does what its "cubin"
 * says, see kernels.h.  FAKE_GPU=none|old|later|hopper|h200|shy makes the driver see no GPU, one
 * of capability 7.5, 8.6 or 9.0, this with an H200's shared memory, too, or one that does not say
 * how wide its memory is.  There are as many GPUs as CUDA_VISIBLE_DEVICES names by numbers, else
 * one.  FAKE_GPU_BYTES is the memory that it has, and while a file FAKE_GPU_OTHERS exists, other
 * programs hold what is left.  FAKE_HASH=none|wrong: it does not compile the hash of memory, or the
 * hash is wrong; the file FAKE_HASHES gets a byte for each. */
#include "base/base.h"
#include "bench/worker/cuda_driver_int.h"
#include "tests/bench/fake/cuda_int.h"
#include "tests/bench/fake/kernels.h"

#include <unistd.h>

enum { NODES_MAX = 4096, NO_DEVICE = 100 };

struct node {
    struct fake_code *code; /* of a kernel; else null */
    struct fp_args args;
    struct fake_product product;
    void (*run)(const struct fake_product *p); /* of a product; else null */
    struct fp_stamps *stamps;                  /* of a stamped kernel's thread blocks */
    unsigned grid, block;
};

struct graph {
    int count;
    struct node nodes[NODES_MAX];
};

int fake_sticky;

static struct graph *captured; /* being captured; else null */
static size_t taken;           /* bytes of memory */

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

static size_t available_bytes(void)
{
    const char *others = getenv("FAKE_GPU_OTHERS");
    bool all_held = others != NULL && access(others, F_OK) == 0;
    return all_held ? 0 : memory_bytes() - taken;
}

/* A launch takes 4 us: its wait returns after 1 and the last of its thread blocks, each of which
 * ends 1 ns after the one before, leaves the rest.  Of the 4 multiprocessors each has a clock of
 * its own, of 2 cycles a nanosecond. */
static void leave_stamps(const struct node *n)
{
    enum { UNITS = 4, WAITED = 1000, FIRST = 1500, SUMS = 3000, END = 4000 };
    static uint64_t now = 1000000000;
    for (unsigned b = 0; b < n->grid; b++) {
        struct fp_stamps *s = &n->stamps[b];
        const uint64_t own = 2 * now + b % UNITS * 1000003;
        s->multiprocessor = b % UNITS;
        s->ns = now;
        s->at[FP_STAMP_BEGUN] = own;
        s->at[FP_STAMP_WAITED] = ~(own + 2 * WAITED);
        s->at[FP_STAMP_END] = own + 2 * (END - (n->grid - 1 - b));
        if (n->code->stepped) {
            s->at[FP_STAMP_FIRST] = ~(own + 2 * FIRST);
            s->at[FP_STAMP_SUMS] = own + 2 * SUMS;
        }
    }
    now += END;
}

static void execute(const struct node *n)
{
    if (n->stamps != NULL)
        leave_stamps(n);
    if (n->run != NULL)
        n->run(&n->product);
    else if (fake_code_run(n->code, &n->args) != 0)
        fake_sticky = ILLEGAL_ADDRESS;
}

FAKE cuInit(unsigned flags)
{
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

/* The number of a device on this machine; -1 if the process does not see so many. */
static int number_here(int device)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    for (; visible != NULL && device > 0; device--) {
        visible = strchr(visible, ',');
        if (visible++ == NULL)
            return -1;
    }
    return visible != NULL ? atoi(visible) : device == 0 ? 0 : -1;
}

FAKE cuDeviceGetCount(int *count)
{
    for (*count = 0; number_here(*count) >= 0;)
        ++*count;
    return 0;
}

FAKE cuDeviceGetName(char *out, int size, int device)
{
    const char *given = getenv("FAKE_GPU_NAME");
    snprintf(out, (size_t)size, "%s", given != NULL ? given : "Fake GPU");
    return 0;
}

FAKE cuDeviceGetUuid_v2(unsigned char out[16], int device)
{
    for (int i = 0; i < 16; i++)
        out[i] = (unsigned char)(i * 17);
    out[15] = (unsigned char)(out[15] - number_here(device));
    return 0;
}

FAKE cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const int values[][2] = {
        {13, 1000000},                 /* kHz of the multiprocessors */
        {16, 4},                       /* multiprocessors */
        {36, 500000},                  /* kHz of the memory */
        {37, gpu_is("shy") ? 0 : 256}, /* bits of its bus */
        {38, 1 << 20},                 /* bytes of second-level cache */
        {39, 2048},                    /* threads of a multiprocessor */
        {75, gpu_is("old")                        ? 7
             : gpu_is("hopper") || gpu_is("h200") ? 9
                                                  : 8}, /* capability: major */
        {76, gpu_is("old")     ? 5
             : gpu_is("later") ? 6
                               : 0},               /* and minor */
        {97, gpu_is("h200") ? 227 << 10 : 100000}, /* bytes of shared memory of a thread block */
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
    *out = &fake_sticky;
    return 0;
}

FAKE cuCtxSetCurrent(void *context)
{
    return context == &fake_sticky ? 0 : 1;
}

FAKE cuMemGetInfo_v2(size_t *available, size_t *total)
{
    *total = memory_bytes();
    *available = available_bytes();
    return 0;
}

FAKE cuMemAlloc_v2(unsigned long long *out, size_t bytes)
{
    struct block *block = bytes > available_bytes() ? NULL : malloc(sizeof(*block) + bytes);
    if (block == NULL)
        return OUT_OF_MEMORY;
    block->bytes = bytes;
    taken += bytes;
    *out = (unsigned long long)(uintptr_t)block->memory;
    return fake_sticky;
}

FAKE cuMemGetAddressRange_v2(unsigned long long *base, size_t *bytes, unsigned long long memory)
{
    const struct block *block =
        (struct block *)(uintptr_t)(memory - offsetof(struct block, memory));
    *base = memory;
    *bytes = block->bytes;
    return fake_sticky;
}

FAKE cuMemFree_v2(unsigned long long memory)
{
    struct block *block = (struct block *)(uintptr_t)(memory - offsetof(struct block, memory));
    taken -= block->bytes;
    free(block);
    return fake_sticky;
}

FAKE cuMemAllocHost_v2(void **out, size_t bytes)
{
    *out = mem_alloc(bytes, 1);
    return fake_sticky;
}

#define FREES(name)                                                                                \
    FAKE name(void *memory)                                                                        \
    {                                                                                              \
        free(memory);                                                                              \
        return fake_sticky;                                                                        \
    }
FREES(cuMemFreeHost)
FREES(cuGraphDestroy)
FREES(cuGraphExecDestroy)

FAKE cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return fake_sticky;
}

FAKE cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return fake_sticky;
}

FAKE cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes,
                          void *stream)
{
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return fake_sticky;
}

FAKE cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void *stream)
{
    memset((void *)(uintptr_t)to, value, bytes);
    return fake_sticky;
}

FAKE cuStreamCreate(void **out, unsigned flags)
{
    *out = &captured;
    return 0;
}

FAKE cuStreamSynchronize(void *stream)
{
    return fake_sticky;
}

FAKE cuStreamBeginCapture_v2(void *stream, int mode)
{
    captured = mem_alloc(1, sizeof(*captured));
    return fake_sticky;
}

FAKE cuStreamEndCapture(void *stream, void **out)
{
    *out = captured;
    captured = NULL;
    return fake_sticky;
}

FAKE cuGraphInstantiateWithFlags(void **out, const struct graph *from, unsigned long long flags)
{
    struct graph *exec = malloc(sizeof(*exec));
    exec->count = from->count;
    memcpy(exec->nodes, from->nodes, (size_t)from->count * sizeof(from->nodes[0]));
    *out = exec;
    return available_bytes() == 0 ? OUT_OF_MEMORY : fake_sticky;
}

FAKE cuGraphLaunch(void *exec, void *stream)
{
    struct graph *g = exec;
    for (int i = 0; i < g->count; i++)
        execute(&g->nodes[i]);
    return 0; /* a fault shows at the next synchronisation */
}

FAKE cuEventCreate(void **out, unsigned flags)
{
    *out = calloc(1, sizeof(double));
    return 0;
}

FAKE cuEventRecord(void *event, void *stream)
{
    *(double *)event = clock_seconds();
    return 0;
}

/* The host's time times 16: samples are long enough for the worker, and it takes fewer of them. */
FAKE cuEventElapsedTime(float *ms, const void *start, const void *end)
{
    *ms = (float)((*(const double *)end - *(const double *)start) * 16e3);
    return fake_sticky;
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

FAKE fake_cuda_launch(const struct fake_product *p, void (*run)(const struct fake_product *p),
                      void *stream)
{
    return launch(&(struct node){.product = *p, .run = run});
}

FAKE cuTensorMapEncodeTiled(void *out, int type, unsigned rank, void *at,
                            const unsigned long long *size, const unsigned long long *pitch,
                            const unsigned *box, const unsigned *step, int interleave, int swizzle,
                            int promotion, int fill)
{
    memcpy(out, &at, sizeof(at));
    return 0;
}

FAKE cuLaunchKernelEx(const struct cuda_launch_config *config, void *function, void **params,
                      void **extra)
{
    for (int i = 0; i < 3; i++)
        if (config->grid[i] == 0 || config->block[i] == 0)
            return 1;
    for (unsigned i = 0; i < config->attribute_count; i++)
        if (config->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
            config->grid[0] % config->attributes[i].cluster[0] != 0)
            return 1; /* a grid has whole clusters */
    if (((const struct fake_code *)function)->hashes) {
        fake_hash(params);
        return fake_sticky;
    }
    struct node n = {.code = function, .grid = config->grid[0], .block = config->block[0]};
    if (n.code->stamped)
        memcpy(&n.stamps, *params++, sizeof(n.stamps));
    memcpy(&n.args, params[0], sizeof(n.args));
    return launch(&n);
}
