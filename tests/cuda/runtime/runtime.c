/* A CUDA runtime that computes on the host.  FAKE_GPU=none|old|other: there is no GPU, its driver
 * is old, the library has no code for it.  While a stream is captured, work is kept for the graph,
 * and what CUDA does not allow then fails. */
#include "tests/cuda/runtime/runtime.h"

#include "base/base.h"
#include "tests/bench/fake/kernels.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum work_kind { WORK_SET, WORK_COPY, WORK_LAUNCH };

/* One thing to do in a stream. */
struct work {
    enum work_kind kind;
    void *to, *from;
    size_t bytes, to_pitch, from_pitch, rows;
    int value;
    const struct stub *stub;
    void *argument; /* of the stub, owned */
};

struct graph {
    struct work *items;
    int count;
};

static _Thread_local struct graph *captured; /* null: nothing is captured */

static bool gpu_is(const char *what)
{
    const char *given = getenv("FAKE_GPU");
    return given != NULL && strcmp(given, what) == 0;
}

static void execute(const struct work *w)
{
    for (size_t i = 0; i < w->rows && w->kind == WORK_COPY; i++)
        memmove((char *)w->to + i * w->to_pitch, (char *)w->from + i * w->from_pitch, w->bytes);
    if (w->kind == WORK_SET)
        memset(w->to, w->value, w->bytes);
    if (w->kind == WORK_LAUNCH)
        w->stub->run(w->stub, w->argument);
}

static cudaError_t enqueue(struct work w)
{
    if (captured == NULL) {
        execute(&w);
        free(w.argument);
        return cudaSuccess;
    }
    captured->items =
        mem_resize(captured->items, (size_t)captured->count + 1, sizeof(*captured->items));
    captured->items[captured->count++] = w;
    return cudaSuccess;
}

/* What must not be called while a stream is captured. */
static cudaError_t outside_capture(void)
{
    return captured == NULL ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

void launch_stub(const struct stub *stub, const void *argument)
{
    struct work w = {.kind = WORK_LAUNCH, .stub = stub, .argument = mem_alloc(1, stub->bytes)};
    memcpy(w.argument, argument, stub->bytes);
    enqueue(w);
}

void run_segment(const struct stub *stub, void *argument)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* the oracle is slow, not wrong */
    struct fake_code code = {.kind = "right", .first = stub->first, .last = stub->last};
    pthread_mutex_lock(&one);
    fake_code_run(&code, argument);
    pthread_mutex_unlock(&one);
}

static const struct stub *stub_of(const void *kernel)
{
    for (int i = 0; i < stub_count; i++)
        if (stubs[i].kernel == kernel)
            return &stubs[i];
    return NULL;
}

/* ---- the device ------------------------------------------------------------------------------ */

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an error of the stand-in";
}

cudaError_t cudaGetDevice(int *out)
{
    *out = 0;
    return gpu_is("none")  ? cudaErrorNoDevice
           : gpu_is("old") ? cudaErrorInsufficientDriver
                           : cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return cudaGetDevice(&device);
}

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    *out = attribute == cudaDevAttrMultiProcessorCount      ? 4
           : attribute == cudaDevAttrComputeCapabilityMajor ? 9
                                                            : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return outside_capture();
}

/* ---- memory ---------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    *out = NULL;
    if (outside_capture() != cudaSuccess)
        return outside_capture();
    return posix_memalign(out, 256, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    return outside_capture();
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    memset(to, value, bytes);
    return outside_capture();
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return enqueue((struct work){.kind = WORK_SET, .to = to, .value = value, .bytes = bytes});
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    memcpy(to, from, bytes);
    return outside_capture();
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t rows, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    (void)kind;
    (void)stream;
    return enqueue((struct work){WORK_COPY, to, (void *)(uintptr_t)from, width, to_pitch,
                                 from_pitch, rows, 0, NULL, NULL});
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

/* ---- kernels --------------------------------------------------------------------------------- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *kernel)
{
    out->numRegs = 0;
    if (gpu_is("other"))
        return cudaErrorNoKernelImageForDevice;
    return stub_of(kernel) != NULL ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    (void)attribute;
    (void)value;
    return stub_of(kernel) != NULL ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *kernel, int threads,
                                                          size_t shared_bytes)
{
    (void)kernel;
    (void)threads;
    (void)shared_bytes;
    *out = 2;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int *out, const void *kernel,
                                           const struct cudaLaunchConfig_st *config)
{
    (void)kernel;
    *out = 4 / (int)config->attrs[0].val.clusterDim.x;
    return cudaSuccess;
}

/* A grid has whole clusters. */
static bool whole_clusters(const struct cudaLaunchConfig_st *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension &&
            config->gridDim.x % config->attrs[i].val.clusterDim.x != 0)
            return false;
    return true;
}

cudaError_t cudaLaunchKernelExC(const struct cudaLaunchConfig_st *config, const void *kernel,
                                void **parameters)
{
    const struct stub *stub = stub_of(kernel);
    if (stub == NULL || config->gridDim.x == 0 || config->blockDim.x == 0 ||
        !whole_clusters(config))
        return cudaErrorInvalidDeviceFunction;
    launch_stub(stub, parameters[0]);
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    (void)name;
    (void)version;
    (void)flags;
    *out = NULL;
    *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

/* ---- graphs and time ------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    (void)flags;
    *out = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
    (void)stream;
    (void)mode;
    captured = mem_alloc(1, sizeof(*captured));
    *captured = (struct graph){.count = 0};
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    (void)stream;
    *out = captured;
    captured = NULL;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    *out = graph;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    (void)graph; /* its instance is the same object */
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    (void)stream;
    for (int i = 0; i < graph->count; i++)
        execute(&graph->items[i]);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = mem_alloc(1, sizeof(**out));
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)stream;
    *event = clock_seconds();
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    *ms = (float)(1e3 * (*end - *begin));
    return cudaSuccess;
}
