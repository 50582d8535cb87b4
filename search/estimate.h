/* search, continued: plans for workloads that were never measured. */
#ifndef FUSEPLAN_ESTIMATE_H
#define FUSEPLAN_ESTIMATE_H

#include "search/search.h"

/* ---- nearby.c: workloads whose segments were timed ------------------------------------------- */

struct known_workload {
    struct workload workload; /* its mask is built, without the bits */
    struct slot_record slots[SLOT_COUNT];
    struct history plans; /* that were measured */
};

/* Studies on one kind of device under one protocol with the same inputs, of layers of the same
 * sizes and type. */
struct known_workloads {
    int count;
    struct known_workload *items; /* (count) owned, the nearest in tokens first */
    enum target_kind target;
    int units;                      /* threads, or multiprocessors; 0: unknown */
    char device[128], protocol[16]; /* empty: nothing is known */
};

/* What is asked. */
struct estimate_question {
    const struct workload *workload; /* its mask is built */
    enum target_kind target;
    const struct db_study *here; /* device and protocol are preferred; empty: any */
};

/* Reads the KNOWN_MOST workloads of the nearest token counts that the databases know, of which one
 * may be null.  Left out are workloads whose mask is that of a file, those of which no segment ran,
 * and those with more than KNOWN_FACTOR times as many tokens, or with less than that part of them.
 * known_release() in any case. */
enum { KNOWN_FACTOR = 256, KNOWN_MOST = 48 };
int known_read(struct db *const databases[2], const struct estimate_question *q,
               struct known_workloads *out, struct status *st);
void known_release(struct known_workloads *k);

/* How far a workload is from another in its tokens and in its kept blocks: the larger of the two
 * ratios, at least 1. */
double workload_distance(const struct workload *a, const struct workload *b);

/* ---- estimate.c: segments by transfer, plans by the posterior -----------------------------------
 *
 * NEAR_LEAST workloads must be known, the nearest of them within a factor NEAR_FACTOR. */

enum { NEAR_LEAST = 3, NEAR_FACTOR = 16, ESTIMATED_MOST = 16 };
#define ESTIMATE_SHARE 0.9 /* of the times lie in the interval */

struct estimated_plan {
    struct plan plan;
    struct interval ms; /* the ends of the interval, and the time expected */
};

struct estimate {
    int count;                                   /* 0: none can be estimated */
    struct estimated_plan plans[ESTIMATED_MOST]; /* (count) the fastest expected first */
    double us[SLOT_COUNT];                       /* of each slot alone; NaN: unknown */
    int known;                                   /* workloads that this stands on */
    int nearest;                                 /* index of the nearest one; -1: none is known */
    int judged;         /* known workloads of which a plan was estimated from the others */
    double usual_error; /* of these: the root mean square of the errors' logarithms */
};

/* The fastest of some plans.  left_out: (k->count) which known workloads are ignored, for judging;
 * null: none. */
struct estimate estimate_plans(const struct known_workloads *k, const bool *left_out,
                               const struct workload *w, const struct plan *plans, int count);

#endif
