/* How a worker ends, what ends with it, and whose fault its end is. */
#include "tests/bench/fixture.h"
#include "tests/processes.h"

#include "bench/bench_int.h"

#include <sys/wait.h>

static struct bench *faulty_bench(double run_deadline_s)
{
    write_faulty_compiler(test_dir);
    struct bench_options o = small_options(test_path("cache"));
    o.compiler = test_path("compiler");
    o.run_deadline_s = run_deadline_s;
    return small_bench(&o);
}

/* Plants a body in which `path` is that of the test's file. */
static void plant(const char *body)
{
    char text[1024];
    snprintf(text, sizeof(text), "{ static const char path[] = \"%s\"; (void)path; %s }",
             test_path("file"), body);
    write_text(test_path("faults/14_14.c"), text);
}

/* ---- death ----------------------------------------------------------------------------------- */

/* A worker that was killed while it had nothing to do leaves the next candidate both of
 * its tries. */
TEST(idle_workers_death_counts_for_nobody)
{
    SCOPED_BY(bench_close_at) struct bench *b = faulty_bench(10);
    OK(session_start_worker(b, &st));
    kill(program_of(b->client.process.pid), SIGKILL);
    while (pid_state(b->client.process.pid) != 'Z')
        usleep(1000);
    plant("if (access(path, F_OK) != 0) { fclose(fopen(path, \"w\")); abort(); } honest(a);");
    struct trial t = segment_trial(b, 14, 14);
    check_ok(&t);
}

/* What a worker gives back at its end the session does not wait for, and another one may follow. */
TEST(worker_ends_beside_the_session)
{
    SCOPED_BY(bench_close_at) struct bench *b = faulty_bench(10);
    OK(session_start_worker(b, &st));
    pid_t first = b->client.process.pid;
    bench_end_turn(b);
    while (pid_state(first) != 'Z') /* a child that is not waited for */
        usleep(1000);
    plant("honest(a);");
    struct trial t = segment_trial(b, 14, 14);
    check_ok(&t);
    ck_assert_int_ne(b->client.process.pid, first);
    bench_end_turn(b);
    bench_end_turn(b);
}

/* Nor is the search at its end if one is killed before it has answered for the first time. */
TEST(worker_is_started_twice)
{
    char text[512];
    snprintf(text, sizeof(text),
             "#!/bin/sh\n"
             "[ \"$1\" = --serve ] && mkdir '%s' && kill -9 $$\n"
             "exec '%s' \"$@\"\n",
             test_path("started"), FUSEPLAN_WORKER);
    write_script(test_path("worker"), text);
    struct bench_options o = small_options(test_cache());
    o.worker_path = test_path("worker");
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
    struct trial t = segment_trial(b, 14, 14);
    check_ok(&t);
}

/* A worker that others end in two tries running, as the system does where memory is short, says
 * nothing about the candidate.  One that ends by itself does, and so does one that could have sent
 * itself the signal. */
static const struct {
    int signal, times;
    bool sandboxed;
    const char *says; /* null: the candidate is measured */
    enum status_code code;
} kills[] = {
    {SIGKILL, 1, true, NULL, STATUS_OK},
    {SIGKILL, 2, true, "the worker was ended from outside twice; is memory", STATUS_ENVIRONMENT},
    {SIGTERM, 2, true, "14-14 (generated): the worker ended with SIGTERM", STATUS_ENVIRONMENT},
    {SIGABRT, 2, true, "SIGABRT", STATUS_LAUNCH},
    {SIGKILL, 2, false, "SIGKILL", STATUS_LAUNCH},
};

static struct {
    const struct bench *bench;
    int signal, left;
} killer;

/* The worker says what it does next. */
static void kill_worker(void *ctx, const struct step *step)
{
    if (strncmp(step->phase, "verifying", 9) != 0 || killer.left == 0)
        return;
    killer.left--;
    if (killer.left == 0)
        unsetenv("FAKE_HANG"); /* of the worker that follows */
    kill(program_of(killer.bench->client.process.pid), killer.signal);
}

TEST_LOOP(kill_from_outside_is_nobodys_failure, 0, ARRAY_LEN(kills))
{
    write_faulty_compiler(test_dir);
    if (kills[_i].sandboxed)
        unsetenv("FUSEPLAN_SANDBOX");
    if (kills[_i].sandboxed && (sandbox_try() & SANDBOX_CALLS) == 0)
        return; /* nobody can tell then */
    plant("while (getenv(\"FAKE_HANG\") != NULL) pause(); honest(a);");
    setenv("FAKE_HANG", "", 1);
    struct bench_options o = small_options(test_path("cache"));
    o.compiler = test_path("compiler");
    o.listener = (struct listener){.report = kill_worker};
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
    killer.bench = b;
    killer.signal = kills[_i].signal;
    killer.left = kills[_i].times;
    struct choice c = choice_of(14, 14);
    struct sampling once = {.max_samples = 0};
    struct trial t;
    st = STATUS_INIT;
    int result = bench_segment(b, &c, false, &once, &t, &st);
    ck_assert_int_eq(killer.left, 0);
    ck_assert_msg(st.code == (result != 0 ? kills[_i].code : STATUS_OK), "%s", st.message);
    ck_assert_int_eq(result != 0, kills[_i].code == STATUS_ENVIRONMENT);
    if (result != 0)
        ck_assert_msg(strstr(st.message, kills[_i].says) != NULL, "%s", st.message);
    else if (kills[_i].says != NULL)
        check_failed(&t, kills[_i].code, kills[_i].says);
    else
        check_ok(&t);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* ---- when it starts -------------------------------------------------------------------------- */

/* ---- what it leaves -------------------------------------------------------------------------- */

/* A grandchild of the first call, in a session of its own, which writes its number. */
#define DAEMON                                                                                     \
    "static int calls; if (calls++ == 0 && fork() == 0) { setsid(); if (fork() != 0) _exit(0);"    \
    "  FILE *f = fopen(path, \"w\"); fprintf(f, \"%d.\", (int)getpid()); fclose(f);"               \
    "  for (;;) pause(); }"

TEST(daemon_of_a_candidate_ends_with_its_worker)
{
    SCOPED_BY(bench_close_at) struct bench *b = faulty_bench(10);
    plant(DAEMON " honest(a);");
    struct trial t = segment_trial(b, 14, 14);
    trial_release(&t);
    pid_t left = pid_written(test_path("file"));
    ck_assert_int_ne(pid_state(left), 'X');
    client_stop(&b->client);
    ck_assert(pid_ends(left));
}

/* Also where the search is killed with SIGKILL.  _i: it is a compiler's child. */
TEST_LOOP(all_that_runs_ends_with_the_search, 0, 2)
{
    pid_t search = fork();
    if (search == 0) {
        struct bench *b = faulty_bench(60);
        char text[512];
        snprintf(text, sizeof(text), "sh -c 'echo $$. >\"%s\"; exec sleep 60'; exit 1\n",
                 test_path("file"));
        if (_i == 1)
            write_text(test_path("faults/14_14.sh"), text);
        plant(DAEMON " for (;;) pause();");
        segment_trial(b, 14, 14);
        _exit(1);
    }
    pid_t left = pid_written(test_path("file"));
    ck_assert_int_ne(pid_state(left), 'X');
    kill(search, SIGKILL);
    waitpid(search, NULL, 0);
    ck_assert(pid_ends(left));
}

SUITE("worker life", test_dir_setup, test_dir_teardown)
