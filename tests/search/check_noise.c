/* What noise has a say in: convergence, finalists, and whether plans differ at all. */
#include "made_up.h"
#include "search/study_int.h"
#include "tests/suite.h"

#include <math.h>

static struct status st;
static struct made_up space;
static struct history history;
static struct search_result found;

static void setup(void)
{
    made_up_init(&space, 1, 32768, 49152);
}

static void teardown(void)
{
    history_release(&history);
}

static int expects_no_more(const struct strategy_context *c, int max, struct proposal *out,
                           struct status *status)
{
    (void)max, (void)status;
    *out = (struct proposal){.count = 1, .plans = {c->space[0]}, .expected_ms = INFINITY};
    return 0;
}

static bool noisy;

/* Each plan takes 0.3 % less than the one before, with 1 % of noise or without. */
static int ever_faster(void *ctx, struct plan p, struct outcome *out, struct status *status)
{
    (void)ctx, (void)p, (void)status;
    *out = (struct outcome){
        .status = TRIAL_OK, .ms = pow(0.997, history.count / 20), .noise = noisy ? 0.01 : 0};
    return 0;
}

/* What improves by less than the noise is no reason to go on. */
START_TEST(convergence_asks_for_more_than_noise)
{
    static const struct strategy content = {
        .name = "content", .summary = "", .propose = expects_no_more};
    struct evaluator e = made_up_evaluator(&space);
    e.measure = ever_faster;
    struct search_options o = {
        .strategy = &content, .space_lo = 32768, .space_hi = 49152, .budget = 100, .quantile = 0.1};
    noisy = _i == 1;
    OK(search_loop(&o, &e, &history, NULL, NULL, &found, &st));
    ck_assert_int_eq(found.stopped_by, noisy ? STOP_CONVERGED : STOP_BUDGET);
}
END_TEST

/* Times that spread as noise does tell nothing; the same times with less noise do. */
START_TEST(noise_hides_differences)
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
END_TEST

/* Twelve where noise may hide the winner, four where it cannot. */
START_TEST(finalists_by_noise)
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
END_TEST

SUITE("search/noise", setup, teardown, LOOP(convergence_asks_for_more_than_noise, 0, 2),
      LOOP(noise_hides_differences, 0, 2), LOOP(finalists_by_noise, 0, 2))
