/* tune() on a fake bench where something goes wrong: segments, plans, the machine, the user. */
#include "tests/candidate.h"
#include "tune_guided.h"

static const struct segment attention = {2, 6}, layernorm = {8, 9};

/* 41115 holds both; ops 2-6 are the hand-written ones there. */
TEST_LOOP(broken_segment_breaks_its_plans_unbuilt, 0, 4)
{
    fake.broken = _i % 2 == 0 ? layernorm : attention;
    fake.broken_at_build = _i / 2 != 0;
    run();
    struct stored *s = read_back();
    ck_assert_int_le(fake.broken_in_plan, 1); /* the first plan of all */
    ck_assert_int_eq(s->plans, 20);
    ck_assert_int_eq(s->failed, 1);
    ck_assert_int_eq(report.failed_trials, 1);
    ck_assert(s->seen[41115] && !s->ok[41115]);
    ck_assert_ptr_nonnull(strstr(s->reason, _i % 2 == 0 ? "ops 8-9" : "ops 2-6"));
    ck_assert_ptr_nonnull(strstr(s->reason, _i / 2 != 0 ? "syntax error" : "row 3 is wrong"));
    ck_assert(isnan(report.baselines[1].ms.median));
    ck_assert_ptr_nonnull(strstr(report.baselines[1].reason.message, "fail alone"));
    ck_assert(!isnan(report.baselines[0].ms.median));
    int calls = fake.calls;
    run();
    ck_assert_int_eq(fake.calls, calls);
}

/* All plans of the space hold ops 1-5, for which stage 1 has no time: the segments of the baselines
 * take 20 ms each and about half of the limit.  The first plan that fails makes it known. */
TEST(culprit_is_found_out)
{
    fake.broken = (struct segment){1, 5};
    fake.seconds_per_segment = 0.02;
    fake.speed = 100;
    options.search.space_lo = 48768;
    options.search.space_hi = options.search.space_lo + 63;
    options.search.time_limit_s = 0.8;
    run();
    struct stored *s = read_back();
    ck_assert_int_eq(s->failed, 1);
    ck_assert_int_eq(s->plans, 3);
    ck_assert_str_eq(report.stopped_by, "space");
}

/* A segment and a plan that the machine made fail once: the search whose budget is spent measures
 * both again, and no other.  41115 is a baseline, so a plan without these segments fails too. */
TEST(failures_are_measured_again)
{
    fake.broken = layernorm;
    fake.broken_value = 40011;
    options.search.space_lo = options.search.space_hi = 40011;
    run();
    struct stored *s = read_back();
    ck_assert(s->seen[40011] && !s->ok[40011] && s->seen[41115] && !s->ok[41115]);
    int segments = s->segments, plans = s->plans, calls = fake.calls;
    run(); /* without the option nothing is tried again */
    ck_assert_int_eq(fake.calls, calls);

    fake.broken = (struct segment){-1, -1};
    fake.broken_value = 0;
    options.retry_failed = true;
    run();
    s = read_back();
    ck_assert(s->ok[40011] && s->ok[41115]);
    ck_assert_int_ge(s->segments, segments);
    ck_assert_int_eq(s->plans, plans);
    ck_assert_int_eq(s->failed, 0);
    ck_assert(!isnan(report.baselines[1].speedup.median));
    calls = fake.calls;
    run(); /* nothing is left to measure again */
    ck_assert_int_eq(fake.calls, calls);
}

TEST(finalist_that_broke_is_dropped)
{
    plant_plan(41115, 1e-3);
    fake.broken = layernorm;
    run();
    ck_assert_int_eq(fake.compares, 1);
    ck_assert_int_eq(fake.broken_in_plan, 0);
    ck_assert(report.best.final);
    ck_assert_int_ne(report.best.value, 41115);
    run(); /* it is a baseline, but no comparison can hold it */
    ck_assert_int_eq(fake.compares, 1);
}

/* A segment's failure as another version of the program stored it. */
TEST(reason_of_no_known_kind)
{
    const struct db_choice choice = {layernorm, "generated",
                                     "lowering=tiled row_block=256 col_block=even"};
    const struct db_trial trial = {.kind = DB_TRIAL_SEGMENT,
                                   .value = -1,
                                   .status = TRIAL_FAILED,
                                   .reason_code = "melted",
                                   .reason = "it is too hot",
                                   .median_ms = NAN,
                                   .ci_low_ms = NAN,
                                   .ci_high_ms = NAN,
                                   .choice_count = 1,
                                   .choices = &choice,
                                   .stored_utc = "2026-01-31T12:34:56.789Z"};
    int64_t study;
    OK(study_open(bench, db, &study, &st));
    OK(db_trial_add(db, study, &trial, &st));
    run();
    ck_assert_str_eq(read_back()->reason,
                     "unfit: ops 8-9 fail alone, at 2026-01-31T12:34:56.789Z: it is too hot");
}

/* The baselines are wanted however slow they are, all other plans are not. */
TEST(hopeless_plan_is_censored)
{
    options.search.space_lo = options.search.space_hi = fake.slow_value = 40011;
    run();
    ck_assert_int_eq(report.censored_trials, 1);
    ck_assert_int_eq(fake.plans, 4); /* the best once more */
    options.baselines =
        (struct baselines){1, {plan_from_value(40011)}}; /* stored as hopeless, and wanted */
    run();
    ck_assert_int_eq(fake.plans, 4);
    ck_assert_double_eq(report.baselines[0].ms.median, 5 * made_up_ms(&fake.space, 40011));
    options.baselines = usual_baselines();
    fake.slow_value = 41115;
    fake.inputs.seed = 1;
    run();
    ck_assert_int_eq(report.censored_trials, 0);
    ck_assert_double_gt(report.baselines[1].ms.median, 4 * report.baselines[0].ms.median);
}

TEST(slower_machine_makes_no_plan_hopeless)
{
    fake.slow_from_plan = 8;
    run();
    ck_assert_int_eq(report.censored_trials, 0);
    ck_assert_int_eq(read_back()->plans, 20);
}

/* It first compares what the interrupted search left, and at its end all that it has measured. */
TEST(search_that_compares_twice)
{
    options.search.budget = 40;
    fake.stop_at_call = 160;
    run();
    ck_assert_int_ge(read_back()->plans, 10);
    ck_assert_int_eq(read_back()->comparisons, 0);
    fake.stop = 0;
    run();
    ck_assert_int_eq(read_back()->comparisons, 2);
}

/* Every call may be the last before a Ctrl-C. */
TEST_LOOP(interrupt_keeps_all, 0, 6)
{
    options.search.budget = 9;
    fake.stop_at_call = 1 + 25 * _i;
    run();
    ck_assert_str_eq(report.stopped_by, "interrupted");
    struct stored *s = read_back();
    ck_assert_int_eq(s->plans, fake.plans);
    ck_assert_int_eq(s->segments, fake.segments);
    ck_assert_int_eq(report.new_trials, fake.plans);
    ck_assert_int_eq(report.best.value >= 0, fake.plans > 0);
    fake.stop = 0;
    run();
    ck_assert_int_eq(read_back()->plans, 9);
    ck_assert_int_eq(fake.plans, 9);
}

SUITE("search/tune_failures", setup, teardown)
