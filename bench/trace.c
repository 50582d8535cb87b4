/* When each kernel launch of a plan ran, as the worker says. */
#include "bench/bench_int.h"

#include <stdlib.h>

static int read_times(const json_t *reply, int count, struct launch_time *out, struct status *st)
{
    const json_t *times = json_object_get(reply, "times");
    if ((int)json_array_size(times) != count)
        return status_set(st, STATUS_LAUNCH, "the worker traced %zu launches, expected %d",
                          json_array_size(times), count);
    for (int i = 0; i < count; i++)
        if (json_unpack(json_array_get(times, (size_t)i), "[FF]", &out[i].start_s,
                        &out[i].seconds) != 0)
            return status_set(st, STATUS_LAUNCH, "malformed launch %d of the worker's trace", i);
    return 0;
}

int bench_trace(struct bench *b, const struct candidate *c, struct launch_time **out,
                struct status *st)
{
    json_t *reply;
    int count = b->w.layers * c->count;
    struct launch_time *times = mem_alloc((size_t)count, sizeof(*times));
    int result =
        run_request(b, runnable_of(c), LOCK_TO_TIME, json_pack("{s:s}", "do", "trace"), &reply, st);
    if (result == 0)
        result = read_times(reply, count, times, st);
    json_decref(reply);
    *out = result == 0 ? times : NULL;
    if (result != 0)
        free(times);
    return result;
}
