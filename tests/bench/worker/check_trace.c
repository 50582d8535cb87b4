#include "bench/worker/worker_int.h"
#include "tests/bench/fixture.h"
#include "tests/candidate.h"

/* ---- medians --------------------------------------------------------------------------------- */

START_TEST(times_and_gaps_are_medians)
{
    static const struct launch_time passes[3][3] = {
        {{0, 1}, {1.5, 2}, {4, 1}}, /* gaps 0.5 and 0.5 */
        {{0, 3}, {4, 2}, {9, 5}},   /* 1 and 3 */
        {{0, 2}, {9, 4}, {14, 3}},  /* 7 and 1 */
    };
    struct launch_time out[3];
    trace_settle(passes[0], 3, 3, out);
    ck_assert_double_eq(out[0].start_s, 0);
    ck_assert_double_eq(out[0].seconds, 2);
    ck_assert_double_eq(out[1].start_s, 3);
    ck_assert_double_eq(out[1].seconds, 2);
    ck_assert_double_eq(out[2].start_s, 6);
    ck_assert_double_eq(out[2].seconds, 3);
}
END_TEST

/* Clocks tick coarsely: a launch may seem to begin before the one before it ended. */
START_TEST(launches_never_overlap)
{
    static const struct launch_time pass[2] = {{0, 2}, {1.5, 1}};
    struct launch_time out[2];
    trace_settle(pass, 1, 2, out);
    ck_assert_double_eq(out[1].start_s, 2);
    ck_assert_double_eq(out[1].seconds, 1);
}
END_TEST

/* ---- plans ----------------------------------------------------------------------------------- */

static void check_order(const struct launch_time *times, int n)
{
    ck_assert_double_eq(times[0].start_s, 0);
    for (int i = 0; i < n; i++)
        ck_assert_double_gt(times[i].seconds, 0);
    for (int i = 1; i < n; i++)
        ck_assert_double_ge(times[i].start_s, times[i - 1].start_s + times[i - 1].seconds);
}

START_TEST(plan_is_traced_launch_by_launch)
{
    struct status st = STATUS_INIT;
    struct bench_options o = small_options(test_cache());
    struct bench *b = small_bench(&o);
    struct candidate c;
    struct launch_time *times;
    candidate_default(&build_cpu, plan_from_value(41115), &c);
    ck_assert_msg(bench_trace(b, &c, &times, &st) == 0, "%s", st.message);
    check_order(times, 2 * c.count); /* two layers */
    free(times);
    bench_close(b);
}
END_TEST

START_TEST(wrong_plan_is_not_traced)
{
    struct status st = STATUS_INIT;
    struct bench_options o = small_options(test_path("cache"));
    struct candidate c;
    struct launch_time *times;
    write_faulty_compiler(test_dir);
    write_text(test_path("faults/08_09.c"), "{ (void)a; }\n");
    o.compiler = test_path("compiler");
    struct bench *b = small_bench(&o);
    candidate_default(&build_cpu, plan_from_value(41115), &c);
    FAILS(bench_trace(b, &c, &times, &st), STATUS_WRONG, "");
    ck_assert_ptr_null(times);
    bench_close(b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace");
    TCase *t = tcase_create("medians");
    tcase_add_test(t, times_and_gaps_are_medians);
    tcase_add_test(t, launches_never_overlap);
    suite_add_tcase(s, t);
    t = tcase_create("plans");
    tcase_add_checked_fixture(t, test_dir_setup, test_dir_teardown);
    tcase_add_test(t, plan_is_traced_launch_by_launch);
    tcase_add_test(t, wrong_plan_is_not_traced);
    suite_add_tcase(s, t);
    return suite_run(s);
}
