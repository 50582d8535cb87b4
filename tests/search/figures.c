/* Prints how far from the optimum each strategy ends on made-up spaces: the figures of
 * docs/search.md.  Usage: search_figures [SPACES] */
#include "made_up.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const int budgets[] = {16, 32, 48, 64, 128};

struct figures {
    double mean, worst; /* regret: best found / optimum - 1 */
    int optimal;
    double plans; /* measured: fewer than the budget where the search converged */
};

static int search_space(const struct strategy *s, uint64_t seed, int budget, struct figures *f,
                        struct status *st)
{
    static struct made_up space;
    struct history history = {.count = 0};
    struct search_result result = {.best = -1};
    made_up_init(&space, seed, 32768, 49152);
    struct evaluator e = made_up_evaluator(&space);
    unsigned spaces[][2] = {
        {VALUE_UNFUSED, VALUE_UNFUSED}, {VALUE_FIRST_VERSION, VALUE_FIRST_VERSION}, {32768, 49152}};
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(spaces) && rc == 0; i++) { /* as tune() does */
        struct search_options o = {.strategy = s,
                                   .space_lo = spaces[i][0],
                                   .space_hi = spaces[i][1],
                                   .budget = budget,
                                   .seed = seed,
                                   .quantile = 0.1};
        rc = search_loop(&o, &e, &history, NULL, NULL, &result, st);
    }
    if (rc == 0) {
        double regret = history.items[result.best].outcome.ms / space.ms[space.best] - 1;
        f->mean += regret;
        f->worst = fmax(f->worst, regret);
        f->optimal += regret == 0;
        f->plans += history.count;
    }
    history_release(&history);
    return rc;
}

int main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    int64_t spaces = 20;
    if (argc > 1 && number_parse("SPACES", argv[1], 1, 1000, &spaces, &st) < 0) {
        fprintf(stderr, "%s\n", st.message);
        return 2;
    }
    printf("budget  strategy  plans  mean regret %%  worst %%  optimum found\n");
    for (size_t b = 0; b < ARRAY_LEN(budgets); b++)
        for (int s = 0; s < strategy_count; s++) {
            struct figures f = {.optimal = 0};
            for (int seed = 1; seed <= spaces; seed++)
                if (search_space(&strategies[s], (uint64_t)seed, budgets[b], &f, &st) < 0) {
                    fprintf(stderr, "%s\n", st.message);
                    return EXIT_FAILURE;
                }
            printf("%6d  %-8s  %5.0f  %13.2f  %7.2f  %d of %d\n", budgets[b], strategies[s].name,
                   f.plans / (double)spaces, 100 * f.mean / (double)spaces, 100 * f.worst,
                   f.optimal, (int)spaces);
        }
    return EXIT_SUCCESS;
}
