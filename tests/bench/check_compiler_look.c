/* The first look at a compiler: killed, talkative, and one that hangs. */
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

/* Whatever else is printed beside the version. */
START_TEST(compiler_is_named_by_its_own_macros)
{
    struct bench_options o = small_options(test_path("cache"));
    char expected[64];
    snprintf(expected, sizeof(expected), "gcc %d.%d.%d", __GNUC__, __GNUC_MINOR__,
             __GNUC_PATCHLEVEL__);
    OK(look("#!/bin/sh\n[ \"$1\" = --version ] && echo Killed 1.2\nexec gcc \"$@\"\n", &o));
    ck_assert_str_eq(bench_fingerprint(b)->compiler, expected);
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

SUITE("bench/compiler_look", test_dir_setup, teardown, ONCE(compiler_is_named_by_its_own_macros),
      LOOP(first_look_survives_a_kill, 0, ARRAY_LEN(first_looks)),
      LOOP(interrupt_ends_the_first_look, 0, 2))
