/* Traces kernels of an exported library, whose sources stay as they are: nvcc includes this file
 * before each of them (-include), and calls of some functions become calls of those below, which
 * leave the time in memory.  stamps.cu reads it.
 *
 * A warp's first lane writes: the events of its warp in their order. */
#pragma once

#include "hopper.cuh"
#include "tokens.cuh"
#include "trace.h"
#include "wgmma.cuh"

namespace fp
{

static __device__ trace_event traced[TRACE_SLOTS][TRACE_BLOCKS][TRACE_WARPS][TRACE_EVENTS];

/* Of each warp: its next place. */
static __shared__ trace_event *trace_next[TRACE_WARPS], *trace_end[TRACE_WARPS];

FP_DEVICE void trace(trace_kind kind, u64 time, u32 at)
{
    const int warp = static_cast<int>(threadIdx.x) / 32;
    trace_event *to = trace_next[warp];
    if (to == trace_end[warp])
        return;
    trace_next[warp] = to + 1;
    *to = {time, static_cast<u32>(kind), at};
}

FP_DEVICE void trace(trace_kind kind, u32 at = 0)
{
    if (threadIdx.x % 32 == 0)
        trace(kind, static_cast<u64>(clock64()), at);
}

/* From the beginning of a kernel, in the place of begin_next(), to its end.  A launch's slot
 * follows from the place of its layer's weights: those of neighbouring layers are 27 times 2^19
 * bytes apart.  Of two launches of a kernel in a layer one has a long inner dimension. */
struct traced_kernel {
    FP_DEVICE explicit traced_kernel(const fp_args &a)
    {
        if (threadIdx.x % 32 == 0) {
            const int warp = static_cast<int>(threadIdx.x) / 32;
            const u64 layer = reinterpret_cast<u64>(a.weight[0]) >> 19 & 15;
            const u64 slot = layer * 2 + (a.gemm.inner > a.gemm.columns ? 1 : 0);
            trace_event *to = traced[slot][blockIdx.x % TRACE_BLOCKS][warp];
            trace_next[warp] = to;
            trace_end[warp] = to + TRACE_EVENTS;
            u32 multiprocessor;
            u64 now;
            asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
            trace(TRACE_BEGUN, multiprocessor);
            if (warp == 0) {
                trace(TRACE_TIME, now, 0);
                trace(TRACE_SHAPE, static_cast<u64>(a.gemm.columns), a.gemm.inner);
            }
        }
        begin_next(a);
    }
    FP_DEVICE ~traced_kernel()
    {
        trace(TRACE_END);
    }
};

FP_DEVICE void traced_await_dependencies()
{
    await_dependencies();
    trace(TRACE_WAITED);
}

FP_DEVICE void traced_mbarrier_wait(u32 at, u32 parity)
{
    mbarrier_wait(at, parity);
    trace(TRACE_STEP, at);
}

FP_DEVICE void traced_mbarrier_expect(u32 at, u32 bytes)
{
    mbarrier_expect(at, bytes);
    trace(TRACE_EXPECTED, at);
}

template <int pending> FP_DEVICE void traced_wgmma_wait()
{
    wgmma_wait<pending>();
    if (pending == 0)
        trace(TRACE_SUMS);
}

FP_DEVICE void traced_box_stores_end()
{
    box_stores_end();
    trace(TRACE_STORED);
}

} // namespace fp

#define begin_next(a)      traced_kernel traced_until_its_end(a)
#define await_dependencies traced_await_dependencies
#define mbarrier_wait      traced_mbarrier_wait
#define mbarrier_expect    traced_mbarrier_expect
#define wgmma_wait         traced_wgmma_wait
#define box_stores_end     traced_box_stores_end

/* Makes the trace known to stamps.cu. */
static const int fp_trace_is_known = trace_register(&fp::traced);
