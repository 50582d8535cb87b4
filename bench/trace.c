/* When each launch of a plan ran, as the worker says. */
#include "bench/bench_int.h"

#include <stdlib.h>

static int read_spans(const json_t *reply, int count, struct span *out, struct status *st)
{
    const json_t *spans = json_object_get(reply, "spans");
    if ((int)json_array_size(spans) != count)
        return status_set(st, STATUS_LAUNCH, "the worker traced %zu launches, expected %d",
                          json_array_size(spans), count);
    for (int i = 0; i < count; i++)
        if (json_unpack(json_array_get(spans, (size_t)i), "[FF]", &out[i].start_s,
                        &out[i].seconds) != 0)
            return status_set(st, STATUS_LAUNCH, "malformed launch %d of the worker's trace", i);
    return 0;
}

int bench_trace(struct bench *b, const struct candidate *c, struct span **out, struct status *st)
{
    json_t *reply;
    int count = b->w.layers * c->count;
    struct span *spans = mem_alloc((size_t)count, sizeof(*spans));
    int result = run_request(b, c, LOCK_TO_TIME, json_pack("{s:s}", "do", "trace"), &reply, st);
    if (result == 0)
        result = read_spans(reply, count, spans, st);
    json_decref(reply);
    *out = spans;
    if (result != 0) {
        free(spans);
        *out = NULL;
    }
    return result;
}
