/* tune() on a fake bench whose pace changes. */
#include "tune_guided.h"

static int divided;    /* plans whose time was divided by the drift */
static int runs_until; /* of plans and of the anchor, at the latest such plan */

/* What is told of a plan is its time without the drift, and the time that was measured. */
static void see_drift(void *ctx, const struct tune_state *state)
{
    if (state->latest == NULL || state->latest->outcome.status != TRIAL_OK)
        return;
    const struct outcome *o = &state->latest->outcome;
    double usual = made_up_ms(&fake.space, plan_value(state->latest->plan));
    double took = o->ms * (1 + o->drift) / usual;
    ck_assert_msg(fabs(took - 1) < 1e-9 || fabs(took - 3) < 1e-9, "took %g times its time", took);
    if (o->drift <= 0)
        return;
    ck_assert_double_eq_tol(o->ms, usual, 1e-9);
    if (divided++ > 0) /* it is not taken for a hopeless one, nor the best plan timed again */
        ck_assert_int_le(fake.plans - runs_until, 2);
    runs_until = fake.plans;
}

/* From plan 25 on the machine takes three times as long: the anchor shows it at the next turn, and
 * later plans count as if it had not. */
TEST(drift_is_divided_out)
{
    divided = 0;
    options.step = see_drift;
    fake.slow_from_plan = 25;
    options.search.budget = 60;
    run();
    ck_assert_msg(
        said_times("note: plan 43690 (unfused: a kernel for each operator) takes 3.000 times") == 1,
        "%s", said.ptr);
    ck_assert_double_eq_tol(report.drift, 3, 1e-9);
    ck_assert_int_gt(divided, 0);
}

/* The machine stays at its new pace, but for what noise explains: that is told once. */
TEST(a_drift_is_told_once)
{
    fake.slow_from_plan = 25;
    fake.jitter = 0.004;
    options.search.budget = 140;
    options.search.endless = true;
    run();
    ck_assert_msg(said_times("note: plan 43690 (unfused: a kernel for each operator) takes") == 1,
                  "%s", said.ptr);
    ck_assert_double_eq_tol(report.drift, 3, 0.04);
}

/* _i: the one plan that takes longer, once the anchor itself: plan 22. */
TEST_LOOP(a_moment_is_no_drift, 20, 24)
{
    fake.slow_from_plan = _i;
    fake.slow_plans = 1;
    options.search.budget = 30;
    run();
    ck_assert_double_eq(report.drift, 1);
}

/* The machine is as fast as at first again. */
TEST(a_drift_that_ends_is_told)
{
    fake.slow_from_plan = 25;
    fake.slow_plans = 60; /* the anchor's turn comes within them */
    fake.jitter = 0.004;
    options.search.budget = 140;
    options.search.endless = true;
    run();
    ck_assert_msg(said_times("taken as they are again") == 1, "%s", said.ptr);
    ck_assert_double_eq(report.drift, 1);
}

SUITE("search/anchor", setup, teardown)
