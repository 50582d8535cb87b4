/* Shared by the files of `bench`. */
#ifndef FUSEPLAN_CMD_BENCH_INT_H
#define FUSEPLAN_CMD_BENCH_INT_H

#include "cmd/cmd.h"

enum { VALUES_MAX = 64, TIMED_MAX = VALUES_MAX + BASELINES_MAX }; /* side by side */

/* The plans timed side by side: those given, then the baselines that were not given. */
struct comparison {
    int given, count; /* plans given; all plans */
    struct baselines baselines;
    char compared_at[CLOCK_UTC_SIZE];
    struct plan plans[TIMED_MAX];
    double earlier_ms[TIMED_MAX]; /* the fastest final stored before; NaN: none */
    struct candidate candidates[TIMED_MAX];
    struct trial trials[TIMED_MAX];
    bool wants_kernels;
    struct kernels kernels;      /* of the given plans that ran */
    char search[HASH_TEXT_SIZE]; /* the search under which results are stored */
};

/* ---- bench_output.c: the output -------------------------------------------------------------- */

int comparison_find(const struct comparison *c, struct plan p); /* index; -1: not there */

/* Whether plan i was given and ran. */
bool comparison_ran(const struct comparison *c, int i);

/* The candidates of the given plans that ran; returns their number. */
int comparison_plans(const struct comparison *c, const struct candidate *out[VALUES_MAX]);

void comparison_print(const struct options *o, const struct comparison *c,
                      const struct workload *w);

/* ---- trace.c: when each kernel launch of plans runs ------------------------------------------ */

/* Runs n plans with a clock beside each launch and writes Chrome trace events, a process a plan. */
int trace_write(struct session *s, const struct candidate *const *plans, int n, const char *path,
                struct status *st);

#endif
