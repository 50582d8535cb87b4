/* search, continued: why a plan takes the time that it takes. */
#pragma once

#include "search/study.h"

/* ---- explain.c ----------------------------------------------------------------------------------
 *
 * What each kernel of a plan moves and computes, beside the shortest time that the roofline allows,
 * and the plans that differ from it by one cut.  Measures nothing. */

struct explained_kernel {
    struct choice choice; /* as study_candidate() chooses */
    struct interval us;   /* alone; NaN if it was not measured */
    double plain_us;      /* of one with e4m3: the fastest alone without it; NaN if unknown */
    struct work work;
    double least_us;   /* by the roofline; NaN if unknown */
    bool memory_bound; /* the bytes take longer */
    /* Tensors as bits: read from memory, kept on chip, stored for its own later stages, written for
     * others. */
    uint32_t reads, keeps, passes, writes;
};

/* What a kernel moves of a tensor that it reads or writes, and of a weight. */
double explained_bytes(const struct explained_kernel *k, const struct workload *w, int tensor,
                       bool written);
double explained_weight_bytes(const struct explained_kernel *k, const struct workload *w, int id);

enum change { CHANGE_FUSED, CHANGE_CUT, CHANGE_MOVED, CHANGE_ATTENTION, CHANGE_COUNT };
extern const char *const change_names[CHANGE_COUNT]; /* "fused", ... */

enum time_source {
    TIME_UNKNOWN,
    TIME_PREDICTED, /* from the times of the segments alone */
    TIME_SEARCHED,  /* measured in a search, not beside the plan explained */
    TIME_COMPARED,  /* measured side by side with it */
    TIME_TRIED,     /* it failed or was stopped early */
    TIME_SOURCE_COUNT
};
extern const char *const time_source_names[TIME_SOURCE_COUNT]; /* "unknown", ... */

struct neighbour {
    struct plan plan;
    enum change change;
    int after, to; /* the operators before the cut that changes, and before its new place; -1 */
    enum time_source source;
    double ms;             /* NaN unless it is known */
    struct interval ratio; /* to the plan's time; low and high are NaN unless TIME_COMPARED */
    char reason[160];      /* of TIME_TRIED; else empty */
};

enum { NEIGHBOURS_MAX = 3 * BOUNDARY_COUNT + 1 };

struct explanation {
    struct plan plan;
    enum time_source source;
    bool packed;         /* it is the best plan known, and that is without rows of padding */
    struct interval ms;  /* low and high are NaN if it is predicted */
    struct limits rates; /* of study_rates() */
    bool device_rates;   /* they are the device's */
    int count;
    struct explained_kernel kernels[OP_COUNT];
    double sum_us, least_us; /* of all kernels; NaN if one is unknown */
    int neighbour_count;
    struct neighbour neighbours[NEIGHBOURS_MAX]; /* fastest first, unknown last */
};

/* db: null if nothing is stored of the workload, whose mask must be built. */
int explain_plan(struct db *db, int64_t study, const struct build_target *target,
                 const struct workload *w, struct plan p, struct explanation *out,
                 struct status *st);
