/* The part of NVIDIA's driver API that the worker uses, declared here so that fuseplan builds
 * without CUDA's headers and starts without its driver.  Names and numbers are the driver API's. */
#ifndef FUSEPLAN_BENCH_CUDA_DRIVER_INT_H
#define FUSEPLAN_BENCH_CUDA_DRIVER_INT_H

#include "base/base.h"

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

enum { /* CUresult */
       CUDA_SUCCESS = 0,
       CUDA_ERROR_OUT_OF_MEMORY = 2,
       CUDA_ERROR_NO_DEVICE = 100
};

enum { /* CUdevice_attribute */
       CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
       CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
       CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
       CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
       CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
       CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
};

enum { /* CUfunction_attribute */
       CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
       CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
       CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11 /* 0: none */
};

enum { /* CUlaunchAttributeID */
       CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
       CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
       CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};

/* CUlaunchAttribute */
struct cuda_launch_attribute {
    int id;
    int padding;
    union {
        int value;           /* whether it holds */
        unsigned cluster[3]; /* thread blocks */
        char room[64];
    };
};

/* CUlaunchConfig */
struct cuda_launch_config {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    struct CUstream_st *stream;
    struct cuda_launch_attribute *attributes;
    unsigned attribute_count;
};

enum { /* of tensor maps */
       CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
       CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
       CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
       CU_TENSOR_MAP_SWIZZLE_32B = 1,
       CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0
};

enum { CU_STREAM_NON_BLOCKING = 1, CU_STREAM_CAPTURE_MODE_RELAXED = 2 };

/* name, symbol, parameters.  A device pointer is an unsigned long long, a device an int. */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(cuInit, "cuInit", (unsigned flags))                                                          \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                    \
    X(cuGetErrorName, "cuGetErrorName", (int error, const char **out))                             \
    X(cuGetErrorString, "cuGetErrorString", (int error, const char **out))                         \
    X(cuDeviceGet, "cuDeviceGet", (int *device, int index))                                        \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                          \
    X(cuDeviceGetName, "cuDeviceGetName", (char *out, int size, int device))                       \
    X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (unsigned char out[16], int device))                  \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))       \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (struct CUctx_st * *out, int device))  \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (struct CUctx_st * context))                             \
    X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t * available, size_t * total))                       \
    X(cuMemAlloc, "cuMemAlloc_v2", (unsigned long long *out, size_t bytes))                        \
    X(cuMemFree, "cuMemFree_v2", (unsigned long long memory))                                      \
    X(cuMemGetAddressRange, "cuMemGetAddressRange_v2",                                             \
      (unsigned long long *base, size_t *bytes, unsigned long long memory))                        \
    X(cuMemAllocHost, "cuMemAllocHost_v2", (void **out, size_t bytes))                             \
    X(cuMemFreeHost, "cuMemFreeHost", (void *memory))                                              \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                   \
      (unsigned long long to, const void *from, size_t bytes, struct CUstream_st *stream))         \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                   \
      (void *to, unsigned long long from, size_t bytes, struct CUstream_st *stream))               \
    X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                   \
      (unsigned long long to, unsigned long long from, size_t bytes, struct CUstream_st *stream))  \
    X(cuMemsetD8Async, "cuMemsetD8Async",                                                          \
      (unsigned long long to, unsigned char value, size_t bytes, struct CUstream_st *stream))      \
    X(cuStreamCreate, "cuStreamCreate", (struct CUstream_st * *out, unsigned flags))               \
    X(cuStreamSynchronize, "cuStreamSynchronize", (struct CUstream_st * stream))                   \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (struct CUstream_st * stream, int mode))    \
    X(cuStreamEndCapture, "cuStreamEndCapture",                                                    \
      (struct CUstream_st * stream, struct CUgraph_st * *out))                                     \
    X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                           \
      (struct CUgraphExec_st * *out, struct CUgraph_st * graph, unsigned long long flags))         \
    X(cuGraphLaunch, "cuGraphLaunch", (struct CUgraphExec_st * exec, struct CUstream_st * stream)) \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (struct CUgraphExec_st * exec))                    \
    X(cuGraphDestroy, "cuGraphDestroy", (struct CUgraph_st * graph))                               \
    X(cuEventCreate, "cuEventCreate", (struct CUevent_st * *out, unsigned flags))                  \
    X(cuEventRecord, "cuEventRecord", (struct CUevent_st * event, struct CUstream_st * stream))    \
    X(cuEventElapsedTime, "cuEventElapsedTime",                                                    \
      (float *ms, struct CUevent_st *start, struct CUevent_st *end))                               \
    X(cuModuleLoadData, "cuModuleLoadData", (struct CUmod_st * *out, const void *image))           \
    X(cuModuleGetFunction, "cuModuleGetFunction",                                                  \
      (struct CUfunc_st * *out, struct CUmod_st * module, const char *name))                       \
    X(cuFuncGetAttribute, "cuFuncGetAttribute",                                                    \
      (int *value, int attribute, struct CUfunc_st *function))                                     \
    X(cuFuncSetAttribute, "cuFuncSetAttribute",                                                    \
      (struct CUfunc_st * function, int attribute, int value))                                     \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",  \
      (int *blocks, struct CUfunc_st *function, int threads, size_t shared_bytes))                 \
    X(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters",                                \
      (int *clusters, struct CUfunc_st *function, const struct cuda_launch_config *config))        \
    X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                            \
      (void *out, int type, unsigned rank, void *at, const unsigned long long *size,               \
       const unsigned long long *pitch, const unsigned *box, const unsigned *step, int interleave, \
       int swizzle, int promotion, int fill))                                                      \
    X(cuLaunchKernelEx, "cuLaunchKernelEx",                                                        \
      (const struct cuda_launch_config *config, struct CUfunc_st *function, void **params,         \
       void **extra))

struct cuda_driver {
/* A declarator takes no parentheses: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(name, symbol, parameters) int(*name) parameters;
    CUDA_FUNCTIONS(X)
#undef X
};

/* Loads and initialises libcuda.so.1 once a process.  STATUS_ENVIRONMENT says what is missing. */
int cuda_driver_open(const struct cuda_driver **out, struct status *st);

/* 0 if error is none, else -1 with "what: the driver's message" as a status of that code. */
int cuda_check(const struct cuda_driver *cu, int error, enum status_code code, const char *what,
               struct status *st);

/* "GPU-00112233-4455-6677-8899-aabbccddeeff" */
void cuda_uuid(const struct cuda_driver *cu, int device, char out[64]);

#endif
