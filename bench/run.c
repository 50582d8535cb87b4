#include "bench/bench_int.h"

enum {
    TRIES = 2 /* the first death of a worker may be a moment's failure, of it or of the machine */
};

static int take_turn(struct bench *b, enum lock_use use, int *lock, struct status *st)
{
    b->wait.limit_s = fmax(b->until - clock_seconds(), 0);
    return lock_take(session_device(b), use, &b->wait, lock, st);
}

/* What is measured: a plan's choices, or one segment alone. */
struct measurement {
    struct runnable what;
    struct trial *trial;
    int deaths; /* of workers during this measurement */
    bool done;
};

static void fail(struct measurement *m, const struct status *reason)
{
    m->trial->status = TRIAL_FAILED;
    m->trial->reason = *reason;
    m->done = true;
}

/* ---- building -------------------------------------------------------------------------------- */

/* A measurement of a choice that cannot be built fails with that choice's reason. */
static void check_builds(struct bench *b, struct measurement *m)
{
    for (int i = 0; i < m->what.count; i++) {
        const struct binary *binary = builder_find(&b->builder, &m->what.choices[i]);
        if (binary->status.code == STATUS_OK || m->done)
            continue;
        struct status reason = binary->status;
        request_blame(&m->what.choices[i], &reason);
        fail(m, &reason);
    }
}

static int build_all(struct bench *b, struct measurement *all, int n, struct status *st)
{
    for (int i = 0; i < n; i++) {
        double start = clock_seconds();
        const int usual = session_hurry(b);
        int result =
            builder_build(&b->builder, all[i].what.choices, all[i].what.count, b->until, NULL, st);
        b->toolchain.niceness = usual;
        if (result != 0)
            return -1;
        all[i].trial->build_s = all[i].what.alone ? bench_build_seconds(b, &all[i].what.choices[0])
                                                  : clock_seconds() - start;
        check_builds(b, &all[i]);
    }
    return 0;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Reads one trial.  Returns -1 where the environment failed: that says nothing about the candidate
 * and ends the work. */
static int finish(struct bench *b, struct measurement *m, const json_t *message,
                  const struct sampling *how, struct status *st)
{
    double build_s = m->trial->build_s;
    struct status garbled = STATUS_INIT;
    if (message_to_trial(message, how, m->trial, &garbled) != 0)
        fail(m, &garbled);
    if (m->trial->reason.code == STATUS_ENVIRONMENT)
        return status_set(st, STATUS_ENVIRONMENT, "%s", m->trial->reason.message);
    if (m->trial->status == TRIAL_FAILED &&
        builder_check(&b->builder, m->what.choices, m->what.count, st) != 0)
        return -1;
    m->trial->build_s = build_s;
    m->trial->conditions.peaks = b->limits;
    disturbance_add(&b->disturbance, &m->trial->conditions);
    if (m->what.alone)
        binary_describe(builder_find(&b->builder, &m->what.choices[0]), &m->trial->resources);
    for (int i = 0; i < m->what.count; i++) {
        double error = builder_find(&b->builder, &m->what.choices[i])->error;
        if (error > m->trial->error)
            m->trial->error = error;
    }
    m->done = true;
    return 0;
}

/* The worker died during the measurement that it had announced, or else during the first one.  Who
 * hangs has had all of its time: once is enough. */
static void blame(struct measurement **open, int n, int guilty, const struct status *reason)
{
    struct measurement *m = open[guilty >= 0 && guilty < n ? guilty : 0];
    if (++m->deaths == TRIES || reason->code == STATUS_TIMEOUT)
        fail(m, reason);
}

/* Something else ended the worker, which is nobody's fault here. */
static int bear_kill(struct bench *b, const struct status *reason, struct status *st)
{
    if (++b->kills < TRIES)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT,
                      "the worker was ended from outside twice; is memory short, or does another "
                      "program or a limit stop it: %s",
                      reason->message);
}

/* Sends all open measurements in one request.  begin: of the call, as clock_seconds().  Returns -1
 * only where the environment or an interrupt ends the work. */
static int measure_open(struct bench *b, struct measurement **open, int n,
                        const struct sampling *how, double begin, struct status *st)
{
    struct sampling now = *how;
    sampling_spend(&now, clock_seconds() - begin);
    json_t *candidates = json_array();
    json_auto_t *reply = NULL;
    for (int i = 0; i < n; i++)
        json_array_append_new(candidates, request_of(b, open[i]->what));
    uint64_t shuffle = splitmix64(b->inputs.seed + b->shuffles++);
    json_t *request =
        json_pack("{s:s, s:I, s:o, s:o}", "do", "measure", "shuffle", (json_int_t)shuffle,
                  "sampling", message_of_sampling(&now), "candidates", candidates);
    if (b->turn_s > 0)
        json_object_set_new(request, "idle_s", json_real(clock_seconds() - b->turn_s));
    struct status failed = STATUS_INIT;
    b->candidates = n;
    b->timing_s = now.max_samples > 0 ? 1 + now.max_seconds : 0;
    int result = session_call(b, request, &reply, &failed);
    if (result == 0) {
        const json_t *trials = json_object_get(reply, "trials");
        json_unpack(reply, "{s?F}", "oracle_left_s", &b->oracle_left_s);
        for (int i = 0; i < n && result == 0; i++)
            result = finish(b, open[i], json_array_get(trials, (size_t)i), how, st);
    } else if (failed.code == STATUS_INTERRUPTED || failed.code == STATUS_ENVIRONMENT ||
               session_limit_over(b, &failed)) {
        status_set(st, failed.code, "%s", failed.message);
    } else if (b->client.killed) {
        bear_kill(b, &failed, st);
    } else {
        blame(open, n, b->client.candidate, &failed);
    }
    return st->code == STATUS_OK ? 0 : -1;
}

static int measure_all(struct bench *b, struct measurement *all, int n, const struct sampling *how,
                       double begin, struct status *st)
{
    SCOPED struct measurement **open = mem_alloc((size_t)n + 1, sizeof(struct measurement *));
    enum lock_use use = how->max_samples > 0 ? LOCK_TO_TIME : LOCK_TO_RUN;
    int lock, count, result = take_turn(b, use, &lock, st);
    b->kills = 0;
    while (result == 0) {
        count = 0;
        for (int i = 0; i < n; i++)
            if (!all[i].done)
                open[count++] = &all[i];
        if (count == 0)
            break;
        result = measure_open(b, open, count, how, begin, st);
    }
    lock_drop(lock);
    return result;
}

static int build_and_measure(struct bench *b, struct measurement *all, int n,
                             const struct sampling *how, struct status *st)
{
    double begin = clock_seconds();
    for (int i = 0; i < n; i++)
        *all[i].trial = (struct trial){0};
    int result = build_all(b, all, n, st);
    if (result == 0)
        result = measure_all(b, all, n, how, begin, st);
    for (int i = 0; i < n && result != 0; i++)
        trial_release(all[i].trial);
    return result;
}

int bench_segment(struct bench *b, const struct choice *c, bool packed, const struct sampling *how,
                  struct trial *out, struct status *st)
{
    struct measurement m = {.what = {.choices = c, .count = 1, .alone = true, .packed = packed},
                            .trial = out};
    return build_and_measure(b, &m, 1, how, st);
}

int bench_plan(struct bench *b, const struct candidate *c, const struct sampling *how,
               struct trial *out, struct status *st)
{
    return bench_compare(b, c, 1, how, out, st);
}

int bench_compare(struct bench *b, const struct candidate *candidates, int n,
                  const struct sampling *how, struct trial *trials, struct status *st)
{
    SCOPED struct measurement *all = mem_alloc((size_t)n + 1, sizeof(*all));
    for (int i = 0; i < n; i++)
        all[i] = (struct measurement){.what = runnable_of(&candidates[i]), .trial = &trials[i]};
    return build_and_measure(b, all, n, how, st);
}

/* ---- one candidate, one request -------------------------------------------------------------- */

int run_request(struct bench *b, struct runnable what, enum lock_use use, json_t *request,
                json_t **reply, struct status *st)
{
    struct trial trial = {0};
    struct measurement m = {.what = what, .trial = &trial};
    json_auto_t *taken = request;
    int lock;
    *reply = NULL;
    if (build_all(b, &m, 1, st) != 0)
        return -1;
    if (m.done)
        return status_set(st, trial.reason.code, "%s", trial.reason.message);
    if (take_turn(b, use, &lock, st) != 0)
        return -1;
    b->candidates = 1;
    b->timing_s = 0;
    json_object_set_new(taken, "candidate", request_of(b, what));
    int result = session_call(b, json_incref(taken), reply, st);
    lock_drop(lock);
    return result;
}
