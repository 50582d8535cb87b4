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

SUITE("trace", test_dir_setup, test_dir_teardown, ONCE(times_and_gaps_are_medians),
      ONCE(launches_never_overlap), ONCE(wrong_plan_is_not_traced))
