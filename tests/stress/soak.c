/* soak FUSEPLAN HOURS [SEED [SEARCHES]]: searches with random faults, for hours; or until so many
 * searches with faults have ended, whose candidates are all right, so that little is compiled.
 *
 * Two lanes share a database in a directory that it makes below the working directory, which stays
 * if anything is wrong.  The steady lane is one process that searches one small workload after the
 * other while its workers are killed: its memory, its descriptors and its files must stay flat. The
 * faulty lane runs one search after the other with a compiler that plants wrong candidates, and
 * does something drawn to each: kills it, interrupts it, kills its compilers, takes its room away.
 * A search that was cut short is run again until its workload is done.
 *
 * SIGINT and SIGTERM end it before its time, with all that it judges at its end.
 *
 * Exit 1 if a trial is lost, doubled or wrongly failed, if memory, descriptors or files grow, or if
 * anything is left running. */
#include "tests/stress/soak.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLE_S 1.   /* between two samples */
#define TELL_S   60.  /* between two lines of progress */
#define STUCK_S  600. /* no search of one workload takes so long */

/* Between two kills of the same kind, at least. */
#define KILLS_APART_S 4.

enum { MOST_FAULTY_RUNS = 3 };

/* What is done to a search, and which other ways than exit 0 it may end. */
enum act { NOTHING, SIGNAL, SUSPEND, LACK, LOSE, SPOIL, FLAG };
static const struct fault {
    const char *name;
    enum act act;
    int which;             /* signal or resource */
    unsigned long most;    /* of a resource: it gets a 64th of this to all of this */
    int exit_code, weight; /* exit_code 0: none other */
    const char *flag;      /* file that lets a candidate fail once */
} faults[] = {
    {"nothing", NOTHING, 0, 0, 0, 4, NULL},
    {"fuseplan killed", SIGNAL, SIGKILL, 0, 0, 8, NULL},
    {"interrupted", SIGNAL, SIGINT, 0, 130, 3, NULL},
    {"terminated", SIGNAL, SIGTERM, 0, 130, 2, NULL},
    {"hung up", SIGNAL, SIGHUP, 0, 130, 2, NULL},
    {"suspended", SUSPEND, 0, 0, 0, 2, NULL},
    {"disk full", LACK, RLIMIT_FSIZE, 4 << 20, 1, 4, NULL},
    {"no descriptors", LACK, RLIMIT_NOFILE, 640, 1, 1, NULL},
    {"no address space", LACK, RLIMIT_AS, 1 << 30, 1, 1, NULL},
    {"binaries lost", LOSE, 0, 0, 0, 4, NULL},
    {"binaries damaged", SPOIL, 0, 0, 0, 3, NULL},
    {"candidate crashed once", FLAG, 0, 0, 0, 3, "crash"},
    {"candidate left a daemon", FLAG, 0, 0, 0, 3, "daemon"},
    {"candidate hung", FLAG, 0, 0, 0, 1, "hang"},
};

enum { OF_CANDIDATES = 11 }; /* where the faults of candidates begin */

/* When somebody may be killed again. */
struct turn {
    double next_s;
    int64_t stored; /* trials of the lane at the last kill; then APART more */
};

struct soak {
    struct rng rng;
    struct account account;
    struct lane steady, faulty;
    struct report steady_told, told;
    char *db;
    double start_s, end_s, told_s, sampled_s;
    struct samples samples;
    /* of the faulty lane */
    const struct fault *fault;
    double act_s, resume_s; /* moments; infinite: none */
    int seq_len, runs_of_workload, kills_of_workload, done, kills_of_run;
    /* of both lanes */
    struct turn turns[3]; /* of steady and faulty workers, of compilers */
    int workers_killed, compilers_killed, counts[ARRAY_LEN(faults)];
};

static volatile sig_atomic_t stop;

static void set_stop(int number)
{
    (void)number;
    stop = 1;
}

static double between(struct soak *s, double lo, double hi)
{
    return lo * pow(hi / lo, rng_unit(&s->rng)); /* the short ones as often as the long ones */
}

/* ---- the steady lane ------------------------------------------------------------------------- */

static void start_steady(struct soak *s)
{
    enum { SIZES = 64, SHORTEST = 8 };
    struct buf text;
    buf_init(&text);
    buf_adds(&text, "search -q --target cpu -m causal -H 1 -W 4 -L 1 --budget 64 --events ");
    buf_addf(&text, "%s -b ", lane_path(&s->steady, "events"));
    for (int i = 1; i <= SIZES; i++)
        buf_addf(&text, "%s%d", i > 1 ? "," : "", i);
    buf_adds(&text, " -s ");
    for (int i = 0; i < SIZES; i++)
        buf_addf(&text, "%s%d", i > 0 ? "," : "", SHORTEST + i);
    lane_start(&s->steady, text.ptr, (struct lack){.resource = -1});
    buf_release(&text);
}

/* ---- kills ----------------------------------------------------------------------------------- */

static void kill_one(struct soak *s, struct lane *l, bool worker, struct turn *turn)
{
    double now = clock_seconds();
    bool dies_itself = l == &s->faulty && s->fault != NULL && s->fault->act == FLAG;
    if (now < turn->next_s || l->pid == 0 || dies_itself)
        return;
    account_take(&s->account, s->db);
    const int64_t *stored = &s->account.of_layers[l == &s->faulty ? FAULTY_LAYERS : STEADY_LAYERS];
    if (*stored < turn->stored + APART)
        return;
    struct task t = lane_draw(l, worker, &s->rng);
    if (t.pid == 0 || kill(t.pid, rng_below(&s->rng, 4) > 0 ? SIGKILL : SIGTERM) != 0)
        return;
    account_take(&s->account, s->db); /* those of the meantime do not count */
    *turn = (struct turn){.next_s = now + KILLS_APART_S + between(s, 0.1, 10), .stored = *stored};
    *(worker ? &s->workers_killed : &s->compilers_killed) += 1;
    s->kills_of_run += l == &s->faulty;
}

/* ---- the faulty lane ------------------------------------------------------------------------- */

static const struct fault *draw_fault(struct soak *s)
{
    int sum = 0;
    if (s->runs_of_workload >= MOST_FAULTY_RUNS)
        return &faults[0];
    if (!s->account.planted) /* each in turn */
        return &faults[(s->faulty.runs + 1) % OF_CANDIDATES];
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        sum += faults[i].weight;
    int drawn = (int)rng_below(&s->rng, (uint32_t)sum);
    const struct fault *f = faults;
    for (; drawn >= f->weight; f++)
        drawn -= f->weight;
    return f;
}

static void start_faulty(struct soak *s)
{
    enum { SHORTEST = 8, LENGTHS = 4000 };
    struct lack lack = {.resource = -1};
    if (s->runs_of_workload == 0)
        s->seq_len = SHORTEST + s->done % LENGTHS;
    s->fault = draw_fault(s);
    s->counts[s->fault - faults]++;
    s->act_s = s->resume_s = INFINITY;
    s->kills_of_run = 0;
    if (s->fault->act == LOSE || s->fault->act == SPOIL)
        lane_touch_binaries(&s->faulty, s->fault->act == SPOIL, &s->rng);
    if (s->fault->act == LACK)
        lack = (struct lack){.resource = s->fault->which,
                             .amount = (unsigned long)between(s, (double)s->fault->most / 64,
                                                              (double)s->fault->most)};
    if (s->fault->act == SIGNAL || s->fault->act == SUSPEND || s->fault->act == FLAG)
        s->act_s = clock_seconds() + between(s, 0.01, s->account.planted ? 20 : 2);

    struct buf text;
    buf_init(&text);
    unlink(lane_path(&s->faulty, "events"));
    buf_addf(&text, "search -q --target cpu -b 1 -s %d -m causal -H 1 -W 4 -L %d --budget 24",
             s->seq_len, FAULTY_LAYERS);
    buf_addf(&text, " --events %s", lane_path(&s->faulty, "events"));
    lane_start(&s->faulty, text.ptr, lack);
    s->runs_of_workload++;
    buf_release(&text);
}

/* Does to the search what is due. */
static void act(struct soak *s)
{
    double now = clock_seconds();
    if (now > s->resume_s)
        lane_signal(&s->faulty, SIGCONT);
    if (now < s->act_s)
        return;
    s->act_s = INFINITY;
    if (s->fault->act == SIGNAL) {
        lane_signal(&s->faulty, s->fault->which);
        s->kills_of_workload += s->fault->which == SIGKILL;
    } else if (s->fault->act == SUSPEND) {
        lane_signal(&s->faulty, SIGSTOP);
        s->resume_s = now + between(s, 0.1, 4);
    } else if (s->fault->act == FLAG) {
        struct status st = STATUS_INIT;
        if (file_write(lane_path(&s->faulty, s->fault->flag), "", 0, &st) != 0)
            give_up("%s", st.message);
    }
}

/* How the search may have ended: by itself; as its fault says; or with a message that names the
 * signal that hit a compiler twice, or any program while the search looked at its compiler. */
static bool names_kill(const struct soak *s, const char *said)
{
    bool named = strstr(said, "Killed") != NULL || strstr(said, "Terminated") != NULL ||
                 strstr(said, "terminated") != NULL;
    return named && s->kills_of_run > (strstr(said, "failed twice") != NULL ? 1 : 0);
}

static void judge_end(struct soak *s)
{
    int status = s->faulty.status, code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    bool killed = WIFSIGNALED(status) && s->fault->act == SIGNAL &&
                  WTERMSIG(status) == s->fault->which &&
                  (s->fault->which == SIGKILL || !lane_began(&s->faulty));
    const char *said = lane_said(&s->faulty);
    bool right = code == 0 || killed || (code > 0 && code == s->fault->exit_code) ||
                 (code == 1 && names_kill(s, said));
    if (!right)
        complain(&s->account, "'%s' ended with %s %d: %s", s->fault->name,
                 code < 0 ? "signal" : "exit status", code < 0 ? WTERMSIG(status) : code, said);
    if (clock_seconds() - s->faulty.started_s > STUCK_S)
        complain(&s->account, "'%s' took %.0f s", s->fault->name,
                 clock_seconds() - s->faulty.started_s);
    if (!killed && lane_began(&s->faulty)) { /* else it did not come so far as to sweep */
        int left = lane_files(&s->faulty);
        if (left > 0)
            complain(&s->account, "'%s' left %d files", s->fault->name, left);
    }
}

static void end_faulty(struct soak *s, bool last)
{
    bool cut = !WIFEXITED(s->faulty.status) || WEXITSTATUS(s->faulty.status) != 0;
    tasks_expect_end(&s->account, &s->steady, s->fault->name);
    judge_end(s);
    report_read(&s->account, &s->told, lane_path(&s->faulty, "events"));
    account_take(&s->account, s->db);
    report_match(&s->account, &s->told, s->seq_len, FAULTY_LAYERS, s->kills_of_workload);
    if (cut && !last)
        return;
    s->done += !cut;
    s->runs_of_workload = s->kills_of_workload = 0;
    s->told = (struct report){.once = true};
    unlink(lane_path(&s->faulty, "crash"));
    unlink(lane_path(&s->faulty, "hang"));
    unlink(lane_path(&s->faulty, "daemon"));
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void tell(struct soak *s)
{
    char utc[CLOCK_UTC_SIZE];
    struct usage now;
    account_take(&s->account, s->db);
    usage_read(s->steady.pid, &now);
    printf("%s  %6.0f s  %lld trials, %d searches with faults, %d workers and %d compilers killed, "
           "%ld KiB, %d descriptors, %d wrong\n",
           clock_utc(utc), clock_seconds() - s->start_s, (long long)s->account.trials,
           s->faulty.runs, s->workers_killed, s->compilers_killed, now.rss_kib, now.descriptors,
           s->account.complaints);
    fflush(stdout);
}

static void tick(struct soak *s)
{
    double now = clock_seconds();
    if (now - s->sampled_s >= SAMPLE_S) {
        s->sampled_s = now;
        samples_take(&s->samples, &s->steady);
    }
    if (now - s->told_s >= TELL_S) {
        s->told_s = now;
        tell(s);
    }
    if (lane_ended(&s->steady) && stop == 0)
        give_up("the steady lane ended by itself, with status 0x%x: %s", s->steady.status,
                lane_said(&s->steady));
    if (lane_ended(&s->faulty)) {
        if (s->faulty.runs > 0)
            end_faulty(s, false);
        start_faulty(s);
    }
    act(s);
    kill_one(s, &s->steady, true, &s->turns[0]);
    kill_one(s, &s->faulty, true, &s->turns[1]);
    kill_one(s, &s->faulty, false, &s->turns[2]);
}

static void stop_lane(struct lane *l)
{
    lane_signal(l, SIGCONT);
    for (lane_signal(l, SIGINT); !lane_ended(l);)
        poll(NULL, 0, 10);
}

/* Ends both lanes, then a search that nothing disturbs sweeps what they left. */
static void finish(struct soak *s)
{
    static const struct fault stopped = {
        .name = "the end", .act = SIGNAL, .which = SIGINT, .exit_code = 130};
    bool lacked = s->fault != NULL && s->fault->act == LACK;
    stop_lane(&s->faulty);
    s->fault = lacked && WIFEXITED(s->faulty.status) &&
                       WEXITSTATUS(s->faulty.status) == s->fault->exit_code
                   ? s->fault /* which was faster */
                   : &stopped;
    stop_lane(&s->steady);
    end_faulty(s, true);
    report_read(&s->account, &s->steady_told, lane_path(&s->steady, "events"));
    report_match(&s->account, &s->steady_told, 0, 1, 0);
    account_whole(&s->account);
    lane_start(&s->faulty, "db check", (struct lack){.resource = -1});
    while (!lane_ended(&s->faulty))
        poll(NULL, 0, 10);
    if (s->faulty.status != 0)
        complain(&s->account, "'db check': %s", lane_said(&s->faulty));
}

static void summarize(struct soak *s)
{
    double spent_s = clock_seconds() - s->start_s;
    printf("%.2f hours, %lld trials (%.1f a second), %lld reported as plans, %lld failed as "
           "planted\n",
           spent_s / 3600, (long long)s->account.trials, (double)s->account.trials / spent_s,
           (long long)s->account.reported, (long long)s->account.failed);
    printf("faulty lane: %d workloads in %d searches\n", s->done, s->faulty.runs);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        printf("  %-24s %d\n", faults[i].name, s->counts[i]);
    printf("  %-24s %d\n  %-24s %d\n", "worker killed", s->workers_killed, "compiler killed",
           s->compilers_killed);
    samples_judge(&s->samples, &s->account);
    printf("all that a search had started was gone %.2f s after it at most\n",
           s->account.longest_end_s);
    printf("%d wrong\n", s->account.complaints);
}

int main(int argc, char **argv)
{
    static struct soak s;
    struct status st = STATUS_INIT;
    double hours;
    int64_t seed = 0, searches = INT32_MAX;
    if (argc < 3 || argc > 5 || number_parse_double("HOURS", argv[2], 0, 1000, &hours, &st) != 0 ||
        (argc > 3 && number_parse("SEED", argv[3], 0, INT64_MAX, &seed, &st) != 0) ||
        (argc > 4 && number_parse("SEARCHES", argv[4], 1, INT32_MAX, &searches, &st) != 0)) {
        fprintf(stderr, "usage: soak FUSEPLAN HOURS [SEED [SEARCHES]]\n%s\n", st.message);
        return 2;
    }
    char name[] = "soak-XXXXXX", *dir = mkdtemp(name) != NULL ? realpath(name, NULL) : NULL;
    if (dir == NULL)
        give_up("'%s': cannot be made", name);
    printf("in %s\n", dir);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what the lanes leave behind becomes a child of this one */
    s.rng.state = (uint64_t)seed;
    s.told.once = true;
    struct buf db;
    buf_init(&db);
    buf_addf(&db, "%s/results.db", dir);
    s.db = buf_detach(&db);
    lane_init(&s.steady, argv[1], dir, "steady");
    lane_init(&s.faulty, argv[1], dir, "faulty");
    s.account.planted = argc < 5;
    if (s.account.planted)
        lane_plant(&s.faulty);
    s.start_s = s.told_s = clock_seconds();
    s.end_s = s.start_s + hours * 3600;
    start_steady(&s);
    signal(SIGINT, set_stop);
    signal(SIGTERM, set_stop);
    for (; clock_seconds() < s.end_s && s.faulty.runs <= searches && stop == 0; poll(NULL, 0, 20))
        tick(&s);
    finish(&s);
    summarize(&s);
    account_release(&s.account);
    lane_release(&s.steady);
    lane_release(&s.faulty);
    samples_release(&s.samples);
    free(s.db);
    if (s.account.complaints == 0)
        file_remove_all(dir, &st);
    free(dir);
    return s.account.complaints > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
