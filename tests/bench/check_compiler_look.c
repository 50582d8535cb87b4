/* The first look at a compiler: killed, talkative, without a version, and one that hangs. */
#include "tests/bench/fixture.h"

#include <signal.h>

static struct status st; /* of the call that a test is about */

/* The compiler is asked for its version, builds a probe, and a worker runs that: each may be killed
 * once by another program. */
static const char *const first_looks[] = {"--version", "*.so", "--probe"};

START_TEST(first_look_survives_a_kill)
{
    char text[1024];
    struct workload w;
    struct bench *b;
    snprintf(text, sizeof(text),
             "#!/bin/sh\n"
             "for arg; do case $arg in %s) mkdir '%s' 2>/dev/null && kill -9 $$ ;; esac; done\n"
             "case $1 in --probe) exec '%s' \"$@\" ;; *) exec cc \"$@\" ;; esac\n",
             first_looks[_i], test_path("killed"), FUSEPLAN_WORKER);
    write_script(test_path("tool"), text);
    struct bench_options o = small_options(test_path("new cache"));
    o.compiler = o.worker_path = test_path("tool");
    small_workload(&w);
    OK(bench_open(&o, &w, &b, &st));
    ck_assert(file_exists(test_path("killed")));
    bench_close(b);
    workload_release(&w);
}
END_TEST

/* What a compiler prints, or the shell that runs it, and the version by which times are kept. */
static const char *const versions[][2] = {
    {"echo 'cc (Debian 12.2.0-14) 12.2.0'", "gcc 12.2.0"},
    {"echo 'gcc (GCC) 14.0.1 20240411 (experimental)'", "gcc 14.0.1"},
    {"echo 'Debian clang version 14.0.6'; echo 'Target: x86_64-pc-linux-gnu'", "clang 14.0.6"},
    {"echo Killed; echo 'cc (Debian 12.2.0-14) 12.2.0'", "gcc 12.2.0"},
    {"echo 'sh: warning: setlocale: LC_ALL: cannot change locale (C.UTF-9)' >&2;"
     " echo 'clang version 17.0.0'",
     "clang 17.0.0"},
};

START_TEST(version_is_found_among_other_lines)
{
    char text[512];
    struct workload w;
    struct bench *b;
    snprintf(text, sizeof(text), "#!/bin/sh\n[ \"$1\" = --version ] || exec cc \"$@\"\n%s\n",
             versions[_i][0]);
    write_script(test_path("tool"), text);
    struct bench_options o = small_options(test_path("cache"));
    o.compiler = test_path("tool");
    small_workload(&w);
    OK(bench_open(&o, &w, &b, &st));
    ck_assert_str_eq(bench_fingerprint(b)->compiler, versions[_i][1]);
    bench_close(b);
    workload_release(&w);
}
END_TEST

START_TEST(compiler_without_a_version_is_refused)
{
    struct workload w;
    struct bench *b;
    write_script(test_path("tool"), "#!/bin/sh\necho Killed\n");
    struct bench_options o = small_options(test_path("cache"));
    o.compiler = test_path("tool");
    small_workload(&w);
    FAILS(bench_open(&o, &w, &b, &st), STATUS_ENVIRONMENT, "does not say which version it is");
    workload_release(&w);
}
END_TEST

static volatile sig_atomic_t stop;

static void set_stop(int signal)
{
    (void)signal;
    stop = 1;
}

/* A compiler that hangs when it is first looked at keeps nobody waiting. */
START_TEST(interrupt_ends_the_first_look)
{
    struct workload w;
    struct bench *b;
    char hangs[128];
    snprintf(hangs, sizeof(hangs),
             "#!/bin/sh\n"
             "[ \"$1\" %s --version ] || exec cc \"$@\"\n"
             "kill -USR1 %ld; exec sleep 54321\n",
             _i == 0 ? "=" : "!=", (long)getpid());
    write_script(test_path("compiler"), hangs);
    struct bench_options o = small_options(test_path("cache"));
    o.compiler = test_path("compiler");
    o.stop = &stop;
    small_workload(&w);
    signal(SIGUSR1, set_stop);
    double start = clock_seconds();
    FAILS(bench_open(&o, &w, &b, &st), STATUS_INTERRUPTED, "");
    ck_assert_double_lt(clock_seconds() - start, 9);
    workload_release(&w);
}
END_TEST

SUITE("bench/compiler_look", test_dir_setup, test_dir_teardown,
      LOOP(version_is_found_among_other_lines, 0, ARRAY_LEN(versions)),
      ONCE(compiler_without_a_version_is_refused),
      LOOP(first_look_survives_a_kill, 0, ARRAY_LEN(first_looks)),
      LOOP(interrupt_ends_the_first_look, 0, 2))
