/* Segment times of a workload from those of others, on made-up laws. */
#include "model/model.h"
#include "tests/suite.h"

#include <math.h>

enum { GEMM, PASS, SCORES, SLOTS_USED, SLOT_UNKNOWN = 77, WORKLOADS = 12, POINTS_MAX = 1 << 10 };

static struct transfer_point points[POINTS_MAX];
static int count;
static struct rng rng;

/* Tokens from 128 on, by the square root of 2; three densities of the mask. */
static double tokens_of(int workload)
{
    return 128 * pow(2, workload / 2.0);
}

static double blocks_of(int workload)
{
    return tokens_of(workload) / 16 * (1 + workload % 3);
}

static struct transfer_point asked(int slot, double tokens, double blocks)
{
    struct transfer_point p = {.slot = slot, .size = {tokens, 1}, .us = NAN};
    p.bytes = 3e3 * tokens;
    if (slot == GEMM)
        p.flops = 1.2e6 * tokens;
    if (slot == SCORES) {
        p.size[1] = blocks;
        p.flops = 6e6 * blocks;
    }
    return p;
}

/* A launch takes 2 us; then work goes at a rate of each slot's own. */
static double law(const struct transfer_point *p)
{
    static const double flops_per_us[] = {6e8, INFINITY, 2e8};
    static const double bytes_per_us[] = {2e6, 3e6, 1e6};
    return 2 + p->flops / flops_per_us[p->slot] + p->bytes / bytes_per_us[p->slot];
}

static void know(int workload, double noise)
{
    for (int slot = 0; slot < SLOTS_USED; slot++) {
        struct transfer_point p = asked(slot, tokens_of(workload), blocks_of(workload));
        p.us = law(&p) * exp(noise * rng_normal(&rng));
        points[count++] = p;
    }
}

static void setup(void)
{
    count = 0;
    rng = (struct rng){5};
}

static struct transferred predict(struct transfer_point p)
{
    struct transfer *t = transfer_fit(points, count);
    struct transferred out = transfer_predict(t, &p);
    transfer_free(t);
    return out;
}

/* The error of the logarithm. */
static double error_of(struct transfer_point p)
{
    return log(predict(p).us / law(&p));
}

START_TEST(a_law_is_recovered)
{
    for (int w = 0; w < WORKLOADS; w++)
        know(w, 0);
    for (int slot = 0; slot < SLOTS_USED; slot++) {
        ck_assert_double_le(fabs(error_of(asked(slot, 128, 8))), 0.01);      /* known */
        ck_assert_double_le(fabs(error_of(asked(slot, 1200, 150))), 0.03);   /* between */
        ck_assert_double_le(fabs(error_of(asked(slot, 12000, 1500))), 0.10); /* beyond, by 2 */
    }
}
END_TEST

/* The share of times in the intervals of 90 % that are stated for them, each workload left out. */
static double share_inside(double noise)
{
    enum { ROUNDS = 40 };
    int inside = 0, all = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int left_out = 0; left_out < WORKLOADS; left_out++) {
            count = 0;
            for (int w = 0; w < WORKLOADS; w++)
                if (w != left_out)
                    know(w, noise);
            struct transfer *t = transfer_fit(points, count);
            for (int slot = 0; slot < SLOTS_USED; slot++, all++) {
                struct transfer_point p = asked(slot, tokens_of(left_out), blocks_of(left_out));
                struct transferred got = transfer_predict(t, &p);
                double us = law(&p) * exp(noise * rng_normal(&rng));
                inside += fabs(log(us / got.us)) <= 1.645 * got.sd;
            }
            transfer_free(t);
        }
    return (double)inside / all;
}

START_TEST(intervals_hold_for_any_noise)
{
    static const double noises[] = {0.01, 0.05, 0.2};
    double share = share_inside(noises[_i]);
    ck_assert_msg(share >= 0.83 && share <= 0.97, "%g of the times, noise %g", share, noises[_i]);
}
END_TEST

/* A slot that is noisier than others is stated so. */
START_TEST(deviations_are_of_each_slot)
{
    for (int w = 0; w < WORKLOADS; w++)
        know(w, 0.01);
    for (int i = 0; i < count; i++)
        if (points[i].slot == PASS)
            points[i].us *= exp(0.3 * rng_normal(&rng));
    double sd = predict(asked(GEMM, 1200, 1)).sd;
    ck_assert_double_le(sd, 0.1);
    ck_assert_double_ge(predict(asked(PASS, 1200, 1)).sd, 2 * sd);
}
END_TEST

START_TEST(far_away_it_is_less_sure)
{
    for (int w = 0; w < WORKLOADS; w++)
        know(w, 0.02);
    double near = predict(asked(GEMM, 1200, 1)).sd, far = predict(asked(GEMM, 1e6, 1)).sd;
    ck_assert_double_ge(far, 3 * near);
}
END_TEST

/* Workloads of as many tokens say the same of a slot that depends on tokens alone: that is no proof
 * that others are predicted well. */
START_TEST(times_at_one_place_count_once)
{
    for (int w = 0; w < WORKLOADS; w += 4)
        know(w, 0.2);
    double sd = predict(asked(GEMM, 300, 1)).sd;
    int before = count;
    for (int i = 0; i < 9 * before; i++)
        points[count++] = points[i % before];
    ck_assert_double_eq_tol(predict(asked(GEMM, 300, 1)).sd, sd, 1e-9);
}
END_TEST

START_TEST(unknown_slots_stay_unknown)
{
    ck_assert(isnan(predict(asked(GEMM, 128, 1)).us));
    know(0, 0);
    ck_assert(isnan(predict(asked(SLOT_UNKNOWN, 128, 1)).us));
    points[0].us = NAN; /* that of GEMM */
    ck_assert(isnan(predict(asked(GEMM, 128, 1)).us));
    ck_assert(predict(asked(PASS, 128, 1)).us > 0);
}
END_TEST

SUITE("transfer", setup, NULL, ONCE(a_law_is_recovered), LOOP(intervals_hold_for_any_noise, 0, 3),
      ONCE(deviations_are_of_each_slot), ONCE(far_away_it_is_less_sure),
      ONCE(times_at_one_place_count_once), ONCE(unknown_slots_stay_unknown))
