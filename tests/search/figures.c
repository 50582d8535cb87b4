/* Prints how far from the optimum each strategy is after so many plans, and where it stops by
 * itself: the figures of docs/search.md.
 *
 * Usage: search_figures [FILE.space.gz]...   recorded spaces; without any, 20 made-up ones */
#include "made_up.h"
#include "search/search_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEEDS = 20 };

static const int budgets[] = {10, 25, 50, 100, 200, 500};
enum { BUDGETS = ARRAY_LEN(budgets), MOST = 500 };

struct problem {
    struct evaluator e;
    unsigned lo, hi;
    double optimum_ms;
    uint64_t seed;
};

/* Regret is best found / optimum - 1. */
struct figures {
    double mean, worst, plans;
    int within_1, optimal; /* how many searches ended within 1 %, and at 0 */
};
struct table {
    struct figures after[BUDGETS], stopped; /* after so many plans; where it stops by itself */
};

static void note(struct figures *f, const struct problem *p, const struct history *h, int count)
{
    struct history part = {.items = h->items, .count = count < h->count ? count : h->count};
    double regret = h->items[history_best(&part)].outcome.ms / p->optimum_ms - 1;
    f->mean += regret / SEEDS;
    f->worst = fmax(f->worst, regret);
    f->plans += (double)part.count / SEEDS;
    f->within_1 += regret <= 0.01;
    f->optimal += regret <= 0;
}

/* The baselines first, as tune() does. */
static int search(const struct problem *p, const struct strategy *s, struct history *h,
                  struct status *st)
{
    const unsigned spaces[][2] = {{VALUE_UNFUSED, VALUE_UNFUSED}, {41115, 41115}, {p->lo, p->hi}};
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        struct search_result found;
        struct search_options o = {.strategy = s,
                                   .space_lo = spaces[i][0],
                                   .space_hi = spaces[i][1],
                                   .budget = MOST,
                                   .seed = p->seed,
                                   .quantile = 0.1};
        if (search_loop(&o, &p->e, h, NULL, NULL, &found, st) != 0)
            return -1;
    }
    return 0;
}

static const struct strategy *asked; /* by unsatisfied() */

/* Expects nothing, so that the search never converges. */
static int unsatisfied(const struct strategy_context *c, int max, struct proposal *out,
                       struct status *st)
{
    int result = asked->propose(c, max, out, st);
    out->expected_ms = NAN;
    return result;
}

static int add_search(const struct problem *p, const struct strategy *s, struct table *t,
                      struct status *st)
{
    const struct strategy endless = {.name = s->name, .propose = unsatisfied};
    struct history h = {.count = 0};
    asked = s;
    int result = search(p, &endless, &h, st);
    for (size_t i = 0; i < BUDGETS && result == 0; i++)
        note(&t->after[i], p, &h, budgets[i]);
    history_release(&h);
    if (result == 0)
        result = search(p, s, &h, st);
    if (result == 0)
        note(&t->stopped, p, &h, h.count);
    history_release(&h);
    return result;
}

static void print_row(const char *strategy, const struct figures *f)
{
    printf("%-8s  %5.0f  %13.2f  %7.2f  %8d of %d  %7d of %d\n", strategy, f->plans, 100 * f->mean,
           100 * f->worst, f->within_1, SEEDS, f->optimal, SEEDS);
}

/* problem_of() gives the problem of a seed. */
static int print_table(const char *title, struct problem (*problem_of)(uint64_t seed),
                       struct status *st)
{
    printf("%s\nstrategy  plans  mean regret %%  worst %%  within 1 %%     optimum\n", title);
    for (int s = 0; s < strategy_count; s++) {
        struct table t = {.stopped = {.plans = 0}};
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct problem p = problem_of(seed);
            if (add_search(&p, &strategies[s], &t, st) != 0)
                return -1;
        }
        for (size_t i = 0; i < BUDGETS; i++)
            print_row(strategies[s].name, &t.after[i]);
        if (t.stopped.plans < MOST)
            print_row("  stops", &t.stopped);
    }
    return 0;
}

static struct made_up made_up;

static struct problem made_up_problem(uint64_t seed)
{
    made_up_init(&made_up, seed, 32768, 49152);
    return (struct problem){made_up_evaluator(&made_up), 32768, 49152, made_up.ms[made_up.best],
                            seed};
}

static struct recorded_space recorded; /* 300 KB: not on the stack */

static struct problem recorded_problem(uint64_t seed)
{
    return (struct problem){recorded_space_evaluator(&recorded), recorded.lo, recorded.hi,
                            recorded.outcomes[recorded.best].ms, seed};
}

int main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    int result = argc > 1 ? 0 : print_table("20 made-up spaces", made_up_problem, &st);
    for (int i = 1; i < argc && result == 0; i++) {
        result = recorded_space_read(argv[i], &recorded, &st);
        if (result == 0)
            result = print_table(argv[i], recorded_problem, &st);
        recorded_space_release(&recorded);
    }
    if (result != 0)
        fprintf(stderr, "%s\n", st.message);
    return result != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
