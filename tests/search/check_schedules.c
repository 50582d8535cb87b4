/* Schedules fitted to plans: a plan may run fastest with other schedules than its segments alone.
 */
#include "search/study_int.h"
#include "tests/workload.h"
#include "tune_fixture.h"

static void setup(void)
{
    open_all();
    options = (struct tune_options){.search = {.strategy = strategy_find("guided"),
                                               .space_lo = 32768,
                                               .space_hi = 49152,
                                               .budget = 20,
                                               .quantile = 0.1},
                                    .baselines = usual_baselines()};
}

/* One plan: stage 1 climbs its segments, and off their defaults they are faster alone. */
static void search_one_plan(void)
{
    options.baselines.count = 0;
    options.search.space_lo = options.search.space_hi = 40011;
}

/* Whether the best plan runs each segment by the schedule that is the fastest alone. */
static bool runs_as_alone(void)
{
    struct candidate alone, best;
    struct plan p = plan_from_value((unsigned)report.best.value);
    int64_t study;
    OK(study_open(bench, db, &study, &st));
    struct segment_table table;
    segment_table_init(&table, bench_target(bench));
    OK(segment_table_read(&table, db, study, &st));
    OK(plan_candidate(&table, NULL, p, &alone, &st));
    segment_table_release(&table);
    const struct choice_source from = {.db = db, .study = study, .target = bench_target(bench)};
    OK(study_candidate(&from, p, &best, &st));
    ck_assert_int_eq(best.count, report.best.choice_count);
    for (int i = 0; i < best.count; i++) { /* whoever runs the plan runs what the finals ran */
        struct choice c;
        OK(choice_parse(TARGET_CPU, &chain_bert, report.best.choices[i].segment,
                        report.best.choices[i].impl, report.best.choices[i].schedule, &c, &st));
        ck_assert(choice_equal(&c, &best.choices[i]));
    }
    return same_choices(&alone, &best);
}

TEST(fitted_schedules_win)
{
    struct db_time searched;
    int64_t study;
    search_one_plan();
    fake.off_in_plan = 0.1;
    run();
    ck_assert(!runs_as_alone());
    OK(study_open(bench, db, &study, &st));
    ck_assert_int_eq(db_time(db, study, report.best.value, "", &searched, &st), 1);
    ck_assert_double_lt(report.best.ms.median, 0.95 * searched.ms.median);
    db_time_release(&searched);
    double ms = report.best.ms.median;
    run_by(tune_again); /* they are kept where the best plan is timed anew */
    ck_assert_double_eq(report.best.ms.median, ms);
    ck_assert(!runs_as_alone());
}

/* How the schedules tried in plans fare, and what becomes of them. */
static const struct {
    double off_in_plan, jitter;
    bool fails, gives_up; /* fails: the plan, a baseline, ran with its defaults and stays so */
    bool falls;
    bool alone; /* it runs as its segments alone are fastest */
} tries[] = {
    {0, 0, false, false, false, true},
    {0.002, 0.001, false, false, false, true}, /* 0.4 %, less than half of the intervals' width */
    {0.1, 0, false, false, false, false},
    {0.1, 0, false, false, true, false}, /* slower ways ran while the clock was high */
    {0, 0, true, false, false, false},
    {0, 0, false, true, false, true}, /* the machine slows down while the present way runs */
};

TEST_LOOP(tries_are_told, 0, ARRAY_LEN(tries))
{
    int count, kept, failed;
    search_one_plan();
    if (tries[_i].fails)
        options.baselines = (struct baselines){1, {plan_from_value(40011)}};
    fake.off_in_plan = tries[_i].off_in_plan;
    fake.jitter = tries[_i].jitter;
    fake.off_fails = tries[_i].fails;
    fake.first_gives_up = tries[_i].gives_up;
    fake.clock_falls = tries[_i].falls;
    run();
    ck_assert_int_eq(said_times("other schedules ran "), 1);
    ck_assert_int_eq(sscanf(strstr(said.ptr, "other schedules ran "),
                            "other schedules ran %d times: %d made a plan faster, %d failed",
                            &count, &kept, &failed),
                     3);
    ck_assert_int_gt(count, 4);
    ck_assert_int_eq(kept > 0, tries[_i].off_in_plan > 0.01);
    ck_assert_int_eq(failed, tries[_i].fails ? count : 0);
    ck_assert_int_eq(runs_as_alone(), tries[_i].alone);
}

static void take_a_gpu(void)
{
    fake.hopper = true;
    fake.workload.dtype = DTYPE_FP16;
    fake.workload.seq_len = 128;
    workload_ready(&fake.workload, "causal", NULL, NULL);
}

/* A plan's schedules that are the fastest alone are its fastest: the others make it slower. */
TEST(what_slows_a_plan_is_not_tried_again)
{
    take_a_gpu();
    fake.off_in_plan = -0.1;
    run();
    ck_assert_int_gt(fake.tries.lost_count, 0);
    ck_assert_int_eq(fake.tries.again, 0);
}

/* _i > 0: on a GPU, where a plan changes less of what a segment takes. */
TEST_LOOP(schedules_far_behind_alone_are_not_tried, 0, 2)
{
    if (_i > 0)
        take_a_gpu();
    fake.by_knob = 0.08;
    run();
    ck_assert_int_eq(fake.tries.furthest > 1.05, _i == 0);
    ck_assert_double_lt(fake.tries.furthest, 1.3);
}

/* Rows of padding were faster in the finals of a search that had no time to climb.  A later search
 * still fits schedules to packed tokens, as it times all else. */
TEST(packed_tokens_are_compared_with_their_like)
{
    static int lengths[] = {4};
    search_one_plan();
    fake.workload.lengths = lengths;
    fake.packing = 1.25;
    fake.seconds_per_segment = 0.1;
    options.search.time_limit_s = 2;
    run();
    ck_assert(report.best.final && !report.best.packed);
    options.search.time_limit_s = 0;
    options.search.space_lo--;
    options.search.seed = 1; /* another search, which compares anew */
    run();
    fake.workload.lengths = NULL;
    ck_assert_int_gt(fake.fits, 0);
    ck_assert(!fake.unlike);
}

SUITE("search/schedules", setup, teardown)
