/* kills FUSEPLAN DIR COUNT [SEED]: kills fuseplan, its workers and its compilers, so many in all.
 *
 * A search of one small workload after the other runs in DIR, which must be empty.  A victim and a
 * moment are drawn, and it gets SIGKILL.  A search that was killed is run again.  A search whose
 * worker or compiler was killed goes on, and nobody else of it is killed before it has stored two
 * more trials: a second death in a row would be the candidate's.  Of many kills none is at the
 * first workload, which compiles all segments: else most would hit that.
 *
 * SIGINT and SIGTERM end it before its time, with all that it judges at its end.
 *
 * Exit 1 if a trial is lost, doubled or failed, if a search ends for the death of a worker or a
 * compiler, if anything is left running 2 s after it, or a file after the next start. */
#include "tests/soak/soak.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOWEST_S 4. /* the latest moment drawn */
#define JITTER_S  0.1

static const char *const victims[] = {"fuseplan", "worker", "compiler"};
enum { FUSEPLAN, WORKER, COMPILER, VICTIMS };

/* Phases of a search as its events name them; at the start there is none. */
static const char *const phases[] = {"start", "baselines", "segments", "schedules",
                                     "plans", "finals",    "model",    "other"};
enum { PHASES = ARRAY_LEN(phases), MANY = 100 };

struct kills {
    struct rng rng;
    struct account account;
    struct lane lane;
    struct report told;
    struct names left; /* temporary files, right after a search was killed */
    char *db;
    int seq_len, untold, done;
    int victim;                   /* -1: none is drawn */
    double when_s;                /* the next kill is at this moment, */
    int64_t after;                /* or once so many trials are stored */
    int64_t trials_then;          /* stored when the last one was killed */
    bool fuseplan_killed, spared; /* spared: the first workload, which compiles everything */
    int counts[PHASES][VICTIMS], killed;
};

static volatile sig_atomic_t stop;

static void set_stop(int number)
{
    (void)number;
    stop = 1;
}

/* The phase that the last step event names. */
static int phase_now(struct kills *k)
{
    struct buf text;
    struct status ignored = STATUS_INIT;
    const char *phase = NULL;
    size_t found = 0;
    buf_init(&text);
    file_read(lane_path(&k->lane, "events"), 0, &text, &ignored);
    for (const char *at = text.ptr; (at = strstr(at, "\"event\":\"step\"")) != NULL; at++)
        phase = strstr(at, "\"phase\":\"");
    while (phase != NULL && found < PHASES - 1 &&
           strncmp(phase + strlen("\"phase\":\""), phases[found], strlen(phases[found])) != 0)
        found++;
    buf_release(&text);
    return (int)found;
}

static void list_left(struct kills *k, struct names *out)
{
    struct status st = STATUS_INIT;
    if (directory_list(lane_path(&k->lane, "cache/temporary"), out, &st) != 0)
        give_up("%s", st.message);
    if (files_below(lane_path(&k->lane, "tmp")) > 0)
        names_add(out, "TMPDIR");
}

/* Once a search has begun its work, what an earlier one left must be gone. */
static void expect_swept(struct kills *k)
{
    struct names now;
    if (k->left.count == 0 || !lane_began(&k->lane))
        return;
    list_left(k, &now);
    for (int i = 0; i < k->left.count; i++)
        if (names_have(&now, k->left.items[i]))
            complain(&k->account, "the next start left '%s'", k->left.items[i]);
    names_release(&now);
    names_release(&k->left);
    k->left = (struct names){0};
}

/* So that there are compilers to kill. */
static void lose_binaries(struct kills *k)
{
    enum { ONE_IN = 100 };
    struct names names;
    struct status st = STATUS_INIT;
    if (directory_list(lane_path(&k->lane, "cache/binaries"), &names, &st) != 0)
        return;
    for (int i = 0; i < names.count; i++) {
        struct buf path;
        buf_init(&path);
        buf_addf(&path, "%s/%s", lane_path(&k->lane, "cache/binaries"), names.items[i]);
        if (rng_below(&k->rng, ONE_IN) == 0)
            unlink(path.ptr);
        buf_release(&path);
    }
    names_release(&names);
}

static void start(struct kills *k)
{
    enum { SHORTEST = 8 };
    struct buf text;
    buf_init(&text);
    lose_binaries(k);
    unlink(lane_path(&k->lane, "events"));
    k->seq_len = SHORTEST + k->done;
    buf_addf(&text, "search -q --target cpu -b 1 -s %d -H 1 -W 4 -L 1 --budget 24 --events %s",
             k->seq_len, lane_path(&k->lane, "events"));
    k->trials_then = -APART; /* nobody of this search is dead */
    lane_start(&k->lane, text.ptr, (struct lack){.resource = -1});
    buf_release(&text);
}

/* After the end of a search, for whatever reason. */
static void settle(struct kills *k, int expected_exit)
{
    int status = k->lane.status;
    tasks_expect_end(&k->account, NULL, k->fuseplan_killed ? "a kill" : "its end");
    report_read(&k->account, &k->told, lane_path(&k->lane, "events"));
    account_take(&k->account, k->db);
    report_match(&k->account, &k->told, k->seq_len, 1, k->untold);
    if (k->fuseplan_killed) {
        names_release(&k->left);
        list_left(k, &k->left);
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != expected_exit) {
        complain(&k->account, "a search ended with status 0x%x: %s", status, lane_said(&k->lane));
    } else if (lane_files(&k->lane) > 0) {
        complain(&k->account, "a search left %d files", lane_files(&k->lane));
    }
    if (WIFEXITED(status)) {
        k->done++;
        k->untold = 0;
        k->told = (struct report){.once = true};
    }
    k->fuseplan_killed = false;
}

/* After some more trials and a moment, or after a time, so that it comes while compilers
 * work too. */
static void draw_moment(struct kills *k)
{
    enum { MOST = 40 };
    k->after = k->account.trials + (int64_t)(MOST * pow(rng_unit(&k->rng), 2));
    k->when_s = clock_seconds() + SLOWEST_S * pow(rng_unit(&k->rng), 2);
}

static bool moment_came(struct kills *k)
{
    account_take(&k->account, k->db);
    if (k->account.trials >= k->after) {
        k->when_s = fmin(k->when_s, clock_seconds() + JITTER_S * rng_unit(&k->rng));
        k->after = INT64_MAX;
    }
    return clock_seconds() >= k->when_s;
}

/* One of four times fuseplan, else a compiler where there is one, else the worker; pid 0 if it is
 * not their turn or they are not there. */
static struct task draw_victim(struct kills *k, int *victim)
{
    struct task t = {.pid = k->lane.pid};
    *victim = FUSEPLAN;
    if (rng_below(&k->rng, 4) == 0)
        return t;
    if (k->account.trials < k->trials_then + APART)
        return (struct task){0};
    *victim = COMPILER;
    t = lane_draw(&k->lane, false, &k->rng);
    if (t.pid != 0)
        return t;
    *victim = WORKER;
    return lane_draw(&k->lane, true, &k->rng);
}

/* Kills somebody if the moment has come. */
static void strike(struct kills *k)
{
    if (k->lane.pid == 0 || k->fuseplan_killed || (k->spared && k->done == 0) || !moment_came(k))
        return;
    int victim, phase = phase_now(k);
    struct task t = draw_victim(k, &victim);
    draw_moment(k);
    if (t.pid == 0 || kill(t.pid, SIGKILL) != 0)
        return;
    k->counts[phase][victim]++;
    k->fuseplan_killed = victim == FUSEPLAN;
    k->untold += k->fuseplan_killed;
    account_take(&k->account, k->db); /* those of the meantime do not count */
    if (!k->fuseplan_killed)
        k->trials_then = k->account.trials;
    if (++k->killed % MANY == 0) {
        printf("%d killed\n", k->killed);
        fflush(stdout);
    }
}

static void summarize(const struct kills *k)
{
    printf("%d kills, %lld trials of %d workloads\n%-10s", k->killed, (long long)k->account.trials,
           k->done, "");
    for (int v = 0; v < VICTIMS; v++)
        printf("%10s", victims[v]);
    for (int p = 0; p < PHASES; p++) {
        printf("\n%-10s", phases[p]);
        for (int v = 0; v < VICTIMS; v++)
            printf("%10d", k->counts[p][v]);
    }
    printf("\nall that a search had started was gone %.2f s after it at most\n%d wrong\n",
           k->account.longest_end_s, k->account.complaints);
}

/* A last search sweeps and is interrupted; then the database must be whole. */
static void finish(struct kills *k)
{
    if (k->lane.pid == 0)
        start(k);
    while (!lane_ended(&k->lane) && !lane_began(&k->lane))
        poll(NULL, 0, 5);
    expect_swept(k);
    lane_signal(&k->lane, SIGINT);
    while (!lane_ended(&k->lane))
        poll(NULL, 0, 5);
    bool done = WIFEXITED(k->lane.status) && WEXITSTATUS(k->lane.status) == 0;
    settle(k, done ? 0 : 130);
    account_whole(&k->account);
    lane_start(&k->lane, "db check", (struct lack){.resource = -1});
    while (!lane_ended(&k->lane))
        poll(NULL, 0, 5);
    if (k->lane.status != 0)
        complain(&k->account, "'db check': %s", lane_said(&k->lane));
}

int main(int argc, char **argv)
{
    static struct kills k = {.told = {.once = true}};
    struct status st = STATUS_INIT;
    int64_t count, seed = 0;
    if (argc < 4 || argc > 5 || number_parse("COUNT", argv[3], 1, 1000000, &count, &st) != 0 ||
        (argc == 5 && number_parse("SEED", argv[4], 0, INT64_MAX, &seed, &st) != 0)) {
        fprintf(stderr, "usage: kills FUSEPLAN DIR COUNT [SEED]\n%s\n", st.message);
        return 2;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a search leaves behind becomes a child of this one */
    k.rng.state = (uint64_t)seed;
    k.spared = count >= MANY;
    lane_init(&k.lane, argv[1], argv[2], "killed");
    struct buf db;
    buf_init(&db);
    buf_addf(&db, "%s/results.db", argv[2]);
    k.db = buf_detach(&db);
    signal(SIGINT, set_stop);
    signal(SIGTERM, set_stop);
    for (draw_moment(&k); (k.killed < count && stop == 0) || k.fuseplan_killed; poll(NULL, 0, 2)) {
        if (lane_ended(&k.lane)) {
            if (k.lane.runs > 0)
                settle(&k, 0);
            if (k.killed < count && stop == 0)
                start(&k);
        } else {
            expect_swept(&k);
            strike(&k);
        }
    }
    finish(&k);
    summarize(&k);
    account_release(&k.account);
    lane_release(&k.lane);
    names_release(&k.left);
    free(k.db);
    return k.account.complaints > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
