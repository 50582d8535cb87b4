/* What programs that use the library do differently for each target: memory and time. */
#ifndef HOST_H
#define HOST_H

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAN_ABOUT ""

static inline void device_check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
}

static inline void *device_new(size_t bytes)
{
    void *memory = NULL;
    device_check(cudaMalloc(&memory, bytes), "cannot allocate GPU memory");
    device_check(cudaMemset(memory, 0, bytes), "cannot clear GPU memory");
    return memory;
}

static inline void device_delete(void *memory)
{
    device_check(cudaFree(memory), "cannot free GPU memory");
}

static inline void device_write(void *to, const void *from, size_t bytes)
{
    device_check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cannot copy to the GPU");
}

static inline void device_read(void *to, const void *from, size_t bytes)
{
    device_check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cannot copy from the GPU");
}

static inline void device_begin(char **argv)
{
    (void)argv;
    device_check(cudaSetDevice(0), "cannot use a GPU");
}

/* Milliseconds of one pass.  The first call captures it into a graph, which the others launch: they
 * have the arguments of the first. */
static inline double device_time(void (*pass)(void *stream))
{
    static cudaEvent_t begin, end;
    static cudaStream_t stream;
    static cudaGraphExec_t all;
    float ms = 0;
    if (all == NULL) {
        cudaGraph_t graph;
        device_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot use a GPU");
        device_check(cudaEventCreate(&begin), "cannot make an event");
        device_check(cudaEventCreate(&end), "cannot make an event");
        device_check(cudaDeviceSynchronize(), "cannot prepare");
        device_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                     "cannot capture");
        pass(stream);
        device_check(cudaStreamEndCapture(stream, &graph), "cannot capture");
        device_check(cudaGraphInstantiate(&all, graph, 0), "cannot make a graph");
        device_check(cudaGraphDestroy(graph), "cannot make a graph");
    }
    device_check(cudaEventRecord(begin, stream), "cannot time");
    device_check(cudaGraphLaunch(all, stream), "cannot run the plan");
    device_check(cudaEventRecord(end, stream), "cannot time");
    device_check(cudaEventSynchronize(end), "the plan failed");
    device_check(cudaEventElapsedTime(&ms, begin, end), "cannot time");
    return ms;
}

#endif
