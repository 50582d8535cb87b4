/* Compilers that fail for a reason of the machine's: some other program, or a lack, stopped them.
 */
#include "tests/bench/fixture.h"

#include <signal.h>
#include <sys/resource.h>

static struct status st; /* of the call that a test is about */
static struct bench *bench;

/* One compiler for the whole suite, whose probe is built once.  It runs a script of the test, and
 * writes a binary that nobody loads. */
static char shared_dir[64], compiler[80];

static struct bench *open_at(const char *dir)
{
    char cache[80];
    snprintf(cache, sizeof(cache), "%s/cache", dir);
    struct bench_options o = small_options(cache);
    o.compiler = compiler;
    set_faults(dir);
    return small_bench(&o);
}

static void shared_setup(void)
{
    strcpy(shared_dir, "/tmp/fuseplan-check-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(shared_dir));
    snprintf(compiler, sizeof(compiler), "%s/compiler", shared_dir);
    write_script(compiler,
                 "#!/bin/sh\n"
                 "for arg; do case $arg in *.c) src=$arg;; *.so) out=$arg;; esac; done\n"
                 "[ -n \"$src\" ] || exec cc \"$@\"\n"
                 "key=$(sed -n 's/^void segment_\\(..\\)_\\(..\\)_.*/\\1_\\2/p' \"$src\")\n"
                 "[ -n \"$key\" ] || exec cc \"$@\"\n"
                 "fault=$FUSEPLAN_TEST_FAULTS/$key.sh\n"
                 "[ ! -f \"$fault\" ] || . \"$fault\"\n"
                 "echo built >\"$out\"\n");
    bench_close(open_at(shared_dir));
}

static void shared_teardown(void)
{
    file_remove_all(shared_dir, &st);
}

static void setup(void)
{
    char copy[256];
    test_dir_setup();
    snprintf(copy, sizeof(copy), "cp -r '%s/cache' '%s'", shared_dir, test_dir);
    ck_assert_int_eq(system(copy), 0);
    bench = open_at(test_dir);
}

static void teardown(void)
{
    bench_close(bench);
    test_dir_teardown();
}

/* Runs before segment 8-9 is compiled, and notes that it was: a byte a time. */
static void plant(const char *script)
{
    char text[1024];
    snprintf(text, sizeof(text), "tries=%s/tries\nprintf x >>\"$tries\"\n%s\n", test_dir, script);
    write_text(test_path("faults/08_09.sh"), text);
}

static size_t tries(void)
{
    struct buf text;
    buf_init(&text);
    OK(file_read(test_path("tries"), 0, &text, &st));
    size_t count = text.len;
    buf_release(&text);
    return count;
}

#define FIRST_TIME "[ $(wc -c <\"$tries\") -gt 1 ] || "

/* What compilers do when they are killed, when a program that they started is, and when they find
 * no room; the last one gives no reason. */
static const char *const failures[] = {
    "kill -KILL $$",
    "kill -TERM $$",
    "{ echo 'cc: fatal error: Killed signal terminated program cc1' >&2; exit 1; }",
    "{ echo 'collect2: fatal error: ld terminated with signal 9 [Killed]' >&2; exit 1; }",
    "{ echo \"nvcc error   : 'cicc' died due to signal 15\" >&2; exit 15; }",
    "{ echo '/tmp/cc.s: error: error writing: No space left on device' >&2; exit 1; }",
    "{ echo 'as: cannot write: File too large' >&2; exit 1; }",
    "exit 1",
};

START_TEST(one_failure_is_nobodys)
{
    char script[512];
    struct status result;
    struct choice c = choice_of(8, 9);
    snprintf(script, sizeof(script), FIRST_TIME "%s", failures[_i]);
    plant(script);
    OK(bench_build(bench, &c, 1, &result, &st));
    ck_assert_msg(result.code == STATUS_OK, "%s", result.message);
    ck_assert_uint_eq(tries(), 2);
}
END_TEST

/* The machine's failure says nothing about the candidate even if it repeats: all but the last. */
START_TEST(two_failures_of_the_machine_end_the_work)
{
    struct status result;
    struct choice c = choice_of(8, 9);
    plant(failures[_i]);
    FAILS(bench_build(bench, &c, 1, &result, &st), STATUS_ENVIRONMENT, "failed twice");
    ck_assert_uint_eq(tries(), 2);
    unlink(test_path("faults/08_09.sh"));
    OK(bench_build(bench, &c, 1, &result, &st));
    ck_assert_msg(result.code == STATUS_OK, "%s", result.message);
}
END_TEST

START_TEST(two_failures_without_a_reason_are_the_candidates)
{
    struct status results[3];
    struct choice c[] = {choice_of(8, 9), choice_of(14, 14), choice_of(8, 9)};
    plant("echo 'no_such_variable undeclared' >&2; exit 1");
    OK(bench_build(bench, c, 3, results, &st));
    ck_assert_int_eq(results[0].code, STATUS_COMPILE);
    ck_assert_ptr_nonnull(strstr(results[0].message, "no_such_variable"));
    ck_assert_int_eq(results[1].code, STATUS_OK);
    ck_assert_int_eq(results[2].code, STATUS_COMPILE);
    ck_assert_uint_eq(tries(), 2);
    struct trial t = segment_trial(bench, 8, 9);
    check_failed(&t, STATUS_COMPILE, "segment 8-9");
}
END_TEST

/* A second try ends with the time that is left, and nothing is known then. */
START_TEST(second_try_keeps_the_limit)
{
    struct choice c = choice_of(8, 9);
    plant(FIRST_TIME "exit 1; [ $(wc -c <\"$tries\") -gt 2 ] || exec sleep 54321");
    double start = clock_seconds();
    bench_limit(bench, 1);
    FAILS(bench_build(bench, &c, 1, NULL, &st), STATUS_TIMEOUT, "");
    ck_assert_double_lt(clock_seconds() - start, 9);
    ck_assert_uint_eq(tries(), 2);
    bench_limit(bench, 60);
    OK(bench_build(bench, &c, 1, NULL, &st));
}
END_TEST

/* A compiler's messages are read, so they come in one language. */
START_TEST(compilers_speak_no_other_language)
{
    struct status result;
    struct choice c = choice_of(8, 9);
    plant("echo \"$LC_ALL\" >\"$tries.locale\"");
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    OK(bench_build(bench, &c, 1, &result, &st));
    struct buf text;
    buf_init(&text);
    OK(file_read(test_path("tries.locale"), 0, &text, &st));
    ck_assert_str_eq(text.ptr, "C\n");
    buf_release(&text);
}
END_TEST

/* What lies in the binary's place: 3 GB, a pipe, a link to a device, nothing. */
static const char *const outputs[][2] = {{"truncate -s 3G \"$out\"; exit 0", "3.0 GiB"},
                                         {"mkfifo \"$out\"; exit 0", "wrote no binary"},
                                         {"ln -s /dev/zero \"$out\"; exit 0", "wrote no binary"},
                                         {"exit 0", "wrote no binary"}};

START_TEST(only_a_binary_is_read)
{
    struct status result;
    struct choice c = choice_of(8, 9);
    plant(outputs[_i][0]);
    OK(bench_build(bench, &c, 1, &result, &st));
    ck_assert_int_eq(result.code, STATUS_COMPILE);
    ck_assert_msg(strstr(result.message, outputs[_i][1]) != NULL, "%s", result.message);
}
END_TEST

/* Compilers write where the next start sweeps, and the system ends them before it ends
 * the search. */
START_TEST(compilers_leave_nothing)
{
    struct status result;
    struct choice c = choice_of(8, 9);
    struct names names;
    struct buf text;
    plant("echo x >\"$TMPDIR/cc.s\"; echo \"$TMPDIR\" >\"$tries.dir\";"
          " cat /proc/self/oom_score_adj >>\"$tries.dir\"");
    setenv("TMPDIR", test_path("elsewhere"), 1);
    OK(bench_build(bench, &c, 1, &result, &st));
    ck_assert_msg(result.code == STATUS_OK, "%s", result.message);
    OK(directory_list(test_path("cache/temporary"), &names, &st));
    ck_assert_int_eq(names.count, 0);
    names_release(&names);
    buf_init(&text);
    OK(file_read(test_path("tries.dir"), 0, &text, &st));
    ck_assert_ptr_nonnull(strstr(text.ptr, test_path("cache/temporary/")));
    ck_assert_ptr_nonnull(strstr(text.ptr, "\n500\n"));
    buf_release(&text);
}
END_TEST

/* OpenBLAS would ask for its memory for ever.  A sanitizer maps terabytes and cannot be limited. */
static rlim_t limit_space(int pieces_of_256_mib, rlim_t less)
{
    const rlim_t bytes = ((rlim_t)pieces_of_256_mib << 28) - less;
    const struct rlimit few = {.rlim_cur = bytes, .rlim_max = bytes};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &few), 0);
    return bytes;
}

START_TEST(small_address_space_is_refused)
{
#ifdef __SANITIZE_ADDRESS__
    return;
#endif
    struct bench_options o = small_options(test_path("cache"));
    struct workload w;
    struct bench *b;
    small_workload(&w);
    const rlim_t bytes = limit_space(cpu_threads() + 1, 1 << 20);
    ck_assert_uint_le(mem_available_bytes(), bytes);
    double start = clock_seconds();
    FAILS(bench_open(&o, &w, &b, &st), STATUS_ENVIRONMENT, "OpenBLAS on");
    ck_assert_ptr_nonnull(strstr(st.message, "'ulimit -v'"));
    ck_assert_double_lt(clock_seconds() - start, 30);
    workload_release(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("bench/compile_faults");
    TCase *t = tcase_create("faults");
    tcase_add_unchecked_fixture(t, shared_setup, shared_teardown);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, one_failure_is_nobodys, 0, (int)ARRAY_LEN(failures));
    tcase_add_loop_test(t, two_failures_of_the_machine_end_the_work, 0,
                        (int)ARRAY_LEN(failures) - 1);
    tcase_add_test(t, two_failures_without_a_reason_are_the_candidates);
    tcase_add_test(t, second_try_keeps_the_limit);
    tcase_add_test(t, compilers_speak_no_other_language);
    tcase_add_loop_test(t, only_a_binary_is_read, 0, (int)ARRAY_LEN(outputs));
    tcase_add_test(t, compilers_leave_nothing);
    tcase_add_test(t, small_address_space_is_refused);
    suite_add_tcase(s, t);
    return suite_run(s);
}
