/* Turns on a device, taken by processes and by sessions. */
#include "bench/bench_int.h"
#include "tests/bench/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- the lock -----------------------------------------------------------------------------------
 * It lies where all users find it; devices that no machine has keep these tests apart from
 * measurements. */

static struct target_name no_device(enum target_kind kind)
{
    return (struct target_name){.kind = kind, .device = 100000 + (int)getpid()};
}

static const char *lock_path(struct target_name target)
{
    static char path[128];
    snprintf(path, sizeof(path), "/tmp/fuseplan-lock-%s-%d", target_names[target.kind],
             target.device);
    return path;
}

static void remove_locks(struct target_name target)
{
    char turn[160];
    snprintf(turn, sizeof(turn), "%s-turn", lock_path(target));
    unlink(turn);
    unlink(lock_path(target));
}

START_TEST(lock_is_for_one)
{
    struct status st = STATUS_INIT;
    struct target_name cpu = no_device(TARGET_CPU), gpu = no_device(TARGET_CUDA);
    int first, second, other;
    ck_assert_int_eq(lock_take(cpu, LOCK_TO_TIME, 0.05, NULL, &first, &st), 0);
    ck_assert_int_eq(lock_take(gpu, LOCK_TO_TIME, 0.05, NULL, &other, &st), 0);
    ck_assert_int_eq(lock_take(cpu, LOCK_TO_TIME, 0.05, NULL, &second, &st), -1);
    ck_assert_int_eq(st.code, STATUS_ENVIRONMENT);
    char pid[32];
    snprintf(pid, sizeof(pid), "process %ld ", (long)getpid());
    ck_assert_ptr_nonnull(strstr(st.message, pid));

    st = STATUS_INIT;
    volatile sig_atomic_t stop = 1;
    ck_assert_int_eq(lock_take(cpu, LOCK_TO_TIME, 60, &stop, &second, &st), -1);
    ck_assert_int_eq(st.code, STATUS_INTERRUPTED);
    lock_drop(first);
    st = STATUS_INIT;
    ck_assert_int_eq(lock_take(cpu, LOCK_TO_TIME, 0.05, NULL, &second, &st), 0);
    lock_drop(second);
    lock_drop(other);
    remove_locks(cpu);
    remove_locks(gpu);
}
END_TEST

/* Runs that are not timed go side by side; a measurement waits for all of them, and they for it. */
START_TEST(lock_is_shared_by_runs)
{
    struct status st = STATUS_INIT;
    struct target_name target = no_device(TARGET_CUDA);
    int first, second, timed;
    ck_assert_int_eq(lock_take(target, LOCK_TO_RUN, 0.05, NULL, &first, &st), 0);
    ck_assert_int_eq(lock_take(target, LOCK_TO_RUN, 0.05, NULL, &second, &st), 0);
    lock_drop(first);
    ck_assert_int_eq(lock_take(target, LOCK_TO_TIME, 0.05, NULL, &timed, &st), -1);
    ck_assert_int_eq(st.code, STATUS_ENVIRONMENT);
    lock_drop(second);
    st = STATUS_INIT;
    ck_assert_int_eq(lock_take(target, LOCK_TO_TIME, 0.05, NULL, &timed, &st), 0);
    ck_assert_int_eq(lock_take(target, LOCK_TO_RUN, 0.05, NULL, &first, &st), -1);
    lock_drop(timed);
    remove_locks(target);
}
END_TEST

/* Who would time waits for those who run, and nobody passes him. */
START_TEST(runs_do_not_pass_a_measurement)
{
    struct status st = STATUS_INIT;
    struct target_name target = no_device(TARGET_CUDA);
    int first, second, ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(lock_take(target, LOCK_TO_RUN, 0.05, NULL, &first, &st), 0);
    pid_t other = fork();
    if (other == 0) {
        lock_drop(first);
        int timed, waits = lock_take(target, LOCK_TO_TIME, 0.1, NULL, &timed, &st) != 0;
        st = STATUS_INIT;
        close(ready[1]); /* from now on it waits */
        _exit(waits && lock_take(target, LOCK_TO_TIME, 60, NULL, &timed, &st) == 0 ? 0 : 1);
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 0);
    usleep(50000);
    ck_assert_int_eq(lock_take(target, LOCK_TO_RUN, 0.1, NULL, &second, &st), -1);
    ck_assert_int_eq(st.code, STATUS_ENVIRONMENT);
    lock_drop(first);
    int end;
    waitpid(other, &end, 0);
    ck_assert_int_eq(end, 0);
    remove_locks(target);
}
END_TEST

/* Another user's process with another cache takes the same lock, whatever the first one's umask. */
START_TEST(lock_is_for_all_users)
{
    struct status st = STATUS_INIT;
    struct target_name target = no_device(TARGET_CPU);
    struct stat info;
    int lock;
    umask(077);
    ck_assert_msg(lock_take(target, LOCK_TO_TIME, 0.05, NULL, &lock, &st) == 0, "%s", st.message);
    ck_assert_int_eq(stat(lock_path(target), &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0666);
    lock_drop(lock);
    remove_locks(target);
}
END_TEST

/* A planted link must not make a user write to a file of somebody's. */
START_TEST(lock_follows_no_link)
{
    struct status st = STATUS_INIT;
    struct target_name target = no_device(TARGET_CPU);
    char *victim = test_path("victim");
    struct stat info;
    int lock;
    ck_assert_int_eq(file_write(victim, "", 0, &st), 0);
    ck_assert_int_eq((_i == 0 ? symlink : link)(victim, lock_path(target)), 0);
    ck_assert_int_eq(lock_take(target, LOCK_TO_TIME, 0.05, NULL, &lock, &st), -1);
    ck_assert_int_eq(st.code, STATUS_ENVIRONMENT);
    ck_assert_ptr_nonnull(strstr(st.message, lock_path(target)));
    ck_assert_ptr_nonnull(strstr(st.message, "; remove it"));
    ck_assert_int_eq(stat(victim, &info), 0);
    ck_assert_int_eq(info.st_size, 0);
    remove_locks(target);
}
END_TEST

/* ---- sessions -------------------------------------------------------------------------------- */

/* Builds a plan of a small workload. */
static struct bench *open_with(struct candidate *c)
{
    struct status st = STATUS_INIT;
    struct bench_options o = small_options(test_path("cache"));
    struct bench *b = small_bench(&o);
    candidate_default(&build_cpu, plan_from_value(0x7fff), c);
    ck_assert_int_eq(bench_build(b, c->choices, c->count, NULL, NULL, NULL, &st), 0);
    return b;
}

/* Another process that holds the device for a while; wait for it. */
static pid_t hold_device(const struct bench *b, enum lock_use use)
{
    struct status st = STATUS_INIT;
    int lock;
    ck_assert_int_eq(lock_take(b->target, use, 60, NULL, &lock, &st), 0);
    pid_t other = fork();
    if (other == 0) { /* it inherited the lock */
        usleep(400000);
        _exit(0);
    }
    lock_drop(lock);
    return other;
}

/* Somebody else's measurement is waited for. */
START_TEST(measurements_take_turns)
{
    struct status st = STATUS_INIT;
    struct bench_options o = small_options(test_path("cache"));
    struct bench *b = small_bench(&o);
    struct choice c = choice_of(8, 9);
    struct trial t;
    ck_assert_int_eq(bench_build(b, &c, 1, NULL, NULL, NULL, &st), 0);
    pid_t other = hold_device(b, LOCK_TO_TIME);
    double start = clock_seconds();
    ck_assert_int_eq(bench_segment(b, &c, &sampling_search, &t, &st), 0);
    ck_assert_double_gt(clock_seconds() - start, 0.3);
    waitpid(other, NULL, 0);
    trial_release(&t);
    bench_close(b);
}
END_TEST

/* A dump runs a plan on the device too. */
START_TEST(dump_waits_for_its_turn)
{
    struct status st = STATUS_INIT;
    struct candidate c;
    struct bench *b = open_with(&c);
    pid_t other = hold_device(b, LOCK_TO_TIME);
    double start = clock_seconds();
    ck_assert_msg(bench_dump(b, &c, test_path("dump"), &st) == 0, "%s", st.message);
    ck_assert_double_gt(clock_seconds() - start, 0.3);
    waitpid(other, NULL, 0);
    bench_close(b);
}
END_TEST

/* The times in a trace are times too. */
START_TEST(trace_has_the_device_alone)
{
    struct status st = STATUS_INIT;
    struct candidate c;
    struct bench *b = open_with(&c);
    struct launch_time *times;
    pid_t other = hold_device(b, LOCK_TO_RUN);
    double start = clock_seconds();
    ck_assert_msg(bench_trace(b, &c, &times, &st) == 0, "%s", st.message);
    ck_assert_double_gt(clock_seconds() - start, 0.3);
    waitpid(other, NULL, 0);
    free(times);
    bench_close(b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lock");
    TCase *t = tcase_create("lock");
    tcase_add_checked_fixture(t, test_dir_setup, test_dir_teardown);
    tcase_add_test(t, lock_is_for_one);
    tcase_add_test(t, lock_is_shared_by_runs);
    tcase_add_test(t, runs_do_not_pass_a_measurement);
    tcase_add_test(t, lock_is_for_all_users);
    tcase_add_loop_test(t, lock_follows_no_link, 0, 2);
    tcase_add_test(t, measurements_take_turns);
    tcase_add_test(t, dump_waits_for_its_turn);
    tcase_add_test(t, trace_has_the_device_alone);
    suite_add_tcase(s, t);
    return suite_run(s);
}
