#include "base/base.h"
#include "tests/suite.h"

TEST(median_of_few)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {5};
    ck_assert_double_eq(stats_median(odd, 3).median, 2);
    ck_assert_double_eq(stats_median(even, 4).median, 2.5);
    struct interval i = stats_median(one, 1);
    ck_assert_double_eq(i.low, 5);
    ck_assert_double_eq(i.high, 5);
    ck_assert_double_eq(odd[0], 3); /* the samples stay as they were */
}

TEST(ratios_are_of_pairs)
{
    const double a[] = {2, 30, 9}, b[] = {1, 10, 9};
    struct interval i = stats_median_ratio(a, b, 3);
    ck_assert_double_eq(i.median, 2);
    ck_assert_double_eq(i.low, 1);
    ck_assert_double_eq(i.high, 3);
}

/* Ranks (1-based) of the lower end of the sign test at 95 %: from tables, and for many
 * samples by exact arithmetic. */
TEST(interval_ranks_match_the_tables)
{
    static const struct {
        size_t n, rank;
    } table[] = {{6, 1},  {8, 1},   {9, 2},    {12, 3},     {20, 6},
                 {25, 8}, {50, 18}, {100, 40}, {4000, 1938}};
    for (size_t row = 0; row < ARRAY_LEN(table); row++) {
        static double samples[4000];
        size_t n = table[row].n;
        for (size_t i = 0; i < n; i++)
            samples[i] = (double)(n - i);
        struct interval i = stats_median(samples, n);
        ck_assert_double_eq(i.low, (double)table[row].rank);
        ck_assert_double_eq(i.high, (double)(n + 1 - table[row].rank));
    }
}

TEST(quantiles_interpolate)
{
    double samples[] = {0, 10, 20, 30, 40};
    ck_assert_double_eq(stats_quantile(samples, 5, 0), 0);
    ck_assert_double_eq(stats_quantile(samples, 5, 0.1), 4);
    ck_assert_double_eq(stats_quantile(samples, 5, 1), 40);
}

TEST(spearman_by_hand)
{
    double a[] = {1, 2, 3, 4, 5}, same[] = {10, 20, 30, 40, 1000}, reversed[] = {5, 4, 3, 2, 1};
    double tied[] = {1, 1, 2, 2, 3}, flat[] = {7, 7, 7, 7, 7};
    ck_assert_double_eq_tol(stats_spearman(a, same, 5), 1, 1e-12);
    ck_assert_double_eq_tol(stats_spearman(a, reversed, 5), -1, 1e-12);
    ck_assert_double_eq_tol(stats_spearman(a, tied, 5), 9 / sqrt(10 * 9), 1e-12);
    ck_assert_double_eq(stats_spearman(a, flat, 5), 0);
}

/* n samples: `high` of them about 7.5, the others about 0.8. */
static const struct {
    size_t n, high;
    bool two;
} mixtures[] = {
    {20, 0, false}, {20, 2, false}, /* outliers */
    {20, 3, true},  {20, 10, true}, {20, 17, true},   {20, 18, false}, {20, 20, false},
    {9, 4, false},  {10, 4, true},  {200, 19, false}, {200, 30, true},
};

TEST_LOOP(two_groups_are_told_from_one, 0, ARRAY_LEN(mixtures))
{
    double samples[200];
    struct groups g;
    struct rng rng = {7};
    size_t n = mixtures[_i].n;
    for (size_t i = 0; i < n; i++) {
        double noise = 0.9 + 0.2 * rng_below(&rng, 1000) / 1000;
        samples[(i * 7) % n] = (i < mixtures[_i].high ? 7.5 : 0.8) * noise;
    }
    if (n % 7 == 0)
        ck_abort_msg("every sample must be filled");
    ck_assert_int_eq(stats_two_groups(samples, n, &g), mixtures[_i].two);
    if (!mixtures[_i].two)
        return;
    ck_assert_double_eq_tol(g.low, 0.8, 0.08);
    ck_assert_double_eq_tol(g.high, 7.5, 0.75);
    ck_assert_double_eq_tol(g.high_share, (double)mixtures[_i].high / (double)n, 1e-9);
}

/* Drift, a long tail and hardly different times are no groups. */
TEST_LOOP(one_group_however_it_spreads, 0, 3)
{
    double samples[50];
    struct groups g;
    for (int i = 0; i < 50; i++)
        samples[i] = _i == 0 ? 1 + 0.01 * i : _i == 1 ? 1 / (1.02 - 0.02 * i) : i < 25 ? 1 : 1.01;
    ck_assert(!stats_two_groups(samples, 50, &g));
}

SUITE("stats", NULL, NULL)
