/* Strategies on recorded spaces. */
#include "made_up.h"
#include "search/study_int.h"
#include "space_fixture.h"

/* `guided` converges long before: at what a user gets without a budget. */
enum { SEEDS = 3, BUDGET = 500 };

/* How much slower the best plan found is than the best of the space. */
static double regret(const char *strategy, uint64_t seed)
{
    static struct history history;
    struct evaluator e = recorded_space_evaluator(&space);
    struct search_options o = {.strategy = strategy_find(strategy),
                               .space_lo = space.lo,
                               .space_hi = space.hi,
                               .budget = BUDGET,
                               .seed = seed,
                               .quantile = 0.1};
    struct search_result found;
    int result = search_loop(&o, &e, &history, NULL, NULL, &found, &st);
    ck_assert_msg(result == 0, "%s", st.message);
    double ms = history.items[found.best].outcome.ms;
    history_release(&history);
    return ms / space.outcomes[space.best].ms - 1;
}

static void check_strategies(const char *from)
{
    double guided = 0, random = 0;
    read_space(from);
    if (!recorded_space_is_whole(&space)) { /* plans drawn of the fastest ones are fast */
        recorded_space_release(&space);
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        double r = regret("guided", seed);
        ck_assert_msg(r <= 0.01, "%s: seed %d ends %.2f %% above the best", from, (int)seed,
                      100 * r);
        guided += r;
        random += regret("random", seed);
    }
    ck_assert_double_lt(guided, random);
    recorded_space_release(&space);
}

static void write_made_up(void)
{
    static struct made_up m;
    struct buf text;
    buf_init(&text);
    made_up_init(&m, 1, 32768, 49152);
    made_up_recorded(&m, "cpu", 0, 0, &text);
    write_space(&text);
}

START_TEST(strategies_on_a_made_up_space)
{
    write_made_up();
    check_strategies(space_path());
}
END_TEST

/* Paths from the build, each with a comma behind it; none to begin with. */
static const char *const recorded[] = {RECORDED_SPACES NULL};

START_TEST(strategies_on_recorded_spaces)
{
    check_strategies(recorded[_i]);
}
END_TEST

SUITE("search/space_search", test_dir_setup, test_dir_teardown, ONCE(strategies_on_a_made_up_space),
      LOOP(strategies_on_recorded_spaces, 0, ARRAY_LEN(recorded) - 1))
