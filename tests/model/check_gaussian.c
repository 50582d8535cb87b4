/* The linear posterior over segments. */
#include "model/model.h"
#include "tests/made_up.h"
#include "tests/suite.h"

enum { PLANS = 60, LAYERS = 12 };

static struct segment_times truth, alone; /* of a layer in a plan, and as timed alone */
static struct plan plans[PLANS];
static double ms[PLANS];

static double true_ms(struct plan p)
{
    return LAYERS * additive_ms(&truth, p);
}

/* A slot takes in a plan what it takes alone, 4 % of it more or less, and a gap. */
static void setup(void)
{
    struct rng r = {17};
    struct plan space[PLAN_SPACE];
    int count = plan_space(32768, 49152, space);
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct segment s = slot_segment(i);
        alone.ms[i] = 0.02 * (s.last - s.first + 1) * (0.7 + 0.3 * rng_unit(&r));
        truth.ms[i] = alone.ms[i] * (1 + 0.04 * rng_normal(&r)) + 0.001;
    }
    for (int i = 0; i < PLANS; i++) {
        plans[i] = space[rng_below(&r, (uint32_t)count)];
        ms[i] = true_ms(plans[i]) * (1 + 0.001 * rng_normal(&r));
    }
}

static struct gaussian *fit(int count, const struct segment_times *times, const double *noise)
{
    const struct gaussian_data d = {.count = count, .plans = plans, .ms = ms, .noise = noise};
    return gaussian_fit(&d, times);
}

/* The root mean square of the relative errors on plans that were not measured. */
static double error_of(const struct segment_times *expected)
{
    struct plan space[PLAN_SPACE];
    int count = plan_space(32768, 49152, space);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += pow(additive_ms(expected, space[i]) / true_ms(space[i]) - 1, 2);
    return sqrt(sum / count);
}

static double fitted_error(int count, const struct segment_times *times)
{
    SCOPED struct gaussian *g = fit(count, times, NULL);
    struct segment_times expected;
    gaussian_times(g, &expected);
    return error_of(&expected);
}

TEST(measured_plans_move_the_sum)
{
    double few = fitted_error(2, &alone), many = fitted_error(PLANS, &alone);
    ck_assert_msg(few < 0.05, "after 2 plans: %.4f", few);
    ck_assert_msg(many < 0.6 * few, "after %d plans: %.4f, after 2: %.4f", PLANS, many, few);
}

/* Half of the slots were not timed: plans and operators stand in. */
TEST(untimed_slots_have_a_prior)
{
    struct segment_times half = alone;
    for (int i = 0; i < SLOT_COUNT; i++)
        if (i % 2 == 0 && slot_segment(i).first < slot_segment(i).last)
            half.ms[i] = NAN;
    double without = fitted_error(PLANS, NULL), some = fitted_error(PLANS, &half);
    ck_assert_msg(some < 0.05 && without < 0.05, "half: %.4f, none: %.4f", some, without);
}

TEST(no_plans_at_all)
{
    struct segment_times expected;
    struct gaussian *g = fit(0, &alone, NULL);
    gaussian_times(g, &expected);
    for (int i = 0; i < SLOT_COUNT; i++)
        ck_assert_double_eq_tol(expected.ms[i], alone.ms[i], 1e-9);
    free(g);
    free(fit(0, NULL, NULL));
}

/* Errors are as large as it says: the squares of errors over their standard deviations are about 1
 * on average. */
TEST(its_deviations_are_honest)
{
    struct segment_times expected;
    struct plan space[PLAN_SPACE];
    int count = plan_space(32768, 49152, space), n = 0;
    SCOPED struct gaussian *g = fit(PLANS, &alone, NULL);
    double sum = 0;
    gaussian_times(g, &expected);
    for (int i = 0; i < count; i += 97, n++)
        sum += pow(
            (additive_ms(&expected, space[i]) - true_ms(space[i])) / gaussian_sd(g, space[i]), 2);
    ck_assert_msg(sum / n > 0.2 && sum / n < 3, "%.3f", sum / n);
}

/* A plan whose time is known to be noise moves little. */
TEST(noise_counts_less)
{
    double noise[PLANS] = {0}, wrong = ms[0];
    struct segment_times with, without;
    ms[0] *= 1.5;
    noise[0] = 0.5;
    struct gaussian *g = fit(PLANS, &alone, noise);
    gaussian_times(g, &with);
    free(g);
    g = fit(PLANS, &alone, NULL);
    gaussian_times(g, &without);
    free(g);
    ms[0] = wrong;
    ck_assert_double_lt(error_of(&with), error_of(&without));
}

TEST(handwritten_time_stands_alone)
{
    const int separate = segment_index((struct segment){2, 6}); /* which the plan does not run */
    struct plan p = plan_from_value(41115);
    double whole = additive_ms(&alone, p);
    alone.ms[separate] = NAN;
    ck_assert_double_eq(additive_ms(&alone, p), whole);
    alone.ms[SLOT_HANDWRITTEN] = NAN;
    ck_assert_double_nan(additive_ms(&alone, p));
}

SUITE("model/gaussian", setup, NULL)
