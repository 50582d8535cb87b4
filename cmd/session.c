#include "cmd/plans.h"
#include "cmd/sweep_int.h"

volatile sig_atomic_t session_stop;

/* Schedulers tell every process of a job to end, and a script's trap may tell it once more: what
 * the first signal has this program save the second one must not prevent. */
static void interrupted(int number)
{
    session_stop = 1;
    if (number != SIGINT)
        signal(number, SIG_IGN);
}

/* A second Ctrl-C ends the program at once: SA_RESETHAND. */
void session_catch_signals(void)
{
    const struct sigaction interrupt = {.sa_handler = interrupted, .sa_flags = (int)SA_RESETHAND},
                           end = {.sa_handler = interrupted};
    struct sigaction hangup;
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &end, NULL);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* else nohup(1) */
        sigaction(SIGHUP, &end, NULL);
}

/* Says what will show in the times, as `doctor` does. */
static void note_noise(const struct options *o, struct target_name target)
{
    SCOPED_BY(env_list_release) struct env_list list = {0};
    if (!options_has(o, OPT(QUIET)))
        env_check_noise(target, &list);
    for (int i = 0; i < list.count; i++) {
        const struct env_check *c = &list.rows[i];
        if (c->state != ENV_OK)
            note(o, "%s: %s; %s", c->subject, c->found, c->advice);
    }
}

/* *out is null if the mode creates none and there is none. */
static int open_database(const struct options *o, enum db_mode mode, struct db **out,
                         struct status *st)
{
    struct status failed = STATUS_INIT;
    if (db_open(o->db, mode, out, &failed) == 0)
        db_set_precision(*out, o->precision);
    return status_unless_missing(&failed, st);
}

int operand_open(const char *path, struct db **out, struct status *st)
{
    struct status failed = STATUS_INIT;
    if (db_open(path, DB_READ, out, &failed) == 0)
        return 0;
    if (failed.code == STATUS_NOT_FOUND && !file_exists(path))
        return status_set(st, STATUS_USAGE, "there is no database at '%s'", path);
    return status_set(st, failed.code == STATUS_NOT_FOUND ? STATUS_USAGE : failed.code, "%s",
                      failed.message);
}

/* Checks the memory before the mask takes some.  Opens the database last, so that none is created
 * if nothing can be measured. */
int session_open(const struct options *o, uint64_t seed, enum db_mode mode, struct session *s,
                 struct status *st)
{
    struct arch_list archs;
    *s = (struct session){.bench = NULL};
    session_catch_signals();
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
                                    .inputs = {.seed = seed, .ranges = o->ranges},
                                    .weights = o->weights,
                                    .prefix = o->prefix,
                                    .calibration = o->calibration,
                                    .precision = o->precision,
                                    .stop = &session_stop,
                                    .turn = session_turn,
                                    .listener = {.report = progress_detail},
                                    .say = note_line,
                                    .say_ctx = (void *)o};
    if (bench_open(&options, &s->workload, &s->bench, st) != 0 ||
        open_database(o, mode, &s->db, st) != 0)
        return -1;
    note_noise(o, s->target);
    if (options_has(o, OPT(VERBOSE))) {
        const struct fingerprint *f = bench_fingerprint(s->bench);
        note(o, "%s, %s, %d units, %s, %s; %s%s%s", f->device, f->capability, f->units, f->compiler,
             f->libraries, s->db != NULL ? "database '" : "no database",
             s->db != NULL ? db_path(s->db) : "", s->db != NULL ? "'" : "");
    }
    return 0;
}

/* In a database that may be null; 1, 0 or -1. */
static int find_stored(const struct options *o, struct db *db, enum scope scope,
                       struct target_name target, const struct workload *w, struct found_study *out,
                       struct status *st)
{
    struct found_study pack = {.db = NULL};
    int found = 0;
    if (db != NULL && scope != SCOPE_STORED)
        found = study_of_device(o, db, target, w, &out->study, st);
    if (found == 0 && scope != SCOPE_STORED && o->precision == 0) /* packs have no e4m3 */
        packs_find(o, target, w, &pack);
    if (pack.db != NULL) {
        *out = pack;
        return 1;
    }
    if (db != NULL && found == 0 && scope == SCOPE_NEAR)
        found = study_near_workload(o, db, target, w, &out->study, st);
    if (db != NULL && found == 0)
        found = study_of_workload(o, db, target, w, &out->study, st) == 0 ? 1 : -1;
    if (found > 0)
        out->db = db;
    return found;
}

static int find_study(const struct options *o, enum db_mode mode, enum scope scope,
                      struct target_name target, const struct workload *w, struct found_study *out,
                      struct status *st)
{
    struct status missing = STATUS_INIT;
    struct db *db = NULL;
    *out = (struct found_study){.db = NULL};
    if (db_open(o->db, mode, &db, &missing) != 0 && status_unless_missing(&missing, st) != 0)
        return -1;
    if (db != NULL)
        db_set_precision(db, o->precision);
    int found = find_stored(o, db, scope, target, w, out, st);
    if (out->db != db)
        db_close(db);
    if (found == 0)
        *st = missing; /* there is no database */
    return found > 0 ? 0 : -1;
}

int study_find_known(const struct options *o, enum scope scope, struct target_name target,
                     const struct workload *w, struct found_study *out, struct status *st)
{
    struct status missing = STATUS_INIT;
    return find_study(o, DB_READ, scope, target, w, out, &missing) == 0
               ? 0
               : status_unless_missing(&missing, st);
}

int session_open_study(const struct options *o, enum db_mode mode, enum scope scope,
                       struct session *s, struct status *st)
{
    struct found_study found = {.db = NULL};
    *s = (struct session){.bench = NULL};
    if (workload_from_options(o, false, &s->target, &s->workload, st) != 0 ||
        find_study(o, mode, scope, s->target, &s->workload, &found, st) != 0)
        return -1;
    s->db = found.db;
    s->study = found.study;
    s->pack = found.pack;
    return 0;
}

void session_close(struct session *s)
{
    bench_close(s->bench);
    db_close(s->db);
    free(s->pack);
    workload_release(&s->workload);
}

void session_note_disturbance(const struct options *o, const struct session *s)
{
    void (*const texts[])(const struct disturbance *d, struct buf *out) = {
        disturbance_sharing_text, disturbance_crowd_text, disturbance_slowdown_text};
    struct disturbance d = bench_disturbance(s->bench);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        SCOPED_BUF line = BUF_INIT;
        texts[i](&d, &line);
        if (line.len > 0)
            note(o, "%s", line.ptr);
    }
}
