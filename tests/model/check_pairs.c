/* The posterior that knows neighbours, on made-up spaces: there neighbours help or hinder each
 * other by up to 8 %. */
#include "model/model.h"
#include "tests/made_up.h"
#include "tests/suite.h"

#include <math.h>

enum { PLANS = 100 };

static struct made_up space;
static struct plan plans[2 * PLANS];
static double ms[2 * PLANS];

static void setup(void)
{
    struct rng r = {23};
    made_up_init(&space, 7, 32768, 49152);
    for (int i = 0; i < 2 * PLANS; i++) {
        int at = (int)rng_below(&r, (uint32_t)space.count);
        plans[i] = space.space[at];
        ms[i] = space.ms[at];
    }
}

static const struct gaussian_data data = {.count = PLANS, .plans = plans, .ms = ms};

/* The root mean square of the relative errors on plans that were not measured. */
static double error_of(struct pairs *f)
{
    double sum = 0;
    for (int i = 0; i < space.count; i++)
        sum += pow(pairs_expect(f, space.space[i]).ms / space.ms[i] - 1, 2);
    return sqrt(sum / space.count);
}

static double error_of_sums(void)
{
    struct segment_times expected;
    struct gaussian *g = gaussian_fit(&data, &space.times);
    double sum = 0;
    gaussian_times(g, &expected);
    gaussian_free(g);
    for (int i = 0; i < space.count; i++)
        sum += pow(additive_ms(&expected, space.space[i]) / space.ms[i] - 1, 2);
    return sqrt(sum / space.count);
}

START_TEST(it_learns_what_sums_leave_out)
{
    struct pairs *f = pairs_fit(&data, &space.times);
    double pairs = error_of(f), sums = error_of_sums();
    ck_assert_msg(pairs < 0.8 * sums, "with neighbours: %.4f, sums: %.4f", pairs, sums);
    pairs_free(f);
}
END_TEST

/* The squares of errors over their standard deviations are about 1 on average. */
START_TEST(its_deviations_are_honest)
{
    struct pairs *f = pairs_fit(&data, &space.times);
    double sum = 0;
    for (int i = 0; i < space.count; i++) {
        struct pairs_time t = pairs_expect(f, space.space[i]);
        sum += pow((t.ms - space.ms[i]) / t.sd, 2);
    }
    ck_assert_msg(sum / space.count > 0.2 && sum / space.count < 3, "%.3f", sum / space.count);
    pairs_free(f);
}
END_TEST

/* It changes no expected time, and leaves less doubt about this plan and those like it. */
START_TEST(a_plan_taken_for_measured_is_certain)
{
    struct pairs *f = pairs_fit(&data, &space.times);
    struct plan p = space.space[4321], like = plan_of(p.fused ^ 1U, p.handwritten);
    struct pairs_time before = pairs_expect(f, p), other = pairs_expect(f, like);
    for (int i = 0; i < PAIRS_ASSUMED_MOST + 2; i++)
        pairs_assume(f, i == 0 ? p : space.space[100 * i]);
    ck_assert_double_eq_tol(pairs_expect(f, p).ms, before.ms, 1e-6 * before.ms);
    ck_assert_double_lt(pairs_expect(f, p).sd, 0.005 * before.ms);
    ck_assert_double_lt(pairs_expect(f, p).sd, before.sd);
    ck_assert_double_lt(pairs_expect(f, like).sd, other.sd);
    pairs_free(f);
}
END_TEST

/* Of more plans than it can know, it knows the fastest. */
START_TEST(the_fastest_are_known)
{
    const struct gaussian_data all = {.count = 2 * PLANS, .plans = plans, .ms = ms};
    struct pairs *f = pairs_fit(&all, &space.times);
    int fastest = 0, slowest = 0;
    for (int i = 0; i < 2 * PLANS; i++) {
        fastest = ms[i] < ms[fastest] ? i : fastest;
        slowest = ms[i] > ms[slowest] ? i : slowest;
    }
    ck_assert_double_lt(pairs_expect(f, plans[fastest]).sd, 0.005 * ms[fastest]);
    ck_assert_double_gt(pairs_expect(f, plans[slowest]).sd, 0.005 * ms[slowest]);
    pairs_free(f);
}
END_TEST

/* A time that is known to be off by 20 % says less than one without noise. */
START_TEST(noise_counts_for_less)
{
    double noise[PLANS];
    for (int i = 0; i < PLANS; i++)
        noise[i] = 0.2;
    const struct gaussian_data noisy = {.count = PLANS, .plans = plans, .ms = ms, .noise = noise};
    struct pairs *f = pairs_fit(&noisy, &space.times), *sure = pairs_fit(&data, &space.times);
    ck_assert_double_gt(pairs_expect(f, plans[0]).sd, 3 * pairs_expect(sure, plans[0]).sd);
    pairs_free(f);
    pairs_free(sure);
}
END_TEST

START_TEST(what_was_not_timed_is_not_known)
{
    struct segment_times some = space.times;
    struct plan unfused = plan_of(0, false);
    some.ms[slot_of((struct segment){3, 3}, false)] = NAN;
    struct pairs *f = pairs_fit(&data, &some);
    ck_assert(isnan(pairs_expect(f, unfused).ms));
    pairs_assume(f, unfused);
    ck_assert(isfinite(pairs_expect(f, plan_of(0x3fff, false)).ms));
    pairs_free(f);
}
END_TEST

/* Without plans a time is the sum of the segments alone. */
START_TEST(no_plans_at_all)
{
    const struct gaussian_data none = {.count = 0};
    struct pairs *f = pairs_fit(&none, &space.times);
    for (int i = 0; i < space.count; i += 1000) {
        double sum = additive_ms(&space.times, space.space[i]);
        ck_assert_double_eq_tol(pairs_expect(f, space.space[i]).ms, sum, 1e-9 * sum);
    }
    pairs_free(f);
    pairs_free(NULL);
}
END_TEST

SUITE("model/pairs", setup, NULL, ONCE(it_learns_what_sums_leave_out),
      ONCE(its_deviations_are_honest), ONCE(a_plan_taken_for_measured_is_certain),
      ONCE(the_fastest_are_known), ONCE(noise_counts_for_less),
      ONCE(what_was_not_timed_is_not_known), ONCE(no_plans_at_all))
