/* Compilers beside the device, on the fake GPU, and the limit of bench_limit(). */
#include "bench/bench_int.h"
#include "tests/bench/gpu_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* A compiler that notes its priority in test_dir/started, then runs `script`. */
static void write_slow_nvcc(const char *script)
{
    char text[1024];
    snprintf(
        text, sizeof(text),
        "#!/bin/sh\n"
        "[ \"$1\" = --version ] && { echo 'Cuda compilation tools, release 13.0, V0'; exit; }\n"
        "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
        "if grep -q segment_ \"$1\"; then nice >>'%s'/started\n%s\nfi\n"
        "cp '%s'/code \"$out\"\n",
        test_dir, script, test_dir);
    write_script(test_path("nvcc"), text);
}

static int started(void)
{
    int lines = 0;
    for (const char *at = text_of("started"); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    return lines;
}

static struct bench_options o;
static struct turn *turn;
static struct bench *b;
static struct choice c[4];
static struct built built[ARRAY_LEN(c)];

static void begin(void)
{
    hide_cublas();
    o = gpu_options();
    o.jobs = 1;
    o.turn = turn;
    b = gpu_bench_of(&o, SEQ_LEN);
    for (int i = 0; i < (int)ARRAY_LEN(c); i++)
        c[i] = gpu_choice(b, 8 + i, 8 + i);
}

TEST(the_oracle_works_before_compilers_do)
{
    begin();
    ck_assert(client_works(&b->client));
    ck_assert(!b->client.opened);
}

/* Compilers that begin after the device is open, as where the first plan is cached, leave it. */
TEST(device_is_opened_once)
{
    begin();
    OK(session_start_worker(b, &st));
    ck_assert(b->client.opened);
    ck_assert(isfinite(b->limits.bytes_per_s));
    b->limits.bytes_per_s = NAN; /* the worker says it when it opens */
    write_slow_nvcc("");
    OK(bench_build_some(b, c, 1, 0, INFINITY, built, &st));
    ck_assert_int_eq(started(), 1);
    ck_assert(isnan(b->limits.bytes_per_s));
}

/* With one compiler at a time the third one starts when the second has ended: while the first
 * segment is timed, for nobody asks for more. */
TEST(compilers_start_while_the_device_works)
{
    begin();
    write_slow_nvcc("");
    OK(bench_build_some(b, c, 4, 0, INFINITY, built, &st));
    ck_assert(bench_builds_beside(b));
    ck_assert(built[0].done);
    ck_assert_int_eq(built[0].status.code, STATUS_OK);
    ck_assert(!built[3].done);
    while (started() < 4) {
        struct trial t;
        OK(bench_segment(b, &c[0], false, &sampling_search, &t, &st));
        check_ok(&t);
    }
    OK(bench_build_some(b, c + 3, 1, 0, INFINITY, built, &st));
    ck_assert(built[0].done);
    ck_assert_int_eq(started(), 4);
    bench_close(b);
}

/* The compiler of operator 9 ends when all four have started. */
TEST(compilers_start_while_the_last_of_a_plan_is_waited_for)
{
    char script[256];
    begin();
    bench_close(b);
    o.jobs = 2;
    b = gpu_bench_of(&o, SEQ_LEN);
    snprintf(script, sizeof(script),
             "if grep -q '9 layernorm1' \"$1\"; then\n"
             "  while [ \"$(wc -l <'%s'/started)\" -lt 4 ]; do sleep 0.01; done\n"
             "fi",
             test_dir);
    write_slow_nvcc(script);
    OK(bench_build_some(b, c, 2, 2, INFINITY, built, &st));
    ck_assert(built[0].done && !built[1].done);
    OK(bench_build(b, c, 2, NULL, &st));
    ck_assert_int_eq(started(), 4);
    bench_close(b);
}

/* The device waits for the first ones.  Later ones run beside it. */
TEST(first_compilers_are_urgent)
{
    const int own = getpriority(PRIO_PROCESS, 0), later = own > 10 ? own : 10;
    char expected[32];
    struct trial t;
    begin();
    write_slow_nvcc("");
    OK(bench_build_some(b, c, 1, 1, INFINITY, built, &st));
    OK(bench_segment(b, &c[0], false, &sampling_search, &t, &st));
    check_ok(&t);
    OK(bench_build(b, c, 3, NULL, &st));
    snprintf(expected, sizeof(expected), "%d\n%d\n%d\n", own, later, later);
    ck_assert_str_eq(text_of("started"), expected);
    bench_close(b);
}

/* The worker says the device's rates when it has opened it: beside the first compiler, unless
 * another process times there. */
TEST(device_is_opened_beside_a_compiler)
{
    for (int busy = 0; busy < 2; busy++) {
        begin();
        write_slow_nvcc("");
        struct lock_device device = {{TARGET_CUDA, 0}, bench_fingerprint(b)->uuid};
        struct lock_wait wait = {.limit_s = INFINITY};
        int lock = -1;
        if (busy != 0)
            OK(lock_take(device, LOCK_TO_TIME, &wait, &lock, &st));
        ck_assert(isnan(bench_limits(b).bytes_per_s));
        OK(bench_build_some(b, c + busy, 1, 0, INFINITY, built, &st));
        ck_assert_int_eq(isnan(bench_limits(b).bytes_per_s), busy);
        lock_drop(lock);
        bench_close(b);
    }
}

/* What is built ahead, and long done, does not count. */
TEST(one_that_is_wanted_now_is_waited_for)
{
    begin();
    OK(bench_build(b, c + 1, 3, NULL, &st));
    write_slow_nvcc("sleep 0.1");
    OK(bench_build_some(b, c, 1, 3, INFINITY, built, &st));
    ck_assert(built[0].done && built[3].done);
    bench_close(b);
}

TEST(some_may_be_none_in_time)
{
    begin();
    write_slow_nvcc("sleep 60");
    double start = clock_seconds();
    OK(bench_build_some(b, c, 4, 0, 0.1, built, &st));
    ck_assert(!built[0].done && !built[3].done);
    ck_assert_double_lt(clock_seconds() - start, 30);
    bench_close(b);
}

TEST(the_limit_ends_building)
{
    struct trial t;
    begin();
    write_slow_nvcc("sleep 60");
    double start = clock_seconds();
    bench_limit(b, 0.2);
    FAILS(bench_segment(b, &c[0], false, &sampling_search, &t, &st), STATUS_TIMEOUT,
          "limit is over");
    ck_assert_double_lt(clock_seconds() - start, 30);
    bench_close(b);
}

/* That is not the candidate's fault: it is not stored as failed. */
TEST(the_limit_ends_the_workers_work)
{
    struct trial t;
    begin();
    gpu_build(b, &c[0], "fake hang\n");
    bench_limit(b, 0.5);
    FAILS(bench_segment(b, &c[0], false, &sampling_search, &t, &st), STATUS_TIMEOUT,
          "limit is over");
    bench_close(b);
}

/* A session whose turn comes once so many kernels are built; 0: never.  Returns the other end. */
static int begin_before_turn(int kernels)
{
    static struct turn of_session;
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    of_session = (struct turn){ends[0], true};
    turn = &of_session;
    begin();
    write_slow_nvcc("");
    write_text(test_path("started"), "");
    pid_t parent = getpid(), other = kernels > 0 ? fork() : -1;
    while (other == 0 && getppid() == parent && started() < kernels)
        usleep(1000);
    if (other == 0) {
        shutdown(ends[1], SHUT_WR);
        _exit(0);
    }
    return ends[1];
}

TEST(a_session_builds_before_its_turn)
{
    struct trial t;
    char said;
    int giver = begin_before_turn(4);
    ck_assert(bench_waits(b));
    OK(bench_take_turn(b, c, 4, &st));
    ck_assert(!bench_waits(b));
    ck_assert_str_eq(text_of("started"), "19\n19\n19\n19\n");
    ck_assert(client_works(&b->client));
    ck_assert(!b->client.opened);
    OK(bench_segment(b, &c[0], false, &sampling_search, &t, &st));
    check_ok(&t);
    while (recv(giver, &said, 1, MSG_DONTWAIT) > 0)
        ;
    ck_assert_int_eq(errno, EAGAIN);
    OK(bench_build_some(b, NULL, 0, 0, 0, NULL, &st));
    ck_assert_int_eq(recv(giver, &said, 1, MSG_DONTWAIT), 1);
    bench_end_turn(b);
    ck_assert_int_eq(recv(giver, &said, 1, MSG_DONTWAIT), 0);
    ck_assert(!client_works(&b->client));
    bench_close(b);
}

static volatile sig_atomic_t stopped;

static void note_stop(int number)
{
    (void)number;
    stopped = 1;
}

/* It says when all is built. */
TEST(waiting_for_a_turn_can_be_interrupted)
{
    char said;
    int giver = begin_before_turn(0);
    pid_t parent = getpid(), other = fork();
    if (other == 0) {
        bool lent = recv(giver, &said, 1, 0) == 1 && started() == 4;
        kill(parent, lent ? SIGUSR1 : SIGKILL);
        _exit(0);
    }
    signal(SIGUSR1, note_stop);
    b->stop = &stopped;
    FAILS(bench_take_turn(b, c, 4, &st), STATUS_INTERRUPTED, "interrupted");
    ck_assert(bench_waits(b));
    bench_close(b);
}

/* A turn that has come: nothing is built by others' leave. */
TEST(a_turn_that_has_come_is_taken_at_once)
{
    int giver = begin_before_turn(0);
    shutdown(giver, SHUT_WR);
    OK(bench_take_turn(b, c, 4, &st));
    ck_assert(!bench_waits(b));
    ck_assert_int_eq(started(), 0);
    bench_close(b);
}

SUITE("beside", gpu_setup, test_dir_teardown)
