/* Prints how far from the optimum strategies are after so many plans of made-up spaces, and where
 * they stop by themselves: figures of docs/search.md.  `fuseplan replay` prints those of recorded
 * spaces.
 *
 * Usage: search_figures SEEDS [STRATEGY]...   without any, all that a search may use */
#include "made_up.h"
#include "search/study_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS_MAX = 1000 };

static const int budgets[] = {8, 16, 32, 64, 128, 256};
enum { BUDGETS = ARRAY_LEN(budgets), MOST = 256 };

enum { LO = 32768, HI = 49152 };

struct problem {
    struct evaluator e;
    double optimum_ms;
    uint64_t seed;
};

/* Regret is best found / optimum - 1. */
struct figures {
    double regret[SEEDS_MAX], plans; /* plans: the sum over searches */
    int count, within_1, optimal;    /* searches; those that ended within 1 %, and at 0 */
};
struct table {
    struct figures after[BUDGETS], stopped; /* after so many plans; where it stops by itself */
};

static void note(struct figures *f, const struct problem *p, const struct history *h, int count)
{
    struct history part = {.items = h->items, .count = count < h->count ? count : h->count};
    double regret = h->items[history_best(&part)].outcome.ms / p->optimum_ms - 1;
    f->regret[f->count++] = regret;
    f->plans += part.count;
    f->within_1 += regret <= 0.01;
    f->optimal += regret <= 0;
}

/* The baselines first, as tune() does. */
static int search(const struct problem *p, const struct strategy *s, bool endless,
                  struct history *h, struct status *st)
{
    const unsigned spaces[][2] = {{VALUE_UNFUSED, VALUE_UNFUSED}, {41115, 41115}, {LO, HI}};
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        struct search_result found;
        struct search_options o = {.strategy = s,
                                   .space_lo = spaces[i][0],
                                   .space_hi = spaces[i][1],
                                   .budget = MOST,
                                   .endless = endless,
                                   .seed = p->seed,
                                   .quantile = 0.1};
        if (search_loop(&o, &p->e, h, NULL, NULL, &found, st) != 0)
            return -1;
    }
    return 0;
}

static int add_search(const struct problem *p, const struct strategy *s, struct table *t,
                      struct status *st)
{
    struct history h = {.count = 0};
    int result = search(p, s, true, &h, st);
    for (size_t i = 0; i < BUDGETS && result == 0; i++)
        note(&t->after[i], p, &h, budgets[i]);
    history_release(&h);
    if (result == 0)
        result = search(p, s, false, &h, st);
    if (result == 0)
        note(&t->stopped, p, &h, h.count);
    history_release(&h);
    return result;
}

static void print_row(const char *strategy, const struct figures *f)
{
    double sum = 0;
    for (int i = 0; i < f->count; i++)
        sum += f->regret[i];
    printf("%-9s  %5.0f  %13.2f  %5.2f  %8d of %d  %7d of %d\n", strategy, f->plans / f->count,
           100 * sum / f->count, 100 * stats_quantile(f->regret, (size_t)f->count, 0.95),
           f->within_1, f->count, f->optimal, f->count);
}

static int print_strategy(const struct strategy *s, uint64_t seeds, struct status *st)
{
    static struct made_up made_up;
    struct table t = {.stopped = {.plans = 0}};
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        made_up_init(&made_up, seed, LO, HI);
        const struct problem p = {made_up_evaluator(&made_up), made_up.ms[made_up.best], seed};
        if (add_search(&p, s, &t, st) != 0)
            return -1;
    }
    for (size_t i = 0; i < BUDGETS; i++)
        print_row(s->name, &t.after[i]);
    if (t.stopped.plans < MOST * t.stopped.count)
        print_row("  stops", &t.stopped);
    return 0;
}

int main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    int result = 0;
    long seeds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    if (seeds < 1 || seeds > SEEDS_MAX) {
        fprintf(stderr, "usage: search_figures SEEDS [STRATEGY]...\n");
        return EXIT_FAILURE;
    }
    puts("strategy   plans  mean regret %   95 %  within 1 %     optimum");
    for (int s = 0; s < strategy_count && result == 0; s++) {
        bool wanted = argc < 3;
        for (int i = 2; i < argc; i++)
            wanted = wanted || strcmp(argv[i], strategies[s].name) == 0;
        if (wanted)
            result = print_strategy(&strategies[s], (uint64_t)seeds, &st);
    }
    if (result != 0)
        fprintf(stderr, "%s\n", st.message);
    return result != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
