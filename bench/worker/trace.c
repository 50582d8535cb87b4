#include "bench/worker/worker_int.h"

#include <stdlib.h>

enum { PASSES = 15 }; /* an odd number, so that a median is one of the values */

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

int trace_program(struct worker *k, struct program *p, json_t *reply, struct status *st)
{
    size_t launches = (size_t)p->layers * (size_t)p->part_count;
    struct launch_time *passes = mem_alloc(PASSES * launches, sizeof(*passes));
    struct launch_time *times = mem_alloc(launches, sizeof(*times));
    json_t *out = json_array();
    int result = 0;
    for (size_t i = 0; i < PASSES && result == 0; i++) {
        worker_doing(k, "tracing");
        result = k->ops->trace(p->replay, passes + i * launches, st);
    }
    if (result == 0)
        trace_settle(passes, PASSES, (int)launches, times);
    for (size_t i = 0; i < launches && result == 0; i++)
        json_array_append_new(out, json_pack("[ff]", times[i].start_s, times[i].seconds));
    json_object_set_new(reply, "times", out);
    free(times);
    free(passes);
    return result;
}
