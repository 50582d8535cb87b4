/* What the files of `bench` share. */
#ifndef FUSEPLAN_CMD_BENCH_INT_H
#define FUSEPLAN_CMD_BENCH_INT_H

#include "cmd/cmd.h"

enum { VALUES_MAX = 64, TIMED_MAX = VALUES_MAX + BASELINES_MAX }; /* side by side */

/* What is timed side by side: the plans given, then the baselines that are not among them. */
struct comparison {
    int given, count;
    struct baselines baselines;
    char compared_at[CLOCK_UTC_SIZE];
    struct plan plans[TIMED_MAX];
    double earlier_ms[TIMED_MAX]; /* stored before, NaN where nothing is */
    struct candidate candidates[TIMED_MAX];
    struct trial trials[TIMED_MAX];
    bool wants_kernels;
    struct kernels kernels; /* of the plans given that ran */
    char search[HASH_TEXT_SIZE];
};

/* ---- bench_output.c: what comes out ---------------------------------------------------------- */

int comparison_find(const struct comparison *c, struct plan p); /* index; -1: not there */

/* Whether more than its time is wanted of plan i: it was given, and it ran. */
bool comparison_ran(const struct comparison *c, int i);

/* All of which that is true; returns how many there are. */
int comparison_plans(const struct comparison *c, const struct candidate *out[VALUES_MAX]);

void comparison_print(const struct options *o, const struct comparison *c,
                      const struct workload *w);

#endif
