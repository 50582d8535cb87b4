#include "bench/device_cuda_int.h"

#include <stdlib.h>

/* One graph of all launches, each between two events, so that the gaps are those of a graph but for
 * what the events take. */
static int capture(const struct device *d, struct replay *r, int count,
                   struct CUevent_st *const *events, struct CUgraphExec_st **out, struct status *st)
{
    const struct cuda_driver *cu = d->cu;
    struct CUgraph_st *graph = NULL;
    int result = 0;
    *out = NULL;
    cuda_must(d, cu->cuStreamBeginCapture(d->stream, CU_STREAM_CAPTURE_MODE_RELAXED), "tracing");
    for (int i = 0; i < count && result == 0; i++) {
        cuda_must(d, cu->cuEventRecordWithFlags(events[2 * i], d->stream, CU_EVENT_RECORD_EXTERNAL),
                  "tracing");
        result = cuda_run(r, i, 1, st);
        cuda_must(
            d, cu->cuEventRecordWithFlags(events[2 * i + 1], d->stream, CU_EVENT_RECORD_EXTERNAL),
            "tracing");
    }
    int error = cu->cuStreamEndCapture(d->stream, &graph);
    if (result == 0 && error == CUDA_SUCCESS)
        error = cu->cuGraphInstantiate(out, graph, 0);
    if (graph != NULL)
        cu->cuGraphDestroy(graph);
    return result == 0 ? cuda_check(cu, error, STATUS_LAUNCH, "cannot be traced", st) : -1;
}

static double seconds_between(const struct device *d, struct CUevent_st *from,
                              struct CUevent_st *to)
{
    float ms = 0;
    cuda_must(d, d->cu->cuEventElapsedTime(&ms, from, to), "reading the clock");
    return ms * 1e-3;
}

int cuda_trace(struct device *d, struct replay *r, int count, struct span *out, struct status *st)
{
    const struct cuda_driver *cu = d->cu;
    struct CUevent_st **events = mem_alloc(2 * (size_t)count, sizeof(struct CUevent_st *));
    struct CUgraphExec_st *graph;
    for (int i = 0; i < 2 * count; i++)
        cuda_must(d, cu->cuEventCreate(&events[i], 0), "tracing");
    int result = capture(d, r, count, events, &graph, st);
    if (result == 0) {
        cuda_must(d, cu->cuGraphLaunch(graph, d->stream), "tracing");
        cuda_finish(d, "tracing");
        for (int i = 0; i < count; i++)
            out[i] = (struct span){seconds_between(d, events[0], events[2 * i]),
                                   seconds_between(d, events[2 * i], events[2 * i + 1])};
        cu->cuGraphExecDestroy(graph);
    }
    for (int i = 0; i < 2 * count; i++)
        cu->cuEventDestroy(events[i]);
    free(events);
    return result;
}
