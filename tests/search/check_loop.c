/* A search by any strategy, on a made-up space. */
#include "made_up.h"
#include "search/study_int.h"
#include "tests/suite.h"

static struct made_up space; /* 300 KB: not on the stack of a test */
static struct history history;
static struct search_result found;
static void setup(void)
{
    made_up_init(&space, 1, 32768, 49152);
    st = STATUS_INIT;
}

static void teardown(void)
{
    history_release(&history);
}

static struct search_options options_of(const char *strategy)
{
    return (struct search_options){.strategy = strategy_find(strategy),
                                   .space_lo = 32768,
                                   .space_hi = 49152,
                                   .seed = 1,
                                   .quantile = 0.1,
                                   .stop = &space.stop};
}

static void run(const struct search_options *o)
{
    struct evaluator e = made_up_evaluator(&space);
    OK(search_loop(o, &e, &history, NULL, NULL, &found, &st));
    ck_assert_int_eq(st.code, STATUS_OK);
}

/* What holds after every search, whoever proposed. */
static void check_history(unsigned lo, unsigned hi)
{
    bool seen[VALUE_MAX + 1] = {false};
    for (int i = 0; i < history.count; i++) {
        unsigned value = plan_value(history.items[i].plan);
        ck_assert_msg(!seen[value], "%u was measured twice", value);
        ck_assert_msg(value >= lo && value <= hi, "%u is outside %u..%u", value, lo, hi);
        seen[value] = true;
    }
}

TEST_LOOP(budget_is_exact, 0, strategy_count)
{
    static const int budgets[] = {1, 7, 8, 9, 33};
    struct search_options o = options_of(strategies[_i].name);
    for (size_t i = 0; i < ARRAY_LEN(budgets); i++) { /* each goes on where the last stopped */
        o.budget = budgets[i];
        run(&o);
        ck_assert_int_eq(history.count, budgets[i]);
        ck_assert_int_eq(space.measured, budgets[i]);
        ck_assert_int_eq(found.stopped_by, STOP_BUDGET);
    }
    check_history(32768, 49151);
}

TEST_LOOP(space_is_exhausted_each_value_once, 0, strategy_count)
{
    struct search_options o = options_of(strategies[_i].name);
    o.space_lo = 40000; /* below 49152 all values are distinct plans */
    o.space_hi = 40019;
    run(&o);
    ck_assert_int_eq(found.stopped_by, STOP_SPACE);
    ck_assert_int_eq(history.count, 20);
    check_history(40000, 40019);
}

TEST_LOOP(failed_and_censored_plans_count_and_never_win, 0, strategy_count)
{
    struct search_options o = options_of(strategies[_i].name);
    o.space_lo = 40000;
    o.space_hi = 40039;
    space.censor_value = o.space_lo; /* the fastest */
    for (unsigned v = o.space_lo; v <= o.space_hi; v++)
        if (made_up_ms(&space, v) < made_up_ms(&space, space.censor_value))
            space.censor_value = v;
    space.fail_value = space.censor_value == 40011 ? 40012 : 40011;
    run(&o);
    ck_assert_int_eq(history.count, 40);
    int failed = 0, censored = 0;
    for (int i = 0; i < history.count; i++) {
        failed += history.items[i].outcome.status == TRIAL_FAILED;
        censored += history.items[i].outcome.status == TRIAL_CENSORED;
    }
    ck_assert_int_eq(failed, 1);
    ck_assert_int_eq(censored, 1);
    ck_assert_int_eq(history.items[found.best].outcome.status, TRIAL_OK);
}

/* Of a censored plan that it takes at least so long; of a failed one nothing. */
TEST(what_a_model_learns_from)
{
    const struct plan plans[] = {{.fused = 1}, {.fused = 2}, {.fused = 3}};
    history_add(&history, plans[0], (struct outcome){.status = TRIAL_OK, .ms = 2});
    history_add(&history, plans[1], (struct outcome){.status = TRIAL_FAILED, .ms = NAN});
    history_add(&history, plans[2], (struct outcome){.status = TRIAL_CENSORED, .ms = 5});
    SCOPED_BY(model_data_release) struct model_data t = training_of(&history);
    ck_assert_int_eq(t.count, 2);
    ck_assert(plan_equal(t.plans[1], plans[2]));
    ck_assert_double_eq(t.ms[1], 5);
}

/* All plans that fuse ops 0 and 1. */
static bool first_boundary_fails(void *ctx, struct plan p)
{
    return (p.fused & 1) != 0;
}

TEST_LOOP(plans_known_to_fail_are_left_out, 0, strategy_count)
{
    struct search_options o = options_of(strategies[_i].name);
    struct evaluator e = made_up_evaluator(&space);
    e.fails = first_boundary_fails;
    o.space_lo = 40000;
    o.space_hi = 40063;
    int runnable = 0;
    for (unsigned v = o.space_lo; v <= o.space_hi; v++)
        runnable += !first_boundary_fails(NULL, plan_from_value(v));
    OK(search_loop(&o, &e, &history, NULL, NULL, &found, &st));
    ck_assert_int_eq(history.count, runnable);
    for (int i = 0; i < history.count; i++)
        ck_assert(!first_boundary_fails(NULL, history.items[i].plan));
}

static int expects(const struct strategy_context *c, int max, double expected_ms,
                   struct proposal *out)
{
    *out = (struct proposal){.count = 1, .plans = {c->space[0]}, .expected_ms = expected_ms};
    return 0;
}

static int expects_more(const struct strategy_context *c, int max, struct proposal *out,
                        struct status *status)
{
    return expects(c, max, 0.997, out); /* more than 0.2 % faster than all */
}

static int expects_no_more(const struct strategy_context *c, int max, struct proposal *out,
                           struct status *status)
{
    return expects(c, max, 0.999, out);
}

/* All plans take the same time, so nothing improves. */
static int same_time(void *ctx, struct plan p, struct outcome *out, struct status *status)
{
    *out = (struct outcome){.status = TRIAL_OK, .ms = 1};
    return 0;
}

TEST(convergence_waits_for_patience_and_for_expectation)
{
    static const struct strategy content = {
        .name = "content", .summary = "", .propose = expects_no_more};
    static const struct strategy hopeful = {
        .name = "hopeful", .summary = "", .propose = expects_more};
    struct evaluator e = made_up_evaluator(&space);
    e.measure = same_time;
    struct search_options o = options_of("random");
    o.strategy = &content;
    OK(search_loop(&o, &e, &history, NULL, NULL, &found, &st));
    ck_assert_int_eq(found.stopped_by, STOP_CONVERGED);
    ck_assert_int_eq(history.count, CONVERGED_PATIENCE + 1);
    ck_assert_int_ge(history.count, 32);
    history_release(&history);
    o.strategy = &hopeful;
    o.budget = 200;
    OK(search_loop(&o, &e, &history, NULL, NULL, &found, &st));
    ck_assert_int_eq(found.stopped_by, STOP_BUDGET);
}

/* Of all plans only the unfused one has no segment that was not timed. */
TEST(plans_of_timed_segments_come_first)
{
    struct search_options o = options_of("random");
    o.budget = 3;
    for (int i = 0; i < SLOT_COUNT; i++)
        if (slot_segment(i).first < slot_segment(i).last)
            space.times.ms[i] = NAN;
    run(&o);
    ck_assert_uint_eq(plan_value(history.items[0].plan), VALUE_UNFUSED);
    ck_assert_int_eq(history.count, 3);
}

/* ---- noise: convergence, finalists, and whether plans differ at all -------------------------- */

static bool noisy;

/* Each plan takes 0.3 % less than the one before, with 1 % of noise or without. */
static int ever_faster(void *ctx, struct plan p, struct outcome *out, struct status *status)
{
    *out = (struct outcome){
        .status = TRIAL_OK, .ms = pow(0.997, history.count / 20), .noise = noisy ? 0.01 : 0};
    return 0;
}

/* What improves by less than the noise is no reason to go on. */
TEST_LOOP(convergence_asks_for_more_than_noise, 0, 2)
{
    static const struct strategy content = {
        .name = "content", .summary = "", .propose = expects_no_more};
    struct evaluator e = made_up_evaluator(&space);
    e.measure = ever_faster;
    struct search_options o = options_of("random");
    o.strategy = &content;
    o.budget = 100;
    noisy = _i == 1;
    OK(search_loop(&o, &e, &history, NULL, NULL, &found, &st));
    ck_assert_int_eq(found.stopped_by, noisy ? STOP_CONVERGED : STOP_BUDGET);
}

/* Times that spread as noise does tell nothing; the same times with less noise do. */
TEST_LOOP(noise_hides_differences, 0, 2)
{
    struct rng r = {3};
    double noise = _i == 0 ? 0.05 : 0.005;
    for (int i = 0; i < 60; i++)
        history_add(
            &history, space.space[i],
            (struct outcome){.status = TRIAL_OK, .ms = 1 + 0.05 * rng_normal(&r), .noise = noise});
    ck_assert(history_indistinct(&history) == (_i == 0));
    ck_assert_double_eq_tol(history_noise(&history), 1.96 * noise, 1e-12);
}

/* A single plan differs from none. */
TEST(few_plans_do_not_tell_noise)
{
    struct outcome equal = {.status = TRIAL_OK, .ms = 1, .noise = 0.05};
    for (int i = 0; i < 6; i++) {
        ck_assert(!history_indistinct(&history));
        history_add(&history, space.space[i], equal);
    }
    ck_assert(history_indistinct(&history));
}

/* Twelve where noise may hide the winner, four where it cannot. */
TEST_LOOP(finalists_by_noise, 0, 2)
{
    struct finalist finalists[FINALISTS_MOST];
    struct rng r = {4};
    double noise = _i == 0 ? 0.05 : 0.0001;
    for (int i = 0; i < 60; i++)
        history_add(&history, space.space[i * 200],
                    (struct outcome){.status = TRIAL_OK,
                                     .ms = space.ms[i * 200] * (1 + noise * rng_normal(&r)),
                                     .noise = noise});
    int count = finalists_of(&history, &space.times, finalists);
    ck_assert_int_eq(count, _i == 0 ? FINALISTS_MOST : FINALISTS_LEAST);
    if (_i == 1)
        ck_assert_int_eq(finalists[0].index, history_best(&history));
}

SUITE("search/loop", setup, teardown)
