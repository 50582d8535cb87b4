/* Candidates that crash, hang or lie, planted by a compiler that edits their source, and compilers
 * that fail. */
#include "tests/bench/fixture.h"
#include "tests/held_clock.h"
#include "tests/processes.h"

/* A segment alone: its edited function, and what must become of it. */
static const struct fault {
    int first, last;
    const char *code;
    enum trial_status status;
    enum status_code reason;
    const char *says; /* part of the reason */
} faults[] = {
    {8, 9, "{ abort(); }", TRIAL_FAILED, STATUS_LAUNCH, "SIGABRT"},
    {12, 13, "{ *(volatile int *)8 = 1; }", TRIAL_FAILED, STATUS_LAUNCH, "SIGSEGV"},
    {6, 7, "{ exit(7); }", TRIAL_FAILED, STATUS_LAUNCH, "exit status 7"},
    {10, 11, "{ for (;;) usleep(1000); }", TRIAL_FAILED, STATUS_TIMEOUT, "stopped after"},
    {7, 8, "{ honest(a); a->tensor[9][79] = NAN; }", TRIAL_FAILED, STATUS_WRONG, "inf"},
    {11, 12, "{ honest(a); a->tensor[13][3] *= 1.01f; }", TRIAL_FAILED, STATUS_WRONG, "element 0"},
    {13, 13, "{ }", TRIAL_FAILED, STATUS_WRONG, "inf"}, /* what it did not write is poison */
    {2, 3, "{ static int calls; honest(a); if (++calls > 20) a->tensor[4][0] += 1; }", TRIAL_FAILED,
     STATUS_WRONG, "the segment gives another result than before"},
    /* it finds what lies between its stages poisoned for the fourth time, in the run after timing
     */
    {11, 12,
     "{ static int fresh; fresh += a->tensor[12][0] != a->tensor[12][0]; honest(a);"
     "  if (fresh == 4) a->tensor[13][0] += 1e-6f; }",
     TRIAL_FAILED, STATUS_WRONG, "after timing: segment 11-12"},
    {5, 6,
     "{ for (int i = 0; i < 2000; i++) { puts(\"chatter\"); fputs(\"{\\\"reply\\\": true}\\n\", "
     "stderr); }"
     "  fflush(stdout); honest(a); }",
     TRIAL_OK, STATUS_OK, ""},
    {4, 5, "{ if (write(3, \"garbage\\n\", 8) == 8) honest(a); }", TRIAL_FAILED, STATUS_LAUNCH,
     "a malformed message"},
    {3, 4,
     "{ static const char beat[] = "
     "\"{\\\"event\\\":\\\"doing\\\",\\\"what\\\":\\\"timing\\\"}\\n\";"
     "  while (write(3, beat, sizeof(beat) - 1) > 0) usleep(10000); }",
     TRIAL_FAILED, STATUS_LAUNCH, "or the candidate sent one"},
    {0, 1,
     "{ static const char lie[] = "
     "\"{\\\"reply\\\":true,\\\"code\\\":\\\"ok\\\",\\\"trials\\\":[]}\\n\";"
     "  if (write(3, lie, sizeof(lie) - 1) > 0) pause(); }",
     TRIAL_FAILED, STATUS_LAUNCH, "or the candidate sent one"},
    /* the mask, which the next worker reads too */
    {1, 2,
     "{ for (int fd = 4; fd < 10; fd++) if (write(fd, \"garbage\\n\", 8) < 0) (void)ftruncate(fd, "
     "1);  abort(); }",
     TRIAL_FAILED, STATUS_LAUNCH, "SIGABRT"},
    {9, 10, "{ close(3); honest(a); }", TRIAL_FAILED, STATUS_LAUNCH, "segment 9-10 (generated)"},
};

/* One faulty compiler for the whole suite, whose probe and whose honest segment 14-14 are built
 * once: each test begins with a copy of that cache, and with no faults. */
static char shared_dir[64], compiler[80];

static struct bench_options faulty_options(const char *cache)
{
    struct bench_options o = small_options(cache);
    o.compiler = compiler;
    return o;
}

/* An honest candidate, in a test after a fault. */
static void next_one_works(struct bench *b)
{
    struct trial t = segment_trial(b, 14, 14);
    check_ok(&t);
}

static void shared_setup(void)
{
    char cache[80];
    strcpy(shared_dir, "/tmp/fuseplan-check-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(shared_dir));
    snprintf(compiler, sizeof(compiler), "%s/compiler", shared_dir);
    snprintf(cache, sizeof(cache), "%s/cache", shared_dir);
    write_faulty_compiler(shared_dir);
    struct bench_options o = faulty_options(cache);
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
    next_one_works(b);
}

static struct bench *bench;

/* The candidate that hangs is about to run. */
static void let_clock_go(void *ctx, const struct step *step)
{
    if (strncmp(step->phase, "verifying segment 10-11", 23) == 0)
        clock_await("");
}

static void reopen(double compile_deadline_s, double run_deadline_s)
{
    struct bench_options o = faulty_options(test_path("cache"));
    o.listener = (struct listener){.report = let_clock_go};
    o.compile_deadline_s = compile_deadline_s;
    o.run_deadline_s = run_deadline_s;
    bench_close(bench);
    bench = small_bench(&o);
}

static void setup(void)
{
    char copy[256];
    test_dir_setup();
    set_faults(test_dir);
    snprintf(copy, sizeof(copy), "cp -r '%s/cache' '%s'", shared_dir, test_dir);
    ck_assert_int_eq(system(copy), 0);
    setenv("ASAN_OPTIONS", "handle_segv=0:handle_abort=0", 1); /* the signal itself is expected */
    reopen(0, 0);
}

static void teardown(void)
{
    bench_close(bench);
    test_dir_teardown();
}

static void plant(int first, int last, const char *suffix, const char *text)
{
    char name[64];
    snprintf(name, sizeof(name), "faults/%02d_%02d.%s", first, last, suffix);
    write_text(test_path(name), text);
}

TEST_LOOP(fault_is_told_and_the_next_one_works, 0, ARRAY_LEN(faults))
{
    const struct fault *f = &faults[_i];
    plant(f->first, f->last, "c", f->code);
    clock_await(test_path("never"));
    if (f->reason == STATUS_TIMEOUT)
        reopen(0, 1);
    struct trial t = segment_trial(bench, f->first, f->last);
    clock_await(test_path("never"));
    ck_assert_msg(t.status == f->status, "%d: %s", t.status, t.reason.message);
    ck_assert_msg(t.reason.code == f->reason, "%s", t.reason.message);
    ck_assert_msg(strstr(t.reason.message, f->says) != NULL, "%s", t.reason.message);
    ck_assert(f->status != TRIAL_OK || t.sample_count > 0);
    trial_release(&t);
    next_one_works(bench);
}

/* Another program clears the cache between a build and its use: no candidate's fault. */
TEST(binary_that_vanished_ends_the_work)
{
    char text[512];
    struct trial t;
    snprintf(text, sizeof(text), "rm '%s'/cache/binaries/*\n", test_dir);
    plant(7, 14, "sh", text); /* the other has been built by then */
    struct candidate c = candidate_of(bench, "0-6,7-14");
    OK(bench_build(bench, c.choices, 1, NULL, &st));
    FAILS(bench_plan(bench, &c, &sampling_search, &t, &st), STATUS_ENVIRONMENT,
          "gone from the cache");
}

/* Only the source of the faulty segment hangs: its compiler is stopped with all that it started. */
TEST(hanging_compiler_is_stopped)
{
    struct status results[2];
    reopen(1, 0);
    char script[128];
    snprintf(script, sizeof(script), "sleep 54321 & echo $!. >%s/sleeps; wait", test_dir);
    clock_await(test_path("sleeps"));
    plant(8, 9, "sh", script);
    struct choice c[] = {choice_of(8, 9), choice_of(14, 14)};
    double start = clock_seconds();
    OK(bench_build(bench, c, 2, results, &st));
    ck_assert_int_eq(results[0].code, STATUS_TIMEOUT);
    ck_assert_int_eq(results[1].code, STATUS_OK);
    ck_assert_double_lt(clock_seconds() - start, 20);
    ck_assert(pid_ends(pid_written(test_path("sleeps"))));
}

/* Wrong in every seventh run, which is found while it is timed or right after. */
TEST(fault_of_some_runs_is_noticed)
{
    plant(7, 14, "c",
          "{ static int calls; honest(a); if (++calls % 7 == 0) a->tensor[15][0] += 1; }");
    struct trial t = plan_trial(bench, "0-6,7-14", &sampling_search);
    check_failed(&t, STATUS_WRONG, "the plan gives another result than before");
}

/* Maps 1 TiB that it never touches: no machine is hurt where no bound holds it.  AddressSanitizer
 * allows no bound. */
TEST(greedy_candidate_fails_alone)
{
#ifdef __SANITIZE_ADDRESS__
    return;
#endif
    plant(8, 9, "c",
          "{ static char *volatile kept[4096]; static int count; honest(a);"
          "  while (count < 4096) {"
          "    kept[count] = malloc((size_t)256 << 20);"
          "    if (kept[count++] == NULL) { fputs(\"no memory left\\n\", stderr); abort(); } } }");
    struct trial bad = segment_trial(bench, 8, 9);
    check_failed(&bad, STATUS_LAUNCH, "no memory left");
    next_one_works(bench);
}

/* ---- compilers --------------------------------------------------------------------------------
 * Compilers that fail for a reason of the machine's: some other program, or a lack, stopped them.
 */

/* Runs in place of the compiler of segment 8-9, and notes that: a byte a time.  Nobody loads what
 * it writes. */
static void plant_script(const char *script)
{
    char text[1024];
    snprintf(text, sizeof(text),
             "tries=%s/tries\nprintf x >>\"$tries\"\n%s\necho built >\"$out\"; exit\n", test_dir,
             script);
    write_text(test_path("faults/08_09.sh"), text);
}

static size_t tries(void)
{
    return strlen(text_of("tries"));
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

TEST_LOOP(one_failure_is_nobodys, 0, ARRAY_LEN(failures))
{
    char script[512];
    struct status result;
    struct choice c = choice_of(8, 9);
    snprintf(script, sizeof(script), FIRST_TIME "%s", failures[_i]);
    plant_script(script);
    OK(bench_build(bench, &c, 1, &result, &st));
    ck_assert_msg(result.code == STATUS_OK, "%s", result.message);
    ck_assert_uint_eq(tries(), 2);
}

/* The machine's failure says nothing about the candidate even if it repeats: all but the last. */
TEST_LOOP(two_failures_of_the_machine_end_the_work, 0, ARRAY_LEN(failures) - 1)
{
    struct status result;
    struct choice c = choice_of(8, 9);
    plant_script(failures[_i]);
    FAILS(bench_build(bench, &c, 1, &result, &st), STATUS_ENVIRONMENT, "failed twice");
    ck_assert_uint_eq(tries(), 2);
    plant_script("");
    OK(bench_build(bench, &c, 1, &result, &st));
    ck_assert_msg(result.code == STATUS_OK, "%s", result.message);
}

TEST(two_failures_without_a_reason_are_the_candidates)
{
    struct status results[3];
    struct choice c[] = {choice_of(8, 9), choice_of(14, 14), choice_of(8, 9)};
    plant_script("echo 'no_such_variable undeclared' >&2; exit 1");
    OK(bench_build(bench, c, 3, results, &st));
    ck_assert_int_eq(results[0].code, STATUS_COMPILE);
    ck_assert_ptr_nonnull(strstr(results[0].message, "no_such_variable"));
    ck_assert_int_eq(results[1].code, STATUS_OK);
    ck_assert_int_eq(results[2].code, STATUS_COMPILE);
    ck_assert_uint_eq(tries(), 2);
    struct trial t = segment_trial(bench, 8, 9);
    check_failed(&t, STATUS_COMPILE, "segment 8-9");
}

/* A compiler that fails at its probe too has no verdict on a candidate. */
TEST(compiler_that_fails_at_its_probe_ends_the_work)
{
    struct choice c = choice_of(8, 9);
    plant_script("exit 1");
    write_text(test_path("faults/.sh"), "exit 1\n"); /* for sources that hold no segment */
    FAILS(bench_build(bench, &c, 1, NULL, &st), STATUS_ENVIRONMENT, "the compiler no longer works");
}

/* A second try ends with the time that is left, and nothing is known then. */
TEST(second_try_keeps_the_limit)
{
    struct choice c = choice_of(8, 9);
    plant_script(
        FIRST_TIME
        "exit 1; [ $(wc -c <\"$tries\") -gt 2 ] || { : >\"$tries.2\"; exec sleep 54321; }");
    clock_await(test_path("tries.2"));
    double start = clock_seconds();
    bench_limit(bench, 1);
    FAILS(bench_build(bench, &c, 1, NULL, &st), STATUS_TIMEOUT, "");
    ck_assert_double_lt(clock_seconds() - start, 30);
    ck_assert_uint_eq(tries(), 2);
    bench_limit(bench, 60);
    OK(bench_build(bench, &c, 1, NULL, &st));
}

/* A compiler's messages are read, so they come in one language. */
TEST(compilers_speak_no_other_language)
{
    struct status result;
    struct choice c = choice_of(8, 9);
    plant_script("echo \"$LC_ALL\" >\"$tries.locale\"");
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    OK(bench_build(bench, &c, 1, &result, &st));
    ck_assert_str_eq(text_of("tries.locale"), "C\n");
}

/* What lies in the binary's place: 3 GB, a pipe, a link to a device, nothing. */
static const char *const outputs[][2] = {{"truncate -s 3G \"$out\"; exit 0", "3.0 GiB"},
                                         {"mkfifo \"$out\"; exit 0", "wrote no binary"},
                                         {"ln -s /dev/zero \"$out\"; exit 0", "wrote no binary"},
                                         {"exit 0", "wrote no binary"}};

TEST_LOOP(only_a_binary_is_read, 0, ARRAY_LEN(outputs))
{
    struct status result;
    struct choice c = choice_of(8, 9);
    plant_script(outputs[_i][0]);
    OK(bench_build(bench, &c, 1, &result, &st));
    ck_assert_int_eq(result.code, STATUS_COMPILE);
    ck_assert_msg(strstr(result.message, outputs[_i][1]) != NULL, "%s", result.message);
}

/* Compilers write where the next start sweeps, and the system ends them before it ends
 * the search. */
TEST(compilers_leave_nothing)
{
    struct status result;
    struct choice c = choice_of(8, 9);
    struct names names;
    plant_script("echo x >\"$TMPDIR/cc.s\"; echo \"$TMPDIR\" >\"$tries.dir\";"
                 " cat /proc/self/oom_score_adj >>\"$tries.dir\"");
    setenv("TMPDIR", test_path("elsewhere"), 1);
    OK(bench_build(bench, &c, 1, &result, &st));
    ck_assert_msg(result.code == STATUS_OK, "%s", result.message);
    OK(directory_list(test_path("cache/temporary"), &names, &st));
    ck_assert_int_eq(names.count, 0);
    names_release(&names);
    ck_assert_ptr_nonnull(strstr(text_of("tries.dir"), test_path("cache/temporary/")));
    ck_assert_ptr_nonnull(strstr(text_of("tries.dir"), "\n500\n"));
}

int main(void)
{
    shared_setup();
    int result = suite_run("faults", setup, teardown);
    file_remove_all(shared_dir, &st);
    return result;
}
