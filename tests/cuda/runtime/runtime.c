/* A CUDA runtime that computes on the host.  FAKE_GPU=none|old|other: there is no GPU, its
 * driver is old, the library has no code for it.  graphs.c has streams and graphs. */
#include "tests/cuda/runtime/runtime.h"

#include "base/base.h"
#include "tests/bench/fake/cuda.h"
#include "tests/bench/fake/kernels.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* Dynamic shared memory of a thread block: at most, and unless a kernel is given more. */
enum { SHARED_MOST = 227 << 10, SHARED_USUAL = 48 << 10 };

/* What each kernel was given last: the stubs'. */
enum { STUBS_MOST = 256 };
static _Atomic(int) shared_given[STUBS_MOST];

bool gpu_is(const char *what)
{
    const char *given = getenv("FAKE_GPU");
    return given != NULL && strcmp(given, what) == 0;
}

/* Lists of real tokens come with their number, as kernels take it. */
static bool counts_tokens(const struct fp_args *a)
{
    int sum = 0;
    if (a->unpacked == NULL)
        return true;
    for (int b = 0; b < a->batch; b++)
        sum += a->lengths[b];
    return (a->live != NULL ? *a->live : a->tokens) == sum;
}

/* The operators of a kernel that several segments share, which its operands tell: the GEMM of these
 * sizes, what follows it, and merge_heads where it begins with that.  Tensors share memory here. */
static void find_operators(struct fake_code *code, const struct fp_args *a, bool merges)
{
    const struct fp_gemm *g = &a->gemm;
    const int attention = a->heads * a->head_size, sizes[5][3] = {{0, a->hidden, 3 * attention},
                                                                  {7, attention, a->hidden},
                                                                  {10, a->hidden, a->ffn},
                                                                  {10, a->hidden, 2 * a->ffn},
                                                                  {12, a->ffn, a->hidden}};
    for (int i = 0; i < 5; i++)
        if (sizes[i][1] == g->inner && sizes[i][2] == g->columns)
            code->first = sizes[i][0];
    code->last = code->first + (g->gamma != NULL ? 2 : g->bias != NULL ? 1 : 0);
    code->first -= merges;
}

/* A segment that is told wrong numbers writes nothing. */
void run_segment(const struct stub *stub, void *argument)
{
    struct fake_code code = {.kind = "right", .first = stub->first, .last = stub->last};
    struct fp_args args = *(const struct fp_args *)argument;
    if (stub->first < 0)
        find_operators(&code, &args, stub->first == -2);
    args.gemm.in = NULL; /* else it would look for the operators by their tensors */
    if (counts_tokens(&args))
        fake_code_run(&code, &args);
}

/* A product of cuBLASLt (tests/bench/fake/cublas.c) in a stream. */
struct product {
    struct fake_product product;
    void (*run)(const struct fake_product *p);
};

static void run_product(const struct stub *stub, void *argument)
{
    const struct product *p = argument;
    p->run(&p->product);
}

int fake_cuda_launch(const struct fake_product *p, void (*run)(const struct fake_product *p),
                     void *stream)
{
    static const struct stub stub = {.bytes = sizeof(struct product), .run = run_product};
    const struct product product = {*p, run};
    return (int)launch_stub(&stub, &product, stream);
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
    *out = attribute == cudaDevAttrMultiProcessorCount            ? 4
           : attribute == cudaDevAttrComputeCapabilityMajor       ? 9
           : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? SHARED_MOST
                                                                  : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return unsafe_call();
}

/* ---- memory ---------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    *out = NULL;
    if (unsafe_call() != cudaSuccess)
        return cudaErrorStreamCaptureUnsupported;
    return posix_memalign(out, 256, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    return unsafe_call();
}

/* Whole pages of zeros are those that were never touched: a workspace of 32 MB costs what is used
 * of it. */
cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    enum { PAGE = 4096, MANY = 1 << 20 };
    const size_t before = -(uintptr_t)to % PAGE,
                 pages = bytes > MANY && value == 0 ? (bytes - before) / PAGE * PAGE : 0;
    if (pages > 0 && madvise((char *)to + before, pages, MADV_DONTNEED) == 0) {
        memset(to, 0, before);
        memset((char *)to + before + pages, 0, bytes - before - pages);
    } else {
        memset(to, value, bytes);
    }
    return unsafe_call();
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    memcpy(to, from, bytes);
    return unsafe_call();
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    for (size_t i = 0; i < height; i++)
        memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
    return unsafe_call();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return enqueue(stream,
                   (struct work){.to = to, .from = (void *)(uintptr_t)from, .bytes = bytes});
}

/* ---- kernels --------------------------------------------------------------------------------- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *kernel)
{
    out->numRegs = out->requiredClusterWidth = 0;
    if (gpu_is("other"))
        return cudaErrorNoKernelImageForDevice;
    return stub_of(kernel) != NULL ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    const struct stub *stub = stub_of(kernel);
    if (stub == NULL || stub - stubs >= STUBS_MOST)
        return cudaErrorInvalidDeviceFunction;
    if (value > SHARED_MOST)
        return cudaErrorInvalidValue;
    shared_given[stub - stubs] = value;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *kernel, int threads,
                                                          size_t shared_bytes)
{
    *out = 2;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int *out, const void *kernel,
                                           const struct cudaLaunchConfig_st *config)
{
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
    const int given = shared_given[stub - stubs];
    if (config->dynamicSmemBytes > (size_t)(given > SHARED_USUAL ? given : SHARED_USUAL))
        return cudaErrorInvalidValue;
    return launch_stub(stub, parameters[0], config->stream);
}

/* cuTensorMapEncodeTiled(), as far as it refuses: addresses and pitches of 16 bytes, swizzled lines
 * of 32, 64 or 128 bytes. */
static int encode(void *out, int type, unsigned rank, void *at, const uint64_t *size,
                  const uint64_t *pitch, const unsigned *box, const unsigned *step, int interleave,
                  int swizzle, int promotion, int fill)
{
    enum { INVALID = 1, UINT16 = 1, SWIZZLE_32 = 1, SWIZZLE_128 = 3 };
    const unsigned bytes = type == UINT16 ? 2 : 1, line = box[0] * bytes;
    const bool fits = swizzle >= SWIZZLE_32 && swizzle <= SWIZZLE_128 && line == 16u << swizzle;
    const bool dealt = rank == 4 && pitch[1] == 16 * pitch[0] && pitch[2] == 2 * pitch[0] &&
                       box[1] * box[2] * box[3] == 64;
    memset(out, 0, 128);
    return at != NULL && (uintptr_t)at % 16 == 0 && (rank == 2 || dealt) &&
                   pitch[0] == size[0] * bytes && pitch[0] % 16 == 0 && fits
               ? 0
               : INVALID;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    *out = (void *)(uintptr_t)encode;
    *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

/* Headers before 13.0 declare it. */
cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result);

cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result)
{
    return cudaGetDriverEntryPointByVersion(name, out, 12000, flags, result);
}

/* ---- time ------------------------------------------------------------------------------------ */

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = mem_alloc(1, sizeof(**out));
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    *event = clock_seconds();
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return cudaSuccess;
}

/* A pass seems to take long, so that a program takes as few as it can. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    enum { SEEMS_MS = 200 };
    *ms = SEEMS_MS + (float)(1e3 * (*end - *begin));
    return cudaSuccess;
}
