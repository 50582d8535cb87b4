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

/* With what its schedules took alone. */
START_TEST(they_are_explained)
{
    struct explanation e;
    int64_t study;
    search_one_plan();
    fake.off_in_plan = 0.1;
    run();
    OK(study_open(bench, db, &study, &st));
    OK(explain_plan(db, study, bench_target(bench), bench_workload(bench),
                    plan_from_value((unsigned)report.best.value), &e, &st));
    ck_assert_int_eq(e.count, report.best.choice_count);
    for (int i = 0; i < e.count; i++) {
        const struct choice *c = &e.kernels[i].choice;
        struct buf text;
        buf_init(&text);
        schedule_text(c->impl, &c->schedule, &text);
        ck_assert_str_eq(text.ptr, report.best.choices[i].schedule);
        ck_assert_double_eq_tol(e.kernels[i].us.median, 1e3 * report.best.choice_ms[i], 1e-6);
        buf_release(&text);
    }
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

struct tries {
    int count, kept, failed;
};

/* What is told of the schedules tried, which is one line. */
static struct tries run_and_hear(void)
{
    struct tries heard;
    struct buf said;
    buf_init(&said);
    options.say = collect;
    options.ctx = &said;
    run();
    const char *line = strstr(said.ptr, "other schedules ran ");
    ck_assert_msg(line != NULL, "%s", said.ptr);
    ck_assert_int_eq(sscanf(line, "other schedules ran %d times: %d made a plan faster, %d failed",
                            &heard.count, &heard.kept, &heard.failed),
                     3);
    ck_assert_int_eq(count_in(said.ptr, "other schedules ran "), 1);
    buf_release(&said);
    return heard;
}

START_TEST(tries_are_told)
{
    search_one_plan();
    struct tries none_faster = run_and_hear();
    ck_assert_int_gt(none_faster.count, 4);
    ck_assert_int_eq(none_faster.kept, 0);
    ck_assert_int_eq(none_faster.failed, 0);
    options.search.space_lo--;
    options.search.seed = 1; /* another search, which compares anew */
    fake.off_in_plan = 0.1;
    struct tries some_faster = run_and_hear();
    ck_assert_int_gt(some_faster.kept, 0);
    ck_assert_int_eq(some_faster.failed, 0);
}
END_TEST

/* The plan is the baseline, so it ran with its defaults, and goes on with these. */
START_TEST(tries_that_fail_are_told)
{
    search_one_plan();
    options.baselines = (struct baselines){1, {plan_from_value(40011)}};
    fake.off_fails = true;
    struct tries heard = run_and_hear();
    ck_assert_int_gt(heard.failed, 4);
    ck_assert_int_eq(heard.failed, heard.count);
    ck_assert_int_eq(heard.kept, 0);
}
END_TEST

/* The machine slows down while the present way runs, each time.  Others are no faster. */
START_TEST(way_that_is_given_up_stays)
{
    search_one_plan();
    fake.first_gives_up = true;
    struct tries heard = run_and_hear();
    ck_assert_int_gt(heard.count, 4);
    ck_assert_int_eq(heard.kept, 0);
    ck_assert(runs_as_alone());
}
END_TEST

/* A plan that is much slower tries the schedules of the fastest one, and no others. */
START_TEST(slow_plans_are_not_fitted)
{
    options.baselines.count = 0;
    options.search.space_lo = options.search.space_hi = 40012;
    ck_assert_double_gt(made_up_ms(&fake.space, 40011), 1.04 * made_up_ms(&fake.space, 40012));
    run();
    int fits = fake.fits;
    options.search.space_lo = 40011;
    options.search.seed = 1; /* another search, which compares anew */
    run();
    ck_assert_int_eq(report.new_trials, 1);
    ck_assert_int_eq(report.best.value, 40012);
    ck_assert_int_eq(fake.fits, 2 * fits + 1);
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

/* All plans of a whole space run the same schedules. */
START_TEST(whole_space_fits_none)
{
    fake.off_in_plan = 0.025;
    options.rigor = RIGOR_EXHAUSTIVE;
    options.search.space_lo = options.search.space_hi - 63;
    options.search.budget = 0;
    run();
    ck_assert_int_eq(fake.fits, 0);
    ck_assert(runs_as_alone());
}
END_TEST

START_TEST(later_search_keeps_them)
{
    search_one_plan();
    fake.off_in_plan = 0.1;
    run();
    double ms = report.best.median_ms;
    options.search.space_lo--;
    options.search.seed = 1; /* another search, which compares anew */
    run();
    ck_assert_int_eq(fake.compares, 2);
    ck_assert_int_eq(report.best.value, 40011);
    ck_assert_double_eq(report.best.median_ms, ms);
    ck_assert(!runs_as_alone());
}
END_TEST

/* Rows of padding were faster in the finals of a search that had no time to climb.  A later search
 * still fits schedules to packed tokens, as it times all else. */
START_TEST(packed_tokens_are_compared_with_their_like)
{
    static int lengths[] = {4};
    search_one_plan();
    fake.workload.lengths = lengths;
    fake.packing = 1.25;
    fake.seconds_per_segment = 0.1;
    options.search.time_limit_s = 2;
    run();
    ck_assert(report.best.final && !report.best.packed);
    ck_assert(runs_as_alone());
    options.search.time_limit_s = 0;
    options.search.space_lo--;
    options.search.seed = 1; /* another search, which compares anew */
    run();
    fake.workload.lengths = NULL;
    ck_assert_int_gt(fake.fits, 0);
    ck_assert(!fake.unlike);
}
END_TEST

SUITE("search/fitted", setup, teardown, ONCE(fitted_schedules_win), ONCE(they_are_explained),
      ONCE(fastest_alone_stay), ONCE(tries_are_told), ONCE(tries_that_fail_are_told),
      ONCE(way_that_is_given_up_stays), ONCE(slow_plans_are_not_fitted),
      ONCE(noise_changes_nothing), ONCE(plan_begins_with_its_fastest_way),
      ONCE(whole_space_fits_none), ONCE(later_search_keeps_them),
      ONCE(packed_tokens_are_compared_with_their_like))
