/* A made-up space: every plan has a time that anyone can compute, so its optimum is known.
 *
 * A plan takes what its segments take alone, plus what neighbours do to each other (up to 8 % of
 * both, either way) and noise of half a percent: the additive model is near the truth, but its best
 * plan is not the best. */
#ifndef FUSEPLAN_TESTS_MADE_UP_H
#define FUSEPLAN_TESTS_MADE_UP_H

#include "search/search.h"

struct made_up {
    uint64_t seed;
    struct segment_times times;
    struct plan space[PLAN_SPACE];
    double ms[PLAN_SPACE]; /* of each plan of the space */
    int count, best;       /* best: index of the fastest */

    double clock, cost; /* seconds; of one measurement */
    int measured;
    unsigned fail_value, censor_value; /* 0: none */
    int stop_after;                    /* raises the flag at this measurement; 0: never */
    volatile sig_atomic_t stop;
};

/* Fills everything for values lo..hi. */
void made_up_init(struct made_up *m, uint64_t seed, unsigned lo, unsigned hi);

double made_up_ms(const struct made_up *m, unsigned value);

/* Measuring advances the clock by the cost. */
struct evaluator made_up_evaluator(struct made_up *m);

#endif
