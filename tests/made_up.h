/* A made-up space: every plan has a time that anyone can compute, so its optimum is known.
 *
 * A plan takes what its segments take alone, plus what neighbours do to each other (up to 8 % of
 * both, either way) and noise of half a percent: the additive model is near the truth, but its best
 * plan is not the best. */
#ifndef FUSEPLAN_TESTS_MADE_UP_H
#define FUSEPLAN_TESTS_MADE_UP_H

#include "model/model.h"

struct made_up {
    uint64_t seed;
    struct segment_times times;
    struct plan space[PLAN_SPACE];
    double ms[PLAN_SPACE]; /* of each plan of the space */
    int count, best;       /* best: index of the fastest */

    /* For the evaluator of tests/search/made_up.h. */
    double clock, cost; /* seconds; of one measurement */
    int measured;
    unsigned fail_value, censor_value; /* 0: none */
    int stop_after;                    /* raises the flag at this measurement; 0: never */
    volatile sig_atomic_t stop;
};

/* Fills everything for values lo..hi. */
void made_up_init(struct made_up *m, uint64_t seed, unsigned lo, unsigned hi);

double made_up_ms(const struct made_up *m, unsigned value);

/* What measuring all plans of a made-up space gives, in a random order. */
struct measured_space {
    int count;
    struct plan plans[PLAN_SPACE];
    double ms[PLAN_SPACE];      /* with 1 % of noise */
    double true_ms[PLAN_SPACE]; /* without */
    double best_ms;             /* the lowest of these */
    struct segment_times times; /* each segment alone, with 2 % of noise */
};

/* The same for the same seed; free() it. */
struct measured_space *made_up_measured(uint64_t seed);

#endif
