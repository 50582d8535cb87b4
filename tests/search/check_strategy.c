#include "made_up.h"
#include "search/study_int.h"
#include "tests/suite.h"

enum { SEEDS = 8 };

static struct made_up space;

/* How much slower than the optimum the best of `budget` plans is. */
static double regret(const char *strategy, uint64_t seed, int budget)
{
    made_up_init(&space, seed, 32768, 49152);
    struct evaluator e = made_up_evaluator(&space);
    struct search_options o = {.strategy = strategy_find(strategy),
                               .space_lo = 32768,
                               .space_hi = 49152,
                               .budget = budget,
                               .seed = seed,
                               .quantile = 0.1};
    SCOPED_BY(history_release) struct history history = {0};
    struct search_result found;
    OK(search_loop(&o, &e, &history, NULL, NULL, &found, &st));
    return history.items[found.best].outcome.ms / space.ms[space.best] - 1;
}

static double mean_regret(int seeds, const char *strategy, int budget)
{
    double sum = 0;
    for (int seed = 1; seed <= seeds; seed++)
        sum += regret(strategy, (uint64_t)seed, budget);
    return sum / seeds;
}

/* 64 of 16384 plans: within 1 % of the optimum on average, where random is beyond 5 %. */
TEST(guided_beats_random)
{
    double guided = mean_regret(SEEDS, "guided", 64), random = mean_regret(SEEDS, "random", 64);
    ck_assert_msg(guided < 0.01, "guided: %.4f", guided);
    ck_assert_msg(random > 0.05, "random: %.4f, the space is too easy", random);
}

/* Each rival with a rule of its own does better than chance where segments are known. */
TEST_LOOP(rivals_beat_random, 1, strategy_count)
{
    double mine = mean_regret(4, strategies[_i].name, 160),
           random = mean_regret(SEEDS, "random", 160);
    if (strcmp(strategies[_i].name, "random") != 0)
        ck_assert_msg(mine < random, "%s: %.4f, random: %.4f", strategies[_i].name, mine, random);
}

SUITE("search/strategy", NULL, NULL)
