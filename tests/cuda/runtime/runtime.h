/* The inside of the stand-in of CUDA's runtime, and what tests may ask of it. */
#ifndef FUSEPLAN_TESTS_CUDA_RUNTIME_H
#define FUSEPLAN_TESTS_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- stubs.c: the kernels of the library that is tested -------------------------------------- */

struct stub {
    const void *kernel;
    size_t bytes; /* of its first argument */
    void (*run)(const struct stub *stub, void *argument);
    int first, last; /* operators of a segment */
};
extern const struct stub stubs[];
extern const int stub_count;

/* Does what the operators of a segment do, in fp32. */
void run_segment(const struct stub *stub, void *argument);

/* ---- runtime.c ------------------------------------------------------------------------------- */

/* Whether FAKE_GPU is this. */
bool gpu_is(const char *what);

/* ---- graphs.c: streams and graphs ------------------------------------------------------------ */

/* One thing to do in a stream: to copy memory, or to run a stub. */
struct work {
    void *to, *from;
    size_t bytes;
    const struct stub *stub; /* null: copy */
    void *argument;          /* of the stub, owned */
};

/* Does the work, or keeps it for the graph if the stream is captured. */
cudaError_t enqueue(cudaStream_t stream, struct work w);

/* Enqueues a stub with a copy of its argument. */
cudaError_t launch_stub(const struct stub *stub, const void *argument, cudaStream_t stream);

/* cudaErrorStreamCaptureUnsupported where CUDA refuses a call that might wait or allocate, because
 * this thread captures a stream, or another thread captures one in the mode for all threads. */
cudaError_t unsafe_call(void);

/* What is alive, and what was called since the program began. */
struct fake_counts {
    int enqueued, graph_launches; /* enqueued: outside graphs, not captured either */
    int instantiated;
    int graphs, executables, streams; /* alive */
};
struct fake_counts fake_counts(void);

/* From now on this call fails: FAIL_LAUNCH is of kernels, while a stream is captured or not. */
enum fake_failure { FAIL_NOTHING, FAIL_CAPTURE, FAIL_INSTANTIATE, FAIL_GRAPH_LAUNCH, FAIL_LAUNCH };
void fake_fail(enum fake_failure what);

/* Whether work is done, or only counted. */
void fake_compute(bool on);

#endif
