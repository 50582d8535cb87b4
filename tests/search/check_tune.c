/* tune() on a fake bench: what it finds, stores and tells. */
#include "search/study_int.h"
#include "tune_guided.h"

TEST(finds_stores_and_reports)
{
    run();
    struct stored *s = read_back();
    ck_assert_int_eq(s->plans, 20);
    ck_assert_int_eq(s->segments, fake.segments);
    ck_assert_int_eq(fake.built, fake.segments);
    ck_assert(0 < fake.bounded && fake.bounded < fake.segments); /* what follows the first */
    ck_assert_int_eq(fake.compares, 1);
    ck_assert_int_ge(s->finals, 6); /* four, and two baselines that do not win here */
    ck_assert(s->seen[VALUE_UNFUSED] && s->seen[41115]);
    ck_assert_int_eq(report.new_trials, 20);
    ck_assert_int_eq(report.total_trials, 20);
    ck_assert_int_eq(report.failed_trials, 0);
    ck_assert_int_eq(report.space, 16384);
    ck_assert_str_eq(report.stopped_by, "budget");
    ck_assert(report.best.final);
    double best_ms = INFINITY;
    for (int v = 0; v <= VALUE_MAX; v++)
        if (s->ok[v])
            best_ms = fmin(best_ms, made_up_ms(&fake.space, (unsigned)v));
    ck_assert_double_eq(report.best.ms.median, best_ms);
    double unfused_ms = made_up_ms(&fake.space, VALUE_UNFUSED);
    ck_assert_double_eq(report.baselines[0].ms.median, unfused_ms);
    ck_assert_double_eq(report.baselines[0].ms.low, 0.99 * unfused_ms);
    ck_assert_double_eq(report.baselines[1].ms.median, made_up_ms(&fake.space, 41115));
    double speedup = unfused_ms / best_ms;
    ck_assert_double_eq_tol(report.baselines[0].speedup.low, speedup, 0.03 * speedup);
    ck_assert_double_eq_tol(report.baselines[0].speedup.high, speedup, 0.03 * speedup);
    ck_assert(!baseline_ties(&report.baselines[0]));
    ck_assert_str_ne(report.baselines[0].compared_at, "");
}

static void store_beside(void *ctx, const struct tune_state *state)
{
    (void)state;
    bool *stored = ctx;
    if (!*stored)
        plant_plan(40011, 1e9);
    *stored = true;
}

/* Another search stores a plan meanwhile, which this one does not read. */
TEST(plans_of_searches_beside_it_are_counted)
{
    bool stored = false;
    options.step = store_beside;
    options.ctx = &stored;
    run();
    ck_assert_int_eq(report.new_trials, 20);
    ck_assert_int_eq(report.total_trials, read_back()->plans);
    ck_assert_int_eq(report.space_trials, read_back()->plans);
    ck_assert_int_eq(report.total_trials, 21);
}

/* _i: its budget is spent, or it has converged. */
TEST_LOOP(ended_search_measures_nothing, 0, 2)
{
    options.search.budget = _i == 0 ? 20 : 0;
    run();
    int value = report.best.value, calls = fake.calls, trials = report.total_trials;
    double ms = report.best.ms.median;
    run();
    ck_assert_str_eq(report.stopped_by, _i == 0 ? "budget" : "converged");
    ck_assert_int_eq(fake.calls, calls);
    ck_assert_int_eq(report.new_trials, 0);
    ck_assert_int_eq(report.total_trials, trials);
    ck_assert_int_eq(report.best.value, value);
    ck_assert_double_eq(report.best.ms.median, ms);
    ck_assert(!isnan(report.baselines[0].ms.median));
}

/* The slowest plan that ran. */
static unsigned slowest(const struct stored *s)
{
    unsigned slowest = 40011;
    for (unsigned v = 0; v <= VALUE_MAX; v++)
        if (s->ok[v] && v != VALUE_UNFUSED && v != 41115 &&
            (!s->ok[slowest] || made_up_ms(&fake.space, v) > made_up_ms(&fake.space, slowest)))
            slowest = v;
    return slowest;
}

/* _i: it was measured already, but is no finalist.  The budget is spent. */
TEST_LOOP(baseline_added_later_is_compared, 0, 2)
{
    run();
    struct stored *s = read_back();
    unsigned value = _i == 0 ? 40011 : slowest(s);
    ck_assert_int_eq(s->seen[value], _i);
    options.baselines.plans[options.baselines.count++] = plan_from_value(value);
    for (int again = 0; again < 2; again++) {
        run();
        ck_assert_int_eq(fake.compares, 2);
        ck_assert_int_eq(report.new_trials, again == 0 && _i == 0);
        ck_assert_int_eq(report.baseline_count, 3);
        ck_assert_double_eq(report.baselines[2].ms.median, made_up_ms(&fake.space, value));
        ck_assert(isfinite(report.baselines[2].speedup.median));
    }
    struct baselines stored = {0};
    baselines_of_search(report.best.search_options, &stored);
    ck_assert_mem_eq(&stored, &options.baselines, sizeof(stored));
    options.baselines.count = 1; /* fewer are no reason to compare again */
    run();
    ck_assert_int_eq(fake.compares, 2);
    ck_assert_int_eq(report.baseline_count, 1);
}

/* Samples of one round are pairs: a machine that slows down during all of them changes no ratio. */
TEST(speedup_of_pairs)
{
    double slowing[] = {1, 2, 3, 4, 5, 6}, twice[] = {2, 4, 6, 8, 10, 12};
    struct trial plan = {.ms = {3.5, 1, 6}, .sample_count = 6, .samples_ms = slowing};
    struct trial baseline = {.ms = {7, 2, 12}, .sample_count = 6, .samples_ms = twice};
    struct baseline_time b = baseline_beside(plan_from_value(5), &baseline, &plan, "now");
    ck_assert_double_eq(b.speedup.low, 2);
    ck_assert_double_eq(b.speedup.high, 2);
    ck_assert(!baseline_ties(&b));
    baseline.sample_count = 0; /* without pairs the intervals remain */
    b = baseline_beside(plan_from_value(5), &baseline, &plan, "now");
    ck_assert_double_eq(b.speedup.median, 2);
    ck_assert_double_eq(b.speedup.low, 2. / 6);
    ck_assert_double_eq(b.speedup.high, 12);
    ck_assert(baseline_ties(&b));
    ck_assert_double_eq(baseline_beside(plan_from_value(5), &plan, &plan, "now").speedup.low, 1);
    b = baseline_beside(plan_from_value(5), &baseline, NULL, "now");
    ck_assert_double_eq(b.ms.median, 7);
    ck_assert(isnan(b.speedup.median) && !baseline_ties(&b));
    ck_assert_str_eq(b.compared_at, "");
    baseline.status = TRIAL_FAILED;
    b = baseline_beside(plan_from_value(5), &baseline, &plan, "now");
    ck_assert(isnan(b.ms.median) && isnan(b.speedup.median));
    ck_assert_str_eq(b.compared_at, "");
}

/* The fastest of the others beside the best plan; none before there are finals. */
TEST(the_runner_up_is_read)
{
    const struct baseline_time *next = &report.runner_up;
    options.search.budget = 12;
    run();
    ck_assert(!plan_equal(next->plan, plan_from_value((unsigned)report.best.value)));
    ck_assert_double_eq_tol(next->speedup.median, next->ms.median / report.best.ms.median, 0.02);
    ck_assert_double_gt(next->speedup.median, 1);
    for (int i = 0; i < report.baseline_count; i++)
        ck_assert_double_le(next->ms.median, report.baselines[i].ms.median);
    report.best.final = false;
    OK(runner_up_read(db, 1, &report.best, &report.runner_up, &st));
    ck_assert(isnan(next->speedup.median));
}

/* The finals of an interrupted search are made up for. */
TEST_LOOP(missed_finals_are_made_up_for, 0, 2)
{
    run();
    plant_plan(report.best.value == 40011 ? 40012 : 40011, 1e-3);
    options.search.budget = 21 * _i; /* spent, or none */
    options.search.space_lo = options.search.space_hi = VALUE_UNFUSED;
    run();
    ck_assert_int_eq(report.new_trials, 0);
    ck_assert_int_eq(fake.compares, 2);
    run();
    ck_assert_int_eq(fake.compares, 2);
}

TEST(other_inputs_are_another_study)
{
    run();
    fake.inputs.seed = 7;
    run();
    ck_assert_int_eq(report.new_trials, 20);
    fake.inputs.ranges = RANGES_WIDE;
    run();
    ck_assert_int_eq(report.new_trials, 20);
}

TEST(a_steady_machine_has_no_drift)
{
    options.search.budget = 60;
    run();
    ck_assert_double_eq(report.drift, 1);
    ck_assert(!report.indistinct);
    int proposed = 0;
    for (int i = SIGNAL_SUM; i < SIGNAL_COUNT; i++) {
        ck_assert_int_gt(report.proposed[i], 0);
        proposed += report.proposed[i];
    }
    ck_assert_int_eq(proposed, report.new_trials - 2);
    int models = report.proposed[SIGNAL_REGRESSOR] + report.proposed[SIGNAL_CLASSIFIER];
    ck_assert_int_ge(4 * models, proposed - 4); /* but for the last batch, which is cut off */
}

/* With sequences of one token each, until lengths are set to null. */
static void run_with_lengths(void)
{
    static int lengths[64];
    for (int b = 0; b < fake.workload.batch; b++)
        lengths[b] = 1;
    fake.workload.lengths = lengths;
    run();
}

/* _i: packed plans are faster, slower. */
TEST_LOOP(a_search_packs_and_finalists_are_tried_padded, 0, 2)
{
    static const double packing[] = {0.5, 1.25};
    fake.packing = packing[_i];
    run_with_lengths();
    struct stored *s = read_back();
    double ms = made_up_ms(&fake.space, (unsigned)report.best.value);
    ck_assert_int_eq(report.best.packed, _i == 0);
    ck_assert_str_eq(report.unstable, ""); /* another time with rows of padding is no wonder */
    ck_assert_double_eq(report.best.ms.median, _i == 0 ? 0.5 * ms : ms);
    ck_assert_int_eq(fake.compared[0].plans, 2 * s->finals - 2); /* but for the baselines */
    ck_assert_int_eq(s->packed, s->segments + s->plans + (_i == 0 ? s->finals : 2));
    ck_assert_double_eq(report.baselines[0].ms.median,
                        packing[_i] * made_up_ms(&fake.space, VALUE_UNFUSED));
    fake.workload.lengths = NULL;
}

/* _i: whether the packed ones fail.  The other way would be slower. */
TEST_LOOP(a_finalist_that_fails_one_way_runs_the_other, 0, 2)
{
    fake.packing = _i == 0 ? 1.25 : 0.5;
    fake.fails_compared[_i] = true;
    run_with_lengths();
    double ms = made_up_ms(&fake.space, (unsigned)report.best.value);
    ck_assert(report.best.final);
    ck_assert(!baselines_have(&options.baselines, plan_from_value((unsigned)report.best.value)));
    ck_assert_int_eq(report.best.packed, _i == 0);
    ck_assert_double_eq(report.best.ms.median, _i == 0 ? 1.25 * ms : ms);
    fake.workload.lengths = NULL;
}

SUITE("search/tune", setup, teardown)
