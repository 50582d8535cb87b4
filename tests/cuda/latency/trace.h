/* What traced.cuh writes and stamps.cu reads. */
#pragma once

#include <cstdint>

enum { TRACE_SLOTS = 32, TRACE_BLOCKS = 132, TRACE_WARPS = 16, TRACE_EVENTS = 64 };

/* Times are the multiprocessor's cycles. */
enum trace_kind {
    TRACE_NONE,
    TRACE_BEGUN,    /* at: the multiprocessor */
    TRACE_TIME,     /* time: the GPU's nanoseconds, at the event before */
    TRACE_SHAPE,    /* time: columns of the GEMM, at: its inner dimension; 0, 0: another kernel */
    TRACE_WAITED,   /* for the kernel in front */
    TRACE_EXPECTED, /* at: an mbarrier that counts bytes */
    TRACE_STEP,     /* at: an mbarrier, waited for */
    TRACE_SUMS,     /* no product is under way any more */
    TRACE_STORED,   /* a store by TMA is asked for */
    TRACE_END
};

struct trace_event {
    unsigned long long time;
    uint32_t kind, at;
};

/* A device symbol of a traced source; returns 0. */
extern "C" int trace_register(const void *symbol);
