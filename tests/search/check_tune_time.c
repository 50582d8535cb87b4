/* tune() under a time limit, on a fake bench. */
#include "tune_guided.h"

#include <math.h>

/* 121 segments of 20 ms do not fit into half of 2 s: the search goes on with those that did. */
START_TEST(time_limit_covers_everything)
{
    fake.seconds_per_segment = 0.02;
    fake.speed = 100;
    options.search.budget = 0;
    options.search.time_limit_s = 2;
    run();
    ck_assert_double_lt(report.seconds, 4);
    ck_assert_int_lt(fake.segments, SEGMENT_COUNT);
    ck_assert_int_gt(fake.plans, 2);
    ck_assert_int_eq(fake.compares, 1);
    ck_assert_double_le(fake.compared[0].plans * fake.compared[0].how.max_seconds, 2);
    ck_assert(report.best.final);
    int segments = fake.segments;
    fake.seconds_per_segment = 0;
    options.search.budget = fake.plans + 2;
    options.search.time_limit_s = 0; /* and without a limit the rest is made up for */
    run();
    ck_assert_int_gt(read_back()->segments, segments);
    ck_assert_int_ge(fake.segments, SLOT_COUNT);
}
END_TEST

/* Eleven more layers of finalists would take 1.1 s to verify, or their samples 2 s. */
START_TEST(time_limit_covers_finals)
{
    fake.verify_s = _i == 0 ? 0.1 : 0;
    fake.speed = _i == 0 ? 100 : 1;
    options.search.time_limit_s = 1;
    run();
    ck_assert_int_gt(fake.plans, 0);
    ck_assert_int_eq(fake.compares, 0);
    ck_assert(!report.best.final);
    options.search.time_limit_s = 0;
    run();
    ck_assert_int_eq(fake.compares, 1);
}
END_TEST

/* Learning from 20 plans takes 32 ms, from a whole space half a minute. */
START_TEST(time_limit_covers_learning)
{
    options.search.time_limit_s = 0.5;
    run();
    ck_assert(isnan(report.model_spearman));
    options.search.time_limit_s = 0;
    run();
    ck_assert(!isnan(report.model_spearman));
}
END_TEST

START_TEST(no_time_at_all)
{
    options.search.time_limit_s = 1e-9;
    run();
    ck_assert_str_eq(report.stopped_by, "time");
    ck_assert_int_eq(report.best.value, -1);
    ck_assert_int_eq(fake.calls, 0);
}
END_TEST

SUITE("search/tune_time", setup, teardown, ONCE(time_limit_covers_everything),
      LOOP(time_limit_covers_finals, 0, 2), ONCE(time_limit_covers_learning), ONCE(no_time_at_all))
