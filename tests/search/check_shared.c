/* Segment times that studies of other workloads share. */
#include "search/tuner_int.h"
#include "tests/workload.h"
#include "tune_guided.h"

/* ---- what depends on what -------------------------------------------------------------------- */

static struct workload workload(int batch, int seq_len, const char *lengths)
{
    struct workload w = workload_sized(batch, seq_len);
    if (lengths != NULL)
        OK(workload_parse_lengths(&w, lengths, &st));
    OK(workload_check(&w, &st));
    return w;
}

/* Whether ops 0-0 (tokens), 6-8 (batch and sequence length) and 2-3 (the mask) take the same time,
 * as bits. */
static int shares(struct workload a, struct workload b)
{
    static const struct segment segments[] = {{0, 0}, {6, 8}, {2, 3}};
    int bits = 0;
    for (int i = 0; i < (int)ARRAY_LEN(segments); i++)
        bits |= segment_shared(segments[i], &a, &b) << i;
    workload_release(&a);
    workload_release(&b);
    return bits;
}

TEST(times_depend_on_what_operators_read)
{
    ck_assert_int_eq(shares(workload(2, 64, NULL), workload(2, 64, NULL)), 3);
    ck_assert_int_eq(shares(workload(2, 64, NULL), workload(4, 32, NULL)), 1);
    ck_assert_int_eq(shares(workload(2, 64, NULL), workload(4, 64, NULL)), 0);
    ck_assert_int_eq(shares(workload(2, 64, "64,32"), workload(2, 64, "64,32")), 3);
    ck_assert_int_eq(shares(workload(2, 64, "64,32"), workload(2, 64, "32,64")), 0);
    ck_assert_int_eq(shares(workload(2, 64, "64,32"), workload(2, 48, NULL)), 0);
    struct workload other = workload(2, 64, NULL);
    other.layers = 1;
    ck_assert_int_eq(shares(workload(2, 64, NULL), other), 0);
}

/* ---- a second mask --------------------------------------------------------------------------- */

TEST(second_mask_times_half)
{
    run();
    int first = fake.segments;
    set_mask("causal");
    fake.segments = 0;
    run();
    ck_assert_int_eq(report.new_trials, 20);
    ck_assert_int_le(2 * fake.segments, first);
    ck_assert_int_ge(read_back()->segments, fake.segments + 10);
    for (int i = 0; i < report.best.choice_count; i++)
        ck_assert(!isnan(report.best.choice_ms[i]));
    int segments = fake.segments;
    options.search.budget = 25;
    run();
    ck_assert_int_eq(fake.segments, segments);
}

/* The machine has become slower, or the times were tampered with: all is timed. */
TEST(times_that_do_not_hold_are_refused)
{
    run();
    int first = fake.segments;
    set_mask("causal");
    fake.segments = 0;
    fake.speed = 0.9;
    run();
    ck_assert_int_gt(2 * fake.segments, first);
    ck_assert_int_eq(read_back()->segments, fake.segments - 2); /* one was timed three times */
}

/* A GPU's clock is low at first, as a plan has just run. */
TEST(times_that_differ_at_first_are_taken_anew)
{
    run();
    int first = fake.segments;
    set_mask("causal");
    fake.segments = 0;
    fake.slow_segments = 2;
    run();
    ck_assert_int_le(2 * fake.segments, first);
}

SUITE("search/shared", setup, teardown)
