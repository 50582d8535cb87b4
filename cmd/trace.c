#include "cmd/bench_int.h"

#include <stdlib.h>
#include <string.h>

/* The Trace Event Format in its JSON object form: https://docs.google.com/document/d/
 * 1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.  Times are microseconds.  A plan is a process with
 * two threads.  No two processes share a thread number: some viewers would merge the threads. */

enum { THREAD_LAYERS = 1, THREAD_LAUNCHES, THREADS = 10 };

static int thread_of(int process, int thread)
{
    return process * THREADS + thread;
}

static json_t *name_event(const char *what, int process, int thread, const char *name)
{
    return json_pack("{ss ss si si s{ss}}", "name", what, "ph", "M", "pid", process, "tid",
                     thread_of(process, thread), "args", "name", name);
}

/* A complete event: one with a duration. */
static json_t *event(const char *name, const char *category, int process, int thread,
                     double start_s, double end_s, json_t *args)
{
    return json_pack("{ss ss ss sf sf si si so}", "name", name, "cat", category, "ph", "X", "ts",
                     1e6 * start_s, "dur", 1e6 * (end_s - start_s), "pid", process, "tid",
                     thread_of(process, thread), "args", args);
}

static void add_launch(json_t *events, int process, int layer, const struct choice *c,
                       const struct launch_time *at)
{
    struct buf name;
    char range[12];
    buf_init(&name);
    buf_addf(&name, "ops %s ", segment_text(c->segment, range));
    segment_describe(c->chain, c->segment, &name);
    json_t *args = json_pack("{si ss so}", "layer", layer, "implementation", c->impl->name,
                             "schedule", schedule_json(c));
    json_array_append_new(events, event(name.ptr, "kernel", process, THREAD_LAUNCHES, at->start_s,
                                        at->start_s + at->seconds, args));
    buf_release(&name);
}

static void add_layer(json_t *events, int process, int layer, const struct candidate *c,
                      const struct launch_time *first)
{
    const struct launch_time *last = first + c->count - 1;
    char name[32];
    snprintf(name, sizeof(name), "layer %d", layer);
    json_array_append_new(events, event(name, "layer", process, THREAD_LAYERS, first->start_s,
                                        last->start_s + last->seconds, json_object()));
    for (int i = 0; i < c->count; i++)
        add_launch(events, process, layer, &c->choices[i], &first[i]);
}

static void add_plan(json_t *events, int process, const struct session *s,
                     const struct candidate *c, const struct launch_time *times)
{
    char name[32];
    snprintf(name, sizeof(name), "plan %u", plan_value(c->plan));
    json_array_append_new(events, name_event("process_name", process, THREAD_LAYERS, name));
    json_array_append_new(events, name_event("thread_name", process, THREAD_LAYERS, "layers"));
    json_array_append_new(events, name_event("thread_name", process, THREAD_LAUNCHES,
                                             bench_fingerprint(s->bench)->device));
    for (int l = 0; l < s->workload.layers; l++)
        add_layer(events, process, l, c, times + (size_t)l * (size_t)c->count);
}

int trace_write(struct session *s, const struct candidate *const *plans, int n, const char *path,
                struct status *st)
{
    json_t *events = json_array();
    struct launch_time *times;
    int result = 0;
    for (int i = 0; i < n && result == 0; i++) {
        result = bench_trace(s->bench, plans[i], &times, st);
        if (result == 0)
            add_plan(events, i + 1, s, plans[i], times);
        free(times);
    }
    json_t *trace = json_pack("{ss s{ss so} so}", "displayTimeUnit", "ns", "otherData", "generator",
                              "fuseplan " FUSEPLAN_VERSION, "workload",
                              workload_json(&s->workload, s->target.kind), "traceEvents", events);
    char *text = result == 0 ? json_dumps(trace, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    if (result == 0)
        result = file_write(path, text, strlen(text), st);
    free(text);
    json_decref(trace);
    return result;
}
