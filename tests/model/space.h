/* A made-up workload: the time of every plan, known exactly, so that a model can be judged. */
#ifndef FUSEPLAN_TESTS_MODEL_SPACE_H
#define FUSEPLAN_TESTS_MODEL_SPACE_H

#include "model/model.h"

struct space {
    double true_ms[VALUE_MAX + 1];     /* by canonical value, without noise */
    double measured_ms[VALUE_MAX + 1]; /* with 1 % of noise */
    struct segment_times times;        /* each segment alone, with 2 % of noise */
    unsigned best;                     /* the canonical value of the lowest true time */
    int count;                         /* of plans of [32768, 49151] */
    uint16_t plans[PLAN_SPACE];
};

/* The space of a seed, the same on every machine but for rounding of libm. Free it. */
struct space *space_new(uint64_t seed);

/* The first n of the space's plans in a shuffled order. */
void space_shuffle(const struct space *s, uint64_t seed, uint16_t *out);

#endif
