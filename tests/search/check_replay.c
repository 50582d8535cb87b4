/* Strategies judged on a recorded space. */
#include "made_up.h"
#include "space_fixture.h"

enum { LO = 40960, HI = 41983 };

static struct made_up made;

static void setup(void)
{
    struct buf text = BUF_INIT;
    test_dir_setup();
    made_up_init(&made, 7, LO, HI);
    made_up_recorded(&made, &text);
    write_space(&text);
    OK(recorded_space_read(space_path(), LO, HI, &space, &st));
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
    stop = done < total;
}

TEST(stops_between_searches)
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

/* The draws belong to the seeds: neither the order nor the number of threads shows. */
TEST_LOOP(equal_rows_again, 0, strategy_count)
{
    struct replay_row before[REPLAY_ROWS];
    const struct replay_options o = {
        .budget = 48, .seeds = 7, .segment_noise = 0.05, .plan_noise = 0.05};
    replay_with(strategies[_i].name, o);
    memcpy(before, rows, sizeof(before));
    replay_with(strategies[_i].name, o);
    for (int i = 0; i < count; i++) {
        ck_assert_double_eq(before[i].regret_mean, rows[i].regret_mean);
        ck_assert_double_eq(before[i].regret_median, rows[i].regret_median);
    }
}

SUITE("search/replay", setup, teardown)
