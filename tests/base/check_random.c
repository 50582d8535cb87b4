#include "base/base.h"
#include "tests/suite.h"

/* The first outputs of the reference splitmix64.c with seed 1234567, as published with it. */
TEST(matches_the_reference_stream)
{
    static const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u,
                                        9817491932198370423u, 4593380528125082431u,
                                        16408922859458223821u};
    struct rng r = {1234567};
    for (size_t i = 0; i < ARRAY_LEN(expected); i++)
        ck_assert_uint_eq(rng_next(&r), expected[i]);
}

/* Three quarters of all numbers: without a second draw the first third would come twice
 * as often. */
TEST(large_ranges_are_uniform)
{
    enum { DRAWS = 30000 };
    struct rng r = {3};
    int counts[3] = {0};
    for (int i = 0; i < DRAWS; i++)
        counts[rng_below(&r, 3u << 30) % 3]++;
    for (int i = 0; i < 3; i++)
        ck_assert_int_le(abs(counts[i] - DRAWS / 3), DRAWS / 50);
}

TEST(hash_tells_texts_apart)
{
    char a[HASH_TEXT_SIZE], b[HASH_TEXT_SIZE];
    ck_assert_str_eq(hash_text("", 0, a), "99aa06d3014798d86001c324468d497f"); /* xxhsum -H128 */
    ck_assert_str_ne(hash_text("x", 1, a), hash_text("y", 1, b));
}

TEST(times_to_wait_for_are_whole)
{
    for (int i = 0; i < 10; i++) {
        double begin = clock_seconds();
        struct timespec at = clock_after(1 + i * 0.1);
        double ahead = (double)at.tv_sec + (double)at.tv_nsec * 1e-9 - begin;
        ck_assert(0 <= at.tv_nsec && at.tv_nsec < 1000000000);
        ck_assert_double_ge(ahead, 1 + i * 0.1 - 1e-6);
        ck_assert_double_le(ahead, clock_seconds() - begin + 1 + i * 0.1 + 1e-6);
    }
}

/* A long time between two looks is one in which the process was suspended. */
TEST(patience_counts_looks)
{
    struct patience p;
    patience_begin(&p, 100);
    ck_assert_double_eq_tol(patience_spent(&p, 100.1), 0.1, 1e-9);
    ck_assert_double_eq_tol(patience_spent(&p, 100.2), 0.2, 1e-9);
    ck_assert_double_eq_tol(patience_spent(&p, 160), 0.2 + PATIENCE_STEP_S, 1e-9);
    ck_assert_double_eq_tol(patience_spent(&p, 160.1), 0.3 + PATIENCE_STEP_S, 1e-9);
}

/* The mean and the variance of many, and the first one, which depends on the order of its draws. */
TEST(normal_draws)
{
    enum { DRAWS = 100000 };
    struct rng r = {1};
    double first = 0, sum = 0, squares = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = rng_normal(&r);
        first = i == 0 ? x : first;
        sum += x;
        squares += x * x;
    }
    struct rng again = {1};
    double radius = sqrt(-2 * log(1 - rng_unit(&again)));
    ck_assert_double_eq(first, radius * cos(2 * M_PI * rng_unit(&again)));
    ck_assert_double_eq_tol(sum / DRAWS, 0, 0.01);
    ck_assert_double_eq_tol(squares / DRAWS, 1, 0.02);
}

SUITE("random", NULL, NULL)
