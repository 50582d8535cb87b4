/* What the files of `bench` share. */
#ifndef FUSEPLAN_CMD_BENCH_INT_H
#define FUSEPLAN_CMD_BENCH_INT_H

#include "cmd/cmd.h"

enum { VALUES_MAX = 64, BASELINES = 2 }; /* timed side by side */

/* What is timed: plans given, then those they are compared with that are not among them. */
struct lineup {
    int given, count;
    int unfused, first_version; /* indices; -1: not there */
    unsigned values[VALUES_MAX + BASELINES];
    double earlier_ms[VALUES_MAX + BASELINES]; /* stored before, NaN where nothing is */
    struct candidate candidates[VALUES_MAX + BASELINES];
    struct trial trials[VALUES_MAX + BASELINES];
    bool wants_kernels;
    struct kernels kernels; /* of the plans given that ran */
    char search[HASH_TEXT_SIZE];
};

/* ---- bench_output.c: what comes out ---------------------------------------------------------- */

/* Whether more than its time is wanted of plan i: it was given, and it ran. */
bool lineup_ran(const struct lineup *l, int i);

/* All of which that is true; returns how many there are. */
int lineup_plans(const struct lineup *l, const struct candidate *out[VALUES_MAX]);

void lineup_print(const struct options *o, const struct lineup *l, const struct workload *w);

#endif
