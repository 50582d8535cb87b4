#include "bench/bench_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TURN_LIMIT_S = 300, /* for another process to finish its measurement */
    TRIES = 2           /* a worker's death may not be the candidate's fault once */
};

/* What is measured: a plan's choices, or one segment alone. */
struct subject {
    const struct choice *choices;
    int count;
    bool alone;
    struct trial *trial;
    int deaths; /* of workers that were at it */
    bool done;
};

static void fail(struct subject *s, const struct status *reason)
{
    s->trial->status = TRIAL_FAILED;
    s->trial->reason = *reason;
    s->done = true;
}

static void choice_name(const struct choice *c, struct buf *out)
{
    buf_addf(out, "segment %d-%d (%s)", c->segment.first, c->segment.last, c->impl->name);
}

/* ---- building -------------------------------------------------------------------------------- */

/* A subject with a choice that cannot be built fails with that choice's reason. */
static void check_builds(struct bench *b, struct subject *s)
{
    for (int i = 0; i < s->count; i++) {
        const struct binary *binary = builder_find(&b->builder, &s->choices[i]);
        if (binary->status.code == STATUS_OK || s->done)
            continue;
        struct status reason = binary->status;
        struct buf name;
        buf_init(&name);
        choice_name(&s->choices[i], &name);
        status_prefix(&reason, "%s", name.ptr);
        buf_release(&name);
        fail(s, &reason);
    }
}

static int build_all(struct bench *b, struct subject *subjects, int n, struct status *st)
{
    for (int i = 0; i < n; i++) {
        double start = clock_seconds();
        if (builder_build(&b->builder, subjects[i].choices, subjects[i].count, NULL, NULL, NULL,
                          st) != 0)
            return -1;
        subjects[i].trial->build_s = clock_seconds() - start;
        check_builds(b, &subjects[i]);
    }
    return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static json_t *knobs_of(const struct choice *c)
{
    json_t *knobs = json_array();
    for (int i = 0; i < c->impl->knob_count; i++)
        json_array_append_new(knobs,
                              json_integer(c->impl->knobs[i].values[(int)c->schedule.pick[i]]));
    return knobs;
}

static void name_verdict(const struct bench *b, struct binary *binary)
{
    struct buf text;
    buf_init(&text);
    json_t *knobs = knobs_of(&binary->choice);
    char *knobs_text = json_dumps(knobs, JSON_COMPACT);
    buf_addf(&text, "%s %s %s", b->verdict_base, binary->content_hash, knobs_text);
    hash_text(text.ptr, text.len, binary->verdict);
    free(knobs_text);
    json_decref(knobs);
    buf_release(&text);
}

/* Looks for a verdict of an earlier session. */
static void recall_verdict(const struct bench *b, struct binary *binary)
{
    struct buf text;
    buf_init(&text);
    name_verdict(b, binary);
    if (!b->afresh && cache_get(&b->cache, CACHE_VERDICT, binary->verdict, &text, NULL))
        binary->error = strtod(text.ptr, NULL);
    buf_release(&text);
}

static json_t *choice_message(struct bench *b, const struct choice *c)
{
    struct binary *binary = builder_find(&b->builder, c);
    struct buf name, symbol, schedule;
    buf_init(&name);
    buf_init(&symbol);
    buf_init(&schedule);
    choice_name(c, &name);
    choice_symbol(c, &symbol);
    schedule_text(c->impl, &c->schedule, &schedule);
    json_t *message =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:o}", "name", name.ptr, "path",
                  binary->path, "symbol", symbol.ptr, "impl", c->impl->name, "schedule",
                  schedule.ptr, "first", c->segment.first, "last", c->segment.last, "tensors",
                  choice_tensors(c) | segment_inputs(c->segment), "knobs", knobs_of(c));
    if (binary->error < 0)
        recall_verdict(b, binary);
    if (binary->error < 0)
        json_object_set_new(message, "verdict", json_string(binary->verdict));
    buf_release(&schedule);
    buf_release(&symbol);
    buf_release(&name);
    return message;
}

static json_t *subject_message(struct bench *b, const struct subject *s)
{
    json_t *choices = json_array();
    for (int i = 0; i < s->count; i++)
        json_array_append_new(choices, choice_message(b, &s->choices[i]));
    return json_pack("{s:b, s:o}", "alone", (int)s->alone, "choices", choices);
}

/* A verdict is kept at once: whatever becomes of the plan, its segment is right. */
static void keep_verdict(void *ctx, const json_t *event)
{
    struct bench *b = ctx;
    const char *key = json_string_value(json_object_get(event, "verdict"));
    double error = json_number_value(json_object_get(event, "error"));
    if (key == NULL)
        return;
    char text[32];
    struct status ignored = STATUS_INIT; /* without it the next session verifies again */
    int len = snprintf(text, sizeof(text), "%.17g", error);
    cache_put(&b->cache, CACHE_VERDICT, key, text, (size_t)len, &ignored);
    for (int i = 0; i < b->builder.count; i++)
        if (strcmp(b->builder.binaries[i]->verdict, key) == 0)
            b->builder.binaries[i]->error = error;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* -1 where the environment failed, which says nothing about the subject and ends the work. */
static int finish(struct bench *b, struct subject *s, const json_t *message, struct status *st)
{
    double build_s = s->trial->build_s;
    struct status garbled = STATUS_INIT;
    if (message_to_trial(message, s->trial, &garbled) != 0)
        fail(s, &garbled);
    if (s->trial->reason.code == STATUS_ENVIRONMENT)
        return status_set(st, STATUS_ENVIRONMENT, "%s", s->trial->reason.message);
    s->trial->build_s = build_s;
    disturbance_add(&b->disturbance, &s->trial->conditions);
    if (s->alone)
        binary_describe(builder_find(&b->builder, &s->choices[0]), &s->trial->resources);
    for (int i = 0; i < s->count; i++) {
        double error = builder_find(&b->builder, &s->choices[i])->error;
        if (error > s->trial->error)
            s->trial->error = error;
    }
    s->done = true;
    return 0;
}

/* The worker died of something: of the subject that it was at, or of any if it did not say. */
static void blame(struct subject **open, int n, int guilty, const struct status *reason)
{
    struct subject *s = open[guilty >= 0 && guilty < n ? guilty : 0];
    if (++s->deaths == TRIES)
        fail(s, reason);
}

/* Sends what is open in one request.  -1 only where the environment or an interrupt ends the work.
 */
static int measure_open(struct bench *b, struct subject **open, int n, const struct sampling *how,
                        struct status *st)
{
    if (session_start_worker(b, st) != 0)
        return -1;
    json_t *candidates = json_array(), *reply;
    for (int i = 0; i < n; i++)
        json_array_append_new(candidates, subject_message(b, open[i]));
    uint64_t shuffle = splitmix64(b->seed + b->shuffles++);
    json_t *request =
        json_pack("{s:s, s:I, s:o, s:o}", "do", "measure", "shuffle", (json_int_t)shuffle,
                  "sampling", message_of_sampling(how), "candidates", candidates);
    struct status failed = STATUS_INIT;
    int result =
        client_call(&b->client, request, b->run_limit_s, b->stop, keep_verdict, b, &reply, &failed);
    json_decref(request);
    if (result == 0)
        result = message_status(reply, &failed);
    if (result == 0) {
        const json_t *trials = json_object_get(reply, "trials");
        for (int i = 0; i < n && result == 0; i++)
            result = finish(b, open[i], json_array_get(trials, (size_t)i), st);
    } else if (failed.code == STATUS_INTERRUPTED || failed.code == STATUS_ENVIRONMENT) {
        status_set(st, failed.code, "%s", failed.message);
    } else {
        blame(open, n, b->client.candidate, &failed);
    }
    json_decref(reply);
    return st->code == STATUS_OK ? 0 : -1;
}

static int measure_all(struct bench *b, struct subject *subjects, int n, const struct sampling *how,
                       struct status *st)
{
    struct subject **open = mem_alloc((size_t)n + 1, sizeof(struct subject *));
    enum lock_use use = how->max_samples > 0 ? LOCK_TO_TIME : LOCK_TO_RUN;
    int lock, count, result = lock_take(b->target, use, TURN_LIMIT_S, b->stop, &lock, st);
    while (result == 0) {
        count = 0;
        for (int i = 0; i < n; i++)
            if (!subjects[i].done)
                open[count++] = &subjects[i];
        if (count == 0)
            break;
        result = measure_open(b, open, count, how, st);
    }
    lock_drop(lock);
    free(open);
    return result;
}

static int measure_subjects(struct bench *b, struct subject *subjects, int n,
                            const struct sampling *how, struct status *st)
{
    for (int i = 0; i < n; i++)
        *subjects[i].trial = (struct trial){0};
    int result = build_all(b, subjects, n, st);
    if (result == 0)
        result = measure_all(b, subjects, n, how, st);
    for (int i = 0; i < n && result != 0; i++)
        trial_release(subjects[i].trial);
    return result;
}

int bench_segment(struct bench *b, const struct choice *c, const struct sampling *how,
                  struct trial *out, struct status *st)
{
    struct subject s = {.choices = c, .count = 1, .alone = true, .trial = out};
    return measure_subjects(b, &s, 1, how, st);
}

int bench_plan(struct bench *b, const struct candidate *c, const struct sampling *how,
               struct trial *out, struct status *st)
{
    struct subject s = {.choices = c->choices, .count = c->count, .trial = out};
    return measure_subjects(b, &s, 1, how, st);
}

int bench_compare(struct bench *b, const struct candidate *candidates, int n,
                  const struct sampling *how, struct trial *trials, struct status *st)
{
    struct subject *subjects = mem_alloc((size_t)n + 1, sizeof(*subjects));
    for (int i = 0; i < n; i++)
        subjects[i] = (struct subject){
            .choices = candidates[i].choices, .count = candidates[i].count, .trial = &trials[i]};
    int result = measure_subjects(b, subjects, n, how, st);
    free(subjects);
    return result;
}

/* ---- one plan, one request ------------------------------------------------------------------- */

static int ask(struct bench *b, const struct subject *s, json_t *request, json_t **reply,
               struct status *st)
{
    if (session_start_worker(b, st) != 0)
        return -1;
    json_object_set_new(request, "candidate", subject_message(b, s));
    if (client_call(&b->client, request, b->run_limit_s, b->stop, keep_verdict, b, reply, st) != 0)
        return -1;
    return message_status(*reply, st);
}

int run_request(struct bench *b, const struct candidate *c, enum lock_use use, json_t *request,
                json_t **reply, struct status *st)
{
    struct trial trial = {0};
    struct subject s = {.choices = c->choices, .count = c->count, .trial = &trial};
    int lock = -1, result = build_all(b, &s, 1, st);
    *reply = NULL;
    if (result == 0 && s.done)
        result = status_set(st, trial.reason.code, "%s", trial.reason.message);
    if (result == 0)
        result = lock_take(b->target, use, TURN_LIMIT_S, b->stop, &lock, st);
    if (result == 0)
        result = ask(b, &s, request, reply, st);
    lock_drop(lock);
    trial_release(&trial);
    json_decref(request);
    return result;
}
