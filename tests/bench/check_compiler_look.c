/* The first look at a compiler: killed, talkative, without a version, and one that hangs. */
#include "tests/bench/fixture.h"

#include <signal.h>

static struct status st; /* of the call that a test is about */
static struct bench *b;  /* null: it could not be opened */

/* Opens a session that runs the script test_dir/tool in the compiler's place. */
static int look(const char *script, struct bench_options *o)
{
    struct workload w;
    o->compiler = test_path("tool");
    write_script(o->compiler, script);
    small_workload(&w);
    st = STATUS_INIT;
    int result = bench_open(o, &w, &b, &st);
    workload_release(&w);
    return result;
}

static void teardown(void)
{
    bench_close(b);
    test_dir_teardown();
}

/* The compiler is asked for its version, builds a probe, and a worker runs that: each may be killed
 * once by another program. */
static const char *const first_looks[] = {"--version", "*.so", "--probe"};

START_TEST(first_look_survives_a_kill)
{
    char text[1024];
    snprintf(text, sizeof(text),
             "#!/bin/sh\n"
             "for arg; do case $arg in %s) mkdir '%s' 2>/dev/null && kill -9 $$ ;; esac; done\n"
             "case $1 in --probe) exec '%s' \"$@\" ;; *) exec cc \"$@\" ;; esac\n",
             first_looks[_i], test_path("killed"), FUSEPLAN_WORKER);
    struct bench_options o = small_options(test_path("new cache"));
    o.worker_path = test_path("tool");
    OK(look(text, &o));
    ck_assert(file_exists(test_path("killed")));
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
    struct bench_options o = small_options(test_path("cache"));
    snprintf(text, sizeof(text), "#!/bin/sh\n[ \"$1\" = --version ] || exec cc \"$@\"\n%s\n",
             versions[_i][0]);
    OK(look(text, &o));
    ck_assert_str_eq(bench_fingerprint(b)->compiler, versions[_i][1]);
}
END_TEST

START_TEST(compiler_without_a_version_is_refused)
{
    struct bench_options o = small_options(test_path("cache"));
    FAILS(look("#!/bin/sh\necho Killed\n", &o), STATUS_ENVIRONMENT,
          "does not say which version it is");
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
    char hangs[128];
    struct bench_options o = small_options(test_path("cache"));
    snprintf(hangs, sizeof(hangs),
             "#!/bin/sh\n"
             "[ \"$1\" %s --version ] || exec cc \"$@\"\n"
             "kill -USR1 %ld; exec sleep 54321\n",
             _i == 0 ? "=" : "!=", (long)getpid());
    o.stop = &stop;
    signal(SIGUSR1, set_stop);
    double start = clock_seconds();
    FAILS(look(hangs, &o), STATUS_INTERRUPTED, "");
    ck_assert_double_lt(clock_seconds() - start, 9);
}
END_TEST

SUITE("bench/compiler_look", test_dir_setup, teardown,
      LOOP(version_is_found_among_other_lines, 0, ARRAY_LEN(versions)),
      ONCE(compiler_without_a_version_is_refused),
      LOOP(first_look_survives_a_kill, 0, ARRAY_LEN(first_looks)),
      LOOP(interrupt_ends_the_first_look, 0, 2))
