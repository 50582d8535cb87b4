#include "cmd/cmd.h"

#include <signal.h>

volatile sig_atomic_t session_stop;

static void interrupted(int signal)
{
    (void)signal;
    session_stop = 1;
}

/* With SA_RESETHAND the second signal ends the program at once. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupted, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void say(void *ctx, const char *line)
{
    note(ctx, "%s", line);
}

/* Checks the memory before the mask takes some.  Opens the database last, so that none is created
 * if nothing can be measured. */
int session_open(const struct options *o, uint64_t seed, struct session *s, struct status *st)
{
    struct arch_list archs;
    *s = (struct session){.bench = NULL};
    catch_signals();
    if (workload_read(o, &s->target, &s->workload, st) != 0 ||
        archs_from_options(o, s->target.kind, &archs, st) != 0)
        return -1;
    if (archs.count > 1)
        return status_set(st, STATUS_USAGE,
                          "--arch: '%s' names several architectures; name one that the device runs",
                          o->arch);
    if (bench_check_memory(&s->workload, st) != 0 || workload_read_mask(o, &s->workload, st) != 0)
        return -1;
    struct bench_options options = {.target = s->target,
                                    .compiler = o->compiler,
                                    .arch = archs.arch[0],
                                    .jobs = o->jobs,
                                    .inputs = {seed, o->ranges},
                                    .stop = &session_stop,
                                    .listener = {.report = progress_detail},
                                    .say = say,
                                    .say_ctx = (void *)o};
    if (bench_open(&options, &s->workload, &s->bench, st) != 0 ||
        db_open(o->db, DB_WRITE, &s->db, st) != 0)
        return -1;
    if (options_has(o, OPT(VERBOSE))) {
        const struct fingerprint *f = bench_fingerprint(s->bench);
        note(o, "%s, %s, %d units, %s, %s; database '%s'", f->device, f->capability, f->units,
             f->compiler, f->libraries, db_path(s->db));
    }
    return 0;
}

int session_open_study(const struct options *o, enum db_mode mode, struct session *s,
                       struct status *st)
{
    *s = (struct session){.bench = NULL};
    if (workload_from_options(o, false, &s->target, &s->workload, st) != 0 ||
        db_open(o->db, mode, &s->db, st) != 0)
        return -1;
    return study_of_workload(o, s->db, s->target, &s->workload, &s->study, st);
}

void session_close(struct session *s)
{
    bench_close(s->bench);
    db_close(s->db);
    workload_release(&s->workload);
}

void session_note_disturbance(const struct options *o, const struct session *s)
{
    void (*const texts[])(const struct disturbance *d,
                          struct buf *out) = {disturbance_sharing_text, disturbance_slowdown_text};
    struct disturbance d = bench_disturbance(s->bench);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct buf line;
        buf_init(&line);
        texts[i](&d, &line);
        if (line.len > 0)
            note(o, "%s", line.ptr);
        buf_release(&line);
    }
}
