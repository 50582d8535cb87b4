/* Strategies judged on a recorded space. */
#include "made_up.h"
#include "space_fixture.h"

#include <math.h>

enum { LO = 40960, HI = 41983, PLANS = 1024 };

static struct made_up made;

static void read_made_up(void)
{
    OK(recorded_space_read(space_path(), LO, HI, &space, &st));
}

static void setup(void)
{
    struct buf text;
    test_dir_setup();
    buf_init(&text);
    made_up_init(&made, 7, LO, HI);
    made_up_recorded(&made, "cpu", 0, 0, &text);
    write_space(&text);
    read_made_up();
}

static void teardown(void)
{
    recorded_space_release(&space);
    test_dir_teardown();
}

static struct replay_row rows[2 * REPLAY_ROWS];
static int count;

static void replay_with(const char *strategy, struct replay_options o)
{
    const struct strategy *one = strategy_find(strategy);
    o.strategies = &one;
    o.strategy_count = 1;
    OK(replay_check(&space, &o, &st));
    OK(replay(&space, &o, rows, &count, &st));
}

static volatile sig_atomic_t stop;

static void set_stop(void *ctx, int done, int total)
{
    (void)ctx;
    stop = done < total;
}

START_TEST(stops_between_searches)
{
    const struct strategy *one = strategy_find("random");
    const struct replay_options o = {.strategies = &one,
                                     .strategy_count = 1,
                                     .budget = 8,
                                     .seeds = 400,
                                     .step = set_stop,
                                     .stop = &stop};
    stop = 0;
    st = STATUS_INIT;
    ck_assert_int_eq(replay(&space, &o, rows, &count, &st), -1);
    ck_assert_int_eq(st.code, STATUS_INTERRUPTED);
    ck_assert_int_eq(count, 0);
}
END_TEST

/* The random baseline is computed: a strategy that draws scores 0 against it. */
START_TEST(random_scores_nothing)
{
    replay_with("random", (struct replay_options){.budget = 64, .seeds = 400});
    for (int i = 0; i < count; i++)
        ck_assert_msg(fabs(rows[i].score) < 0.05, "%d plans: %.3f", rows[i].budget, rows[i].score);
    replay_with("additive", (struct replay_options){.budget = 64, .seeds = 1});
    ck_assert_double_gt(rows[count - 1].score, 0.5);
}
END_TEST

/* The draws belong to the seeds: neither the order nor the number of threads shows. */
START_TEST(equal_rows_again)
{
    struct replay_row before[REPLAY_ROWS];
    const struct replay_options o = {
        .budget = 48, .seeds = 7, .segment_noise = 0.05, .plan_noise = 0.05};
    replay_with("genetic", o);
    memcpy(before, rows, sizeof(before));
    replay_with("genetic", o);
    for (int i = 0; i < count; i++) {
        ck_assert_double_eq(before[i].regret_mean, rows[i].regret_mean);
        ck_assert_double_eq(before[i].score, rows[i].score);
    }
}
END_TEST

/* Each attempt takes attempt_s, of which 1 s to build; each plan takes 0.5 s. */
static void write_for(const char *target, double attempt_s)
{
    struct buf text;
    buf_init(&text);
    made_up_recorded(&made, target, attempt_s, 0.5, &text);
    write_space(&text);
    recorded_space_release(&space);
    read_made_up();
}

static void write_with_seconds(void)
{
    write_for("cpu", 1.75);
}

START_TEST(seconds_go_by)
{
    write_with_seconds();
    replay_with("additive", (struct replay_options){.budget = 40, .seeds = 2});
    for (int i = 0; i < count; i++)
        ck_assert_double_eq_tol(rows[i].seconds, SLOT_COUNT * 1.75 + 0.5 * rows[i].budget, 1e-6);
    const struct replay_row *last = &rows[count - 1];
    ck_assert_double_eq_tol(last->seconds_to_1pct, SLOT_COUNT * 1.75 + 0.5 * last->plans_to_1pct,
                            1e-6);
    ck_assert_double_le(last->seconds_to_3pct, last->seconds_to_1pct);
    replay_with("additive", (struct replay_options){.budget = 8, .seeds = 2});
    ck_assert(rows[0].plans_to_1pct <= 8 || isnan(rows[0].seconds_to_1pct));
}
END_TEST

/* On a GPU the compilers run ahead: whoever takes longer decides, compilers or the device. */
START_TEST(compilers_run_beside_a_gpu)
{
    const struct replay_options o = {.budget = 40, .seeds = 1};
    write_for("cuda", 1.75);
    replay_with("additive", o);
    ck_assert_double_eq_tol(rows[count - 1].seconds, SLOT_COUNT + 0.75 + 0.5 * 40, 1e-6);
    write_for("cuda", 3.5);
    replay_with("additive", o);
    ck_assert_double_eq_tol(rows[count - 1].seconds, 1 + SLOT_COUNT * 2.5 + 0.5 * 40, 1e-6);
}
END_TEST

START_TEST(a_budget_above_the_plans)
{
    const struct strategy *one = strategy_find("random");
    const struct replay_options o = {
        .strategies = &one, .strategy_count = 1, .budget = PLANS + 1, .seeds = 1};
    FAILS(replay_check(&space, &o, &st), STATUS_USAGE, "more than the 1024 plans recorded");
}
END_TEST

SUITE("search/replay", setup, teardown, ONCE(stops_between_searches), ONCE(random_scores_nothing),
      ONCE(equal_rows_again), ONCE(seconds_go_by), ONCE(compilers_run_beside_a_gpu),
      ONCE(a_budget_above_the_plans))
