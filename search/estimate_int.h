/* What estimate.c, nearby.c and lend.c share. */
#ifndef FUSEPLAN_SEARCH_ESTIMATE_INT_H
#define FUSEPLAN_SEARCH_ESTIMATE_INT_H

#include "search/estimate.h"
#include "search/search_int.h"

/* ---- nearby.c: what an estimate sees of the known workloads ---------------------------------- */

/* The known workloads that an estimate stands on. */
struct view {
    const struct known_workloads *k;
    const bool *left_out; /* (k->count) workloads that are ignored; may be null */
    const struct workload *asked;
    const struct transfer_point *points; /* (k->count + 1, SLOT_COUNT) of each known workload, with
                                            its times, and of the one asked for */
    int judged; /* index of a known workload that is ignored too; -1: none */
};

bool is_seen(const struct view *v, int i);

/* The workload that is estimated: one that is judged, or else the one asked for. */
const struct workload *estimated(const struct view *v);

struct ranked {
    int index;
    double key;
};
int by_key(const void *a, const void *b); /* the least first */

/* Indices of the workloads that are seen, the nearest first; returns their number. */
int nearest_first(const struct view *v, struct ranked *out);

/* ---- lend.c: plans that were measured in other workloads ------------------------------------- */

/* Appends the fastest plans of the nearest workloads as if they had been measured here.  here: what
 * slots take alone. */
void lend_plans(const struct view *v, const struct segment_times *here, struct history *out);

#endif
