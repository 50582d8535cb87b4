/* Turns on a device, taken by processes and by sessions. */
#include "bench/bench_int.h"
#include "tests/bench/fixture.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

/* ---- the lock -----------------------------------------------------------------------------------
 * Each test has a directory of locks to itself. */

static const struct lock_device cpu = {{.kind = TARGET_CPU}, ""}, gpu = {{.kind = TARGET_CUDA}, ""};

static int take(struct lock_device device, enum lock_use use, double limit_s, int *lock)
{
    struct lock_wait wait = {.limit_s = limit_s};
    return lock_take(device, use, &wait, lock, &st);
}

static void setup(void)
{
    test_dir_setup();
    setenv("FUSEPLAN_LOCK_DIR", test_dir, 1);
}

static const char *lock_path(void)
{
    return test_path("fuseplan-lock-cpu-0");
}

/* Whoever waits for the device holds its queue. */
static bool somebody_waits(void)
{
    int queue = open(test_path("fuseplan-lock-cpu-0-queue"), O_RDWR);
    bool waits = queue >= 0 && flock(queue, LOCK_EX | LOCK_NB) != 0;
    lock_drop(queue);
    return waits;
}

/* Another process that has the lock until it is ended. */
static pid_t take_elsewhere(struct lock_device device)
{
    int ends[2], lock;
    char byte = 0;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (take(device, LOCK_TO_TIME, 1, &lock) != 0 || write(ends[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

static void end_elsewhere(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

TEST(lock_is_for_one)
{
    int second, other;
    pid_t first = take_elsewhere(cpu);
    OK(take(gpu, LOCK_TO_TIME, 0.02, &other));
    FAILS(take(cpu, LOCK_TO_TIME, 0.02, &second), STATUS_TIMEOUT, "");
    st = STATUS_INIT;
    volatile sig_atomic_t stop = 1;
    struct lock_wait wait = {.limit_s = 60, .stop = &stop};
    FAILS(lock_take(cpu, LOCK_TO_TIME, &wait, &second, &st), STATUS_INTERRUPTED, "");
    end_elsewhere(first);
    OK(take(cpu, LOCK_TO_TIME, 0.02, &second));
    lock_drop(second);
    lock_drop(other);
}

struct said {
    int lines, steps;
    char last[600];
};

static void hear(void *ctx, const char *line)
{
    struct said *said = ctx;
    said->lines++;
    snprintf(said->last, sizeof(said->last), "%s", line);
}

static void hear_step(void *ctx, const struct step *step)
{
    ck_assert_str_eq(step->phase, "waiting for cpu:0");
    ((struct said *)ctx)->steps++;
}

/* Says at once for whom, once for each holder.  _i: that process is stopped. */
TEST_LOOP(waiting_is_told, 0, 2)
{
    struct said said = {0};
    struct lock_wait wait = {
        .limit_s = 0.02, .say = hear, .ctx = &said, .listener = {hear_step, &said}};
    int second;
    char holder[64], advice[64];
    pid_t first = take_elsewhere(cpu);
    if (_i == 1) {
        kill(first, SIGSTOP);
        ck_assert_int_eq(waitpid(first, NULL, WUNTRACED), first);
    }
    for (int i = 0; i < 2; i++) {
        FAILS(lock_take(cpu, LOCK_TO_TIME, &wait, &second, &st), STATUS_TIMEOUT,
              "no turn on cpu:0");
        ck_assert_int_eq(said.lines, 1);
    }
    ck_assert_int_eq(said.steps, 2);
    snprintf(holder, sizeof(holder), "process %ld (", (long)first);
    snprintf(advice, sizeof(advice), "'kill -CONT %ld'", (long)first);
    ck_assert_ptr_nonnull(strstr(said.last, holder));
    ck_assert_ptr_nonnull(strstr(said.last, "check_lock"));
    ck_assert_ptr_nonnull(strstr(said.last, "which has had it since 20"));
    ck_assert_int_eq(strstr(said.last, advice) != NULL, _i == 1);
    end_elsewhere(first);
    OK(lock_take(cpu, LOCK_TO_TIME, &wait, &second, &st));
    ck_assert_int_eq(said.lines, 1);
    lock_drop(second);
}

/* Runs that are not timed go side by side; a measurement waits for all of them, and they for it. */
TEST(lock_is_shared_by_runs)
{
    int first, second, timed;
    OK(take(cpu, LOCK_TO_RUN, 0.02, &first));
    OK(take(cpu, LOCK_TO_RUN, 0.02, &second));
    lock_drop(first);
    FAILS(take(cpu, LOCK_TO_TIME, 0.02, &timed), STATUS_TIMEOUT, "");
    lock_drop(second);
    OK(take(cpu, LOCK_TO_TIME, 0.02, &timed));
    ck_assert_int_eq(take(cpu, LOCK_TO_RUN, 0.02, &first), -1);
    lock_drop(timed);
}

/* Who would time waits for those who run, and nobody passes him. */
TEST(runs_do_not_pass_a_measurement)
{
    int first, second, end;
    OK(take(cpu, LOCK_TO_RUN, 0.02, &first));
    pid_t other = fork();
    if (other == 0) {
        lock_drop(first);
        int timed;
        _exit(take(cpu, LOCK_TO_TIME, 60, &timed) == 0 ? 0 : 1);
    }
    while (!somebody_waits())
        sched_yield();
    FAILS(take(cpu, LOCK_TO_RUN, 0.02, &second), STATUS_TIMEOUT, "");
    lock_drop(first);
    waitpid(other, &end, 0);
    ck_assert_int_eq(end, 0);
}

/* Another user's process with another cache takes the same lock, whatever the first one's umask; a
 * device that no machine has keeps this test apart from measurements. */
TEST(lock_is_for_all_users)
{
    const struct lock_device nowhere = {{TARGET_CPU, 100000 + (int)getpid()}, ""};
    struct stat info;
    char path[64], queue[80];
    int lock;
    unsetenv("FUSEPLAN_LOCK_DIR");
    snprintf(path, sizeof(path), "/tmp/fuseplan-lock-cpu-%d", nowhere.name.device);
    snprintf(queue, sizeof(queue), "%s-queue", path);
    umask(077);
    OK(take(nowhere, LOCK_TO_TIME, 0.02, &lock));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0666);
    lock_drop(lock);
    unlink(path);
    unlink(queue);
}

TEST(directory_of_locks_must_be_there)
{
    int lock;
    setenv("FUSEPLAN_LOCK_DIR", test_path("nowhere"), 1);
    FAILS(take(cpu, LOCK_TO_TIME, 60, &lock), STATUS_ENVIRONMENT,
          "; FUSEPLAN_LOCK_DIR must name a directory");
}

/* A planted link must not make a user write to a file of somebody's.  What else is in the way is
 * named with its owner, who alone can remove it from a sticky directory. */
static const char *const in_the_way[] = {"", "", "this directory belongs to",
                                         "this special file belongs to"};

TEST_LOOP(lock_that_is_no_file_is_named, 0, ARRAY_LEN(in_the_way))
{
    char *victim = test_path("victim");
    struct stat info;
    int lock;
    write_text(victim, "");
    ck_assert_int_eq(_i == 0   ? symlink(victim, lock_path())
                     : _i == 1 ? link(victim, lock_path())
                     : _i == 2 ? mkdir(lock_path(), 0700)
                               : mkfifo(lock_path(), 0600),
                     0);
    FAILS(take(cpu, LOCK_TO_TIME, 0.02, &lock), STATUS_ENVIRONMENT, lock_path());
    ck_assert_ptr_nonnull(strstr(st.message, ": remove it, or set FUSEPLAN_LOCK_DIR"));
    ck_assert_ptr_nonnull(strstr(st.message, in_the_way[_i]));
    ck_assert_int_eq(stat(victim, &info), 0);
    ck_assert_int_eq(info.st_size, 0);
}

TEST(lock_of_a_program_without_a_name_is_told)
{
    int lock, other = open(lock_path(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    ck_assert_int_eq(flock(other, LOCK_EX), 0);
    FAILS(take(cpu, LOCK_TO_TIME, 0.02, &lock), STATUS_TIMEOUT, "left no name in '");
    ck_assert_ptr_nonnull(strstr(st.message, "FUSEPLAN_LOCK_DIR"));
    lock_drop(other);
}

/* Who waits for a file that is removed meanwhile gets a lock that keeps nobody away: he locks the
 * file that is there then. */
TEST(removed_lock_is_made_anew)
{
    struct stat named, locked;
    int first, lock, end;
    OK(take(cpu, LOCK_TO_TIME, 0.02, &first));
    pid_t other = fork();
    if (other == 0) {
        lock_drop(first);
        _exit(take(cpu, LOCK_TO_TIME, 60, &lock) == 0 && fstat(lock, &locked) == 0 &&
                      stat(lock_path(), &named) == 0 && named.st_ino == locked.st_ino
                  ? 0
                  : 1);
    }
    while (!somebody_waits())
        sched_yield();
    ck_assert_int_eq(unlink(lock_path()), 0);
    lock_drop(first);
    waitpid(other, &end, 0);
    ck_assert_int_eq(end, 0);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* A measurement and a dump: each waits for somebody else until its session's limit passes. */
TEST(sessions_take_turns)
{
    struct bench_options o = small_options(test_cache());
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
    struct candidate c;
    struct trial t;
    candidate_default(&build_cpu, plan_from_value(0x7fff), &c);
    OK(bench_build(b, c.choices, c.count, NULL, &st));
    pid_t other = take_elsewhere(cpu);
    bench_limit(b, 0.02);
    FAILS(bench_segment(b, &c.choices[0], false, &sampling_search, &t, &st), STATUS_TIMEOUT,
          "no turn on cpu:0");
    FAILS(bench_dump(b, &c, test_path("dump"), false, &st), STATUS_TIMEOUT, "no turn on cpu:0");
    end_elsewhere(other);
    bench_limit(b, 60);
    t = segment_trial(b, 14, 14);
    check_ok(&t);
    OK(bench_dump(b, &c, test_path("dump"), false, &st));
}

SUITE("lock", setup, test_dir_teardown)
