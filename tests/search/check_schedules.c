/* Schedules fitted to plans: a plan may run fastest with other schedules than its segments alone.
 */
#include "search/study_int.h"
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

START_TEST(fitted_schedules_win)
{
    struct db_time searched;
    int64_t study;
    search_one_plan();
    fake.off_in_plan = 0.1;
    run();
    ck_assert(!runs_as_alone());
    OK(study_open(bench, db, &study, &st));
    ck_assert_int_eq(db_time(db, study, report.best.value, "", &searched, &st), 1);
    ck_assert_double_lt(report.best.median_ms, 0.95 * searched.ms.median);
    db_time_release(&searched);
    double ms = report.best.median_ms;
    run_by(tune_again); /* they are kept where the best plan is timed anew */
    ck_assert_double_eq(report.best.median_ms, ms);
    ck_assert(!runs_as_alone());
}
END_TEST

START_TEST(fastest_alone_stay)
{
    search_one_plan();
    run();
    ck_assert_int_gt(fake.fits, 4);
    ck_assert(runs_as_alone());
}
END_TEST

/* 0.4 % is less than half of the intervals' width. */
START_TEST(noise_changes_nothing)
{
    search_one_plan();
    fake.off_in_plan = 0.002;
    fake.jitter = 0.001;
    run();
    ck_assert(runs_as_alone());
}
END_TEST

/* The plan is the baseline, so it ran with its defaults before any segment was timed.  With these
 * it is 0.4 % faster than with the fastest schedules alone, less than noise. */
START_TEST(plan_begins_with_its_fastest_way)
{
    search_one_plan();
    options.baselines = (struct baselines){1, {plan_from_value(40011)}};
    fake.off_in_plan = 0.0005;
    run();
    ck_assert(!runs_as_alone());
}
END_TEST

SUITE("search/schedules", setup, teardown, ONCE(fitted_schedules_win), ONCE(fastest_alone_stay),
      ONCE(noise_changes_nothing), ONCE(plan_begins_with_its_fastest_way))
