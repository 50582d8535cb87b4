/* Estimates of workloads that are left out, against what was measured of them. */
#ifndef FUSEPLAN_TESTS_HELD_OUT_H
#define FUSEPLAN_TESTS_HELD_OUT_H

#include "search/estimate.h"

enum { TABLES_MAX = 32 };

/* Reads recorded spaces of a GPU, of each no more plans than an estimate gives.  known_release() in
 * any case. */
int tables_read(const char *const *files, int count, struct known_workloads *out,
                struct status *st);

/* One workload, estimated from others.  The time of a plan is the measured one; of a plan that
 * was not measured it is what the posterior says from the workload's own segments and plans.  A
 * segment that was not timed has the time of another workload that it must share, as in
 * a search. */
struct held_out {
    struct estimate estimate;
    double regret;    /* of the plan estimated fastest: its time over the least of any plan, less 1;
                         NaN if a segment of it was not timed in this workload */
    double regret_16; /* of the best of all plans estimated, of which the time is known */
    bool all_known;   /* the time of each plan estimated is known */
    int measured;     /* plans that were measured and could be estimated: the fastest and the first
                         ones */
    int inside;       /* of these: within their intervals */
    double error;     /* of the fastest plan measured: the estimated time over its time, less 1 */
    bool holds;       /* its interval does */
};

/* Leaves out one workload or, with `tokens`, all of as many tokens too, so that no segment is known
 * exactly. */
struct held_out held_out_judge(const struct known_workloads *k, int i, bool tokens);

/* Of all workloads of which a plan could be judged. */
struct held_out_summary {
    int count, judged; /* judged: whose estimated plan's time is known */
    double regret_median;
    double regret_worst;
    int within, beyond;  /* how many have a plan within 2 % among the first 16, and how many have
                            none for sure: all 16 times are known */
    double inside;       /* the share of measured plans within their intervals, the mean over
                            workloads */
    double holds;        /* the share of workloads whose fastest measured plan is within its */
    double error_median; /* of |error| */
};
struct held_out_summary held_out_summarise(const struct held_out *all, int count);

#endif
