/* tune() with every plan measured, on a fake bench. */
#include "tune_guided.h"

enum { SPACE_LO = 40000, SPACE_HI = 40063, PLANS = SPACE_HI - SPACE_LO + 1, BESIDE = 2 };

static void setup_exhaustive(void)
{
    setup();
    options.rigor = RIGOR_EXHAUSTIVE;
    options.search.space_lo = SPACE_LO;
    options.search.space_hi = SPACE_HI;
    options.search.budget = 0;
}

static void check_all_measured(void)
{
    const struct stored *s = read_back();
    ck_assert_int_eq(s->plans, PLANS + BESIDE);
    for (int value = SPACE_LO; value <= SPACE_HI; value++)
        ck_assert_msg(s->seen[value], "%d was not measured", value);
    ck_assert_str_eq(report.stopped_by, "space");
    ck_assert_int_eq(report.space_trials, report.space);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(every_plan_is_measured)
{
    fake.slow_value = 40011; /* not given up either */
    run();
    check_all_measured();
    ck_assert_int_eq(fake.plans, PLANS + BESIDE);
    ck_assert_int_eq(report.new_trials, PLANS + BESIDE);
    double best_ms = INFINITY;
    const struct stored *s = read_back();
    for (unsigned value = 0; value <= VALUE_MAX; value++)
        if (s->ok[value])
            best_ms = fmin(best_ms, made_up_ms(&fake.space, value));
    ck_assert_double_eq(report.best.ms.median, best_ms);
    int calls = fake.calls;
    run();
    ck_assert_int_eq(fake.calls, calls);
    ck_assert_str_eq(report.stopped_by, "space");
}

TEST(two_comparisons)
{
    run();
    ck_assert_int_eq(fake.fits, 0); /* all plans run the same schedules */
    ck_assert_int_eq(fake.compares, 2);
    ck_assert_int_eq(read_back()->comparisons, 2);
    ck_assert_int_eq(fake.compared[0].plans, PLANS + BESIDE);
    ck_assert_int_ge(fake.compared[1].plans, 4 + BESIDE);
    ck_assert_int_le(fake.compared[1].plans, 4 + BESIDE + 1);
    ck_assert(report.best.final);
    ck_assert(!isnan(report.baselines[0].ms.median) && !isnan(report.baselines[1].ms.median));
}

/* What was fast in the search by chance is found out by the first comparison. */
TEST(finals_are_of_what_the_first_comparison_found)
{
    fake.lucky_value = SPACE_LO;
    for (unsigned value = SPACE_LO; value <= SPACE_HI; value++)
        if (made_up_ms(&fake.space, value) > made_up_ms(&fake.space, fake.lucky_value))
            fake.lucky_value = value; /* the slowest */
    run();
    ck_assert_int_eq(fake.compared[0].plans, PLANS + BESIDE);
    ck_assert_int_eq(fake.compares, 2);
    ck_assert(!read_back()->compared[fake.lucky_value]); /* by the finals */
}

/* Fourteen rounds of all plans, the fewest that are worth it, take 3 s. */
static void slow_down(void)
{
    double round_ms = made_up_ms(&fake.space, VALUE_UNFUSED) + made_up_ms(&fake.space, 41115);
    for (unsigned value = SPACE_LO; value <= SPACE_HI; value++)
        round_ms += made_up_ms(&fake.space, value);
    fake.speed = 14 * round_ms / 3000;
}

/* Where there is the time for all of it, and once. _i: the budget is spent. */
TEST_LOOP(comparison_cut_short_is_widened, 0, 2)
{
    slow_down();
    options.search.time_limit_s = 4;
    run();
    options.search.budget = _i * (PLANS + BESIDE);
    run();
    ck_assert_int_eq(fake.compares, 2);
    options.search.time_limit_s = 0;
    run();
    ck_assert_int_eq(fake.compares, 4);
    ck_assert_int_eq(fake.compared[2].plans, PLANS + BESIDE);
    ck_assert_int_eq(report.new_trials, 0);
    run();
    ck_assert_int_eq(fake.compares, 4);
}

static int keep_longest(void *ctx, const struct db_trial *row)
{
    const struct segment s = row->choices[0].segment;
    int *longest = ctx, length = s.last - s.first + 1;
    *longest = length > *longest ? length : *longest;
    return 0;
}

/* Those of plans elsewhere would be timed for nothing: the longest is 2-6, of a baseline. */
TEST(segments_of_the_space_alone_are_timed)
{
    int64_t study;
    int longest = 0;
    options.search.space_lo = VALUE_UNFUSED;
    options.search.space_hi = VALUE_UNFUSED + 1;
    run();
    ck_assert_int_eq(read_back()->plans, 3);
    OK(study_open(bench, db, &study, &st));
    OK(db_trials(db, study, DB_TRIAL_SEGMENT, keep_longest, &longest, &st));
    ck_assert_int_eq(longest, 5);
}

/* No plan with it is built, and each says why. */
TEST(broken_segment_fails_its_plans)
{
    fake.broken = (struct segment){8, 9};
    run();
    check_all_measured();
    const struct stored *s = read_back();
    int broken = 0;
    for (unsigned value = 0; value <= VALUE_MAX; value++) {
        struct segment segments[OP_COUNT];
        int count = s->seen[value] ? plan_segments(plan_from_value(value), segments) : 0;
        for (int k = 0; k < count; k++)
            broken += segments[k].first == 8 && segments[k].last == 9;
    }
    ck_assert_int_gt(broken, 1);
    ck_assert_int_eq(s->failed, broken);
    ck_assert_int_eq(report.failed_trials, broken);
    ck_assert_int_eq(fake.plans, PLANS + BESIDE - broken);
    ck_assert_int_eq(fake.broken_in_plan, 0);
    ck_assert_ptr_nonnull(strstr(s->reason, "ops 8-9 fail alone: row 3 is wrong"));
}

/* The finals are made up for, among the plans that were compared before them. */
TEST_LOOP(interrupt_between_comparisons, 0, 2)
{
    run();
    int calls = fake.calls;
    teardown();
    setup_exhaustive();
    fake.stop_at_call = calls; /* the finals */
    run();
    ck_assert_str_eq(report.stopped_by, "interrupted");
    ck_assert_int_eq(fake.compares, 1);
    fake.stop = 0;
    options.search.budget = _i * (PLANS + BESIDE); /* spent, or none */
    run();
    ck_assert_int_eq(fake.compares, 2);
    ck_assert_int_eq(fake.plans, PLANS + BESIDE);
    ck_assert_int_le(read_back()->finals, PLANS + BESIDE + 4 + BESIDE + 1);
    ck_assert(report.best.final);
    run();
    ck_assert_int_eq(fake.compares, 2);
}

/* No plan runs before its segments' choices are final, so that all plans share them. */
TEST(short_time_measures_no_plan)
{
    fake.seconds_per_segment = 0.02;
    options.search.time_limit_s = 0.5;
    run();
    ck_assert_str_eq(report.stopped_by, "time");
    ck_assert_int_gt(fake.segments, 0);
    ck_assert_int_eq(fake.plans, 0);
    fake.seconds_per_segment = 0;
    options.search.time_limit_s = 0;
    run();
    check_all_measured();
}

SUITE("search/exhaustive", setup_exhaustive, teardown)
