/* tune() under a time limit, on a fake bench. */
#include "tune_guided.h"

/* Segments of 20 ms do not all fit into half of 2 s: the search goes on with those that did. */
TEST(time_limit_covers_everything)
{
    fake.seconds_per_segment = 0.02;
    fake.seconds_per_plan = 0.01;
    fake.speed = 100;
    options.search.budget = 0;
    options.search.time_limit_s = 2;
    run();
    ck_assert_double_le(report.seconds, 2);
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
}

/* Where threads wait for cores, the plans come first; a search on a quiet machine makes up for the
 * rest, in the same study. */
TEST(a_busy_machine_measures_plans)
{
    fake.disturbance = (struct disturbance){.measured = 100, .crowded = 51};
    run();
    int segments = fake.segments, fits = fake.fits;
    ck_assert_int_eq(fits, 0);
    ck_assert_int_eq(report.new_trials, 20);
    ck_assert(report.best.final);
    ck_assert_int_eq(said_times("the machine is busy: other schedules"), 1);
    fake.disturbance.crowded = 50;
    options.search.budget = 30;
    run();
    ck_assert_int_eq(said_times("the machine is busy: other schedules"), 1);
    ck_assert_int_gt(fake.segments, 3 * segments / 2);
    ck_assert_int_gt(fake.fits, 0);
}

/* It is never sure. */
TEST(a_busy_machine_makes_nothing_certain)
{
    options.search.budget = 0;
    fake.disturbance = (struct disturbance){.measured = 100, .crowded = 100};
    run();
    ck_assert_str_eq(report.stopped_by, "converged");
    ck_assert(!report.certainty.known);
    fake.disturbance.crowded = 0;
    run();
    ck_assert(report.certainty.known);
}

/* Runs a search without a limit, and then one in `share` of the time that its segments took, in
 * which each plan takes plan_s.  Returns how many segments the first one timed. */
static int run_in_share(double share, double plan_s)
{
    int segments = 0;
    for (int limited = 0; limited < 2; limited++) {
        if (limited == 1) {
            segments = fake.segments;
            teardown();
            setup();
            fake.seconds_per_plan = plan_s;
            options.search.time_limit_s = share * 0.02 * segments;
        }
        fake.seconds_per_segment = 0.02;
        fake.speed = 1000;
        options.search.budget = 0;
        run();
    }
    ck_assert_double_le(report.seconds, options.search.time_limit_s);
    ck_assert(report.best.final);
    return segments;
}

/* Half of the limit is too short for stage 1, and stage 2 needs little of the other half. */
TEST(segments_get_the_time_that_plans_leave)
{
    int segments = run_in_share(1.6, 0);
    ck_assert_str_eq(report.stopped_by, "converged");
    ck_assert_int_ge(fake.segments, segments - 2); /* nearly all */
}

/* To verify eleven more layers takes nearly half of the limit. */
TEST(time_of_finals_is_kept_first)
{
    fake.verify_s = 0.08;
    fake.speed = 100;
    fake.seconds_per_segment = 0.005;
    fake.seconds_per_plan = 0.01;
    options.search.budget = 0;
    options.search.time_limit_s = 2;
    run();
    ck_assert_str_eq(report.stopped_by, "time");
    ck_assert_int_gt(fake.plans, 2);
    ck_assert_int_eq(fake.compares, 1);
    ck_assert(report.best.final);
    ck_assert(isfinite(report.baselines[0].speedup.low));
    ck_assert_double_le(report.seconds, 2);
}

/* Most of the time of building passes beside that of timing. */
TEST(compilers_run_beside_the_device)
{
    double seconds[2];
    int built[2];
    for (int beside = 0; beside < 2; beside++) {
        fake.seconds_per_build = fake.seconds_per_segment = 0.1;
        fake.beside = beside != 0;
        run();
        seconds[beside] = report.seconds;
        built[beside] = fake.built;
        teardown();
        setup();
    }
    ck_assert_int_ge(built[1], built[0]);
    ck_assert_int_le(built[1], 1.1 * built[0]); /* what was likely is not always timed */
    ck_assert_double_ge(seconds[0] - seconds[1], 0.7 * 0.1 * built[0]);
}

/* As one that a budget or convergence ended does.  More time goes on. */
TEST(search_ended_by_its_time_answers_at_once)
{
    fake.seconds_per_plan = 0.01;
    fake.speed = 100;
    options.search.budget = 0;
    options.search.time_limit_s = 0.3000001; /* the database holds all digits */
    options.search.quantile = 0.1000001;
    run();
    ck_assert_str_eq(report.stopped_by, "time");
    ck_assert(report.best.final);
    int calls = fake.calls, value = report.best.value;
    for (int i = 0; i < 2; i++) {
        run();
        ck_assert_int_eq(fake.calls, calls);
        ck_assert_str_eq(report.stopped_by, "time");
        ck_assert_int_eq(report.best.value, value);
        ck_assert_int_eq(said_times("an earlier search spent this time limit"), i + 1);
        options.search.time_limit_s = 0.2; /* nor does less */
    }
    options.search.seed = 2; /* another search */
    run();
    ck_assert_int_gt(report.new_trials, 0);
    options.search.time_limit_s = 0.6;
    run();
    ck_assert_int_gt(report.new_trials, 0);
}

/* What the search needs first is built meanwhile, and its time begins with the turn. */
TEST(a_search_waits_for_its_turn)
{
    fake.waits = true;
    fake.turn_after_s = 1000;
    options.search.time_limit_s = 100;
    fake.stop = 1;
    ck_assert_int_lt(tune(bench, db, &options, &report, &st), 0);
    ck_assert_int_eq(st.code, STATUS_INTERRUPTED);
    ck_assert_int_gt(fake.built, 0);
    ck_assert_int_eq(fake.calls, 0);
    ck_assert_int_eq(report.best.value, -1);
    st = STATUS_INIT;
    fake.stop = 0;
    fake.waits = true;
    run();
    ck_assert_int_gt(report.new_trials, 10);
    ck_assert_double_lt(report.seconds, 101);
    ck_assert(report.best.final);
    ck_assert(fake.ended);
}

/* While another process keeps the device.  _i: in stage 1, at a plan, in the finals. */
TEST_LOOP(limit_passes_while_waiting, 0, 3)
{
    run();
    const int calls[] = {20, fake.calls - fake.fits - 5, fake.calls};
    teardown();
    setup();
    options.search.time_limit_s = 100;
    fake.no_turn_at_call = calls[_i];
    run();
    ck_assert_double_eq(fake.limit_s, 100);
    ck_assert_str_eq(report.stopped_by, "time");
    ck_assert(!report.best.final);
    ck_assert_int_eq(report.new_trials, fake.plans);
    run(); /* what is owed comes first */
    ck_assert_int_eq(fake.compares, 1);
    ck_assert(report.best.final);
}

/* A made-up plan takes what its segments take in one layer. */
TEST(a_converged_search_says_how_sure_it_is)
{
    fake.workload.layers = 1;
    options.search.budget = 30;
    run();
    ck_assert(!report.certainty.known);
    options.search.budget = 0;
    run();
    ck_assert_str_eq(report.stopped_by, "converged");
    ck_assert(report.certainty.known);
    ck_assert_int_eq(report.certainty.open, report.space - report.space_trials);
    ck_assert_double_gt(report.certainty.largest, 0);
    int calls = fake.calls, trials = report.total_trials;
    double gain = report.certainty.gain;
    ck_assert(gain >= 1 - CLOSE_SHARE || trials > CLOSE_MOST);
    run();
    ck_assert_int_eq(fake.calls, calls); /* it is as sure as before */
    ck_assert_double_eq(report.certainty.gain, gain);
}

SUITE("search/tune_time", setup, teardown)
