#include "bench/worker/device_cuda_int.h"

#include <stdlib.h>

static double seconds_between(const struct device *d, struct CUevent_st *from,
                              struct CUevent_st *to)
{
    float ms = 0;
    cuda_must(d, d->cu->cuEventElapsedTime(&ms, from, to), "reading the clock");
    return ms * 1e-3;
}

/* One graph of all launches, each between two events, so that the gaps are those of a graph but for
 * what the events take. */
int cuda_trace(struct device *d, struct replay *r, int count, struct launch_time *out,
               struct status *st)
{
    const struct cuda_driver *cu = d->cu;
    struct CUevent_st **events = mem_alloc(2 * (size_t)count, sizeof(struct CUevent_st *));
    struct CUgraphExec_st *graph;
    for (int i = 0; i < 2 * count; i++)
        cuda_must(d, cu->cuEventCreate(&events[i], 0), "tracing");
    int result = cuda_capture(r, 1, events, &graph, st);
    if (result == 0) {
        cuda_must(d, cu->cuGraphLaunch(graph, d->stream), "tracing");
        cuda_finish(d, "tracing");
        for (int i = 0; i < count; i++)
            out[i] = (struct launch_time){seconds_between(d, events[0], events[2 * i]),
                                          seconds_between(d, events[2 * i], events[2 * i + 1])};
        cu->cuGraphExecDestroy(graph);
    }
    for (int i = 0; i < 2 * count; i++)
        cu->cuEventDestroy(events[i]);
    free(events);
    return result;
}
