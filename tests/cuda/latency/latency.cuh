/* What the experiments share: instructions, and checked calls. */
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            fprintf(stderr, "%s: %s, line %d\n", #call, cudaGetErrorString(error), __LINE__);      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__device__ inline uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ inline void barrier_init(uint64_t *barrier)
{
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(barrier)));
    asm volatile("fence.proxy.async.shared::cta;");
}

__device__ inline void barrier_expect(uint64_t *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes));
}

__device__ inline void barrier_wait(uint64_t *barrier, int phase)
{
    asm volatile("{\n.reg .pred p;\nL: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n"
                 "@p bra D;\nbra L;\nD:\n}" ::"r"(shared_address(barrier)),
                 "r"(phase)
                 : "memory");
}

/* From global to shared memory; the barrier counts the bytes. */
__device__ inline void bulk_copy(void *to, const void *from, int bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

__device__ inline long long nanoseconds()
{
    long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/* The value at `share` of the sorted values, 0.5 for the median. */
inline float quantile(std::vector<float> values, double share)
{
    std::sort(values.begin(), values.end());
    return values[(size_t)(share * (double)(values.size() - 1) + 0.5)];
}

/* Milliseconds of what `work` puts into the stream. */
template <typename F> float timed(cudaStream_t stream, F work)
{
    cudaEvent_t from, to;
    float ms;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    CHECK(cudaEventRecord(from, stream));
    work();
    CHECK(cudaEventRecord(to, stream));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaEventElapsedTime(&ms, from, to));
    CHECK(cudaEventDestroy(from));
    CHECK(cudaEventDestroy(to));
    return ms;
}
