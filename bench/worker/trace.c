#include "bench/worker/worker_int.h"

#include <stdlib.h>

enum { PASSES = 15 }; /* an odd number: its median is one of them */

static double median_of(double *values, int n)
{
    return stats_median(values, (size_t)n).median;
}

void trace_settle(const struct launch_time *passes, int pass_count, int launches,
                  struct launch_time *out)
{
    double *gaps = mem_alloc((size_t)pass_count, sizeof(*gaps));
    double *seconds = mem_alloc((size_t)pass_count, sizeof(*seconds));
    double end = 0;
    for (int i = 0; i < launches; i++) {
        for (int p = 0; p < pass_count; p++) {
            const struct launch_time *at = passes + (size_t)p * (size_t)launches + i;
            gaps[p] = i > 0 ? at->start_s - (at[-1].start_s + at[-1].seconds) : 0;
            seconds[p] = at->seconds;
        }
        double gap = median_of(gaps, pass_count);
        out[i].start_s = end + (gap > 0 ? gap : 0);
        out[i].seconds = median_of(seconds, pass_count);
        end = out[i].start_s + out[i].seconds;
    }
    free(seconds);
    free(gaps);
}

int trace_program(struct worker *k, struct program *p, json_t **out, struct status *st)
{
    int launches = p->layers * p->part_count, result = 0;
    struct launch_time *passes = mem_alloc((size_t)PASSES * (size_t)launches, sizeof(*passes));
    struct launch_time *times = mem_alloc((size_t)launches, sizeof(*times));
    *out = json_array();
    for (int i = 0; i < PASSES && result == 0; i++) {
        worker_doing(k, "tracing");
        result = k->ops->trace(k->device, p->replay, launches,
                               passes + (size_t)i * (size_t)launches, st);
    }
    if (result == 0)
        trace_settle(passes, PASSES, launches, times);
    for (int i = 0; i < launches && result == 0; i++)
        json_array_append_new(*out, json_pack("[ff]", times[i].start_s, times[i].seconds));
    free(times);
    free(passes);
    return result;
}
