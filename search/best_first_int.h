/* What stage 1 asks of best_first.c. */
#pragma once

#include "search/study_int.h"

/* ---- best_first.c: which slots are worth timing ------------------------------------------------
 *
 * A slot that only generated code serves, in several stages, waits with a hope: a share of the
 * least sum of its parts' times, where a GEMM counts with the time of generated code. */

struct best_first {
    const struct chain *chain;
    const struct plan *space; /* (space_count) borrowed */
    int space_count;
    uint64_t seed;
    bool used[SLOT_COUNT];         /* a plan of the space has it */
    bool waits[SLOT_COUNT];        /* generated code alone serves it, in several stages */
    bool failed[SLOT_COUNT];       /* by the caller: no plan with it runs */
    struct segment_times known;    /* by the caller; NaN: not timed */
    struct segment_times parts;    /* by the caller, as part_ms(); NaN: not timed */
    struct segment_times expected; /* of a slot's default, by its model; NaN: it has none */
};

/* t: what serves each slot, and what is expected.  Nothing is known then of their times. */
void best_first_init(struct best_first *b, const struct segment_table *t, const struct plan *space,
                     int space_count, uint64_t seed);

/* What a slot takes as a part of what generated code alone would run; NaN: that is not known. */
double part_ms(const struct segment_table *t, int slot);

/* The share, or the least one that a slot took that waited. */
double least_share(const struct best_first *b, double share);

/* The slots that do not wait and were not timed: operators alone, then those that stand for the
 * longest times, and last those that read or write scores.  Those with which every plan is expected
 * to be far behind are left out; of those behind the first *sure too little is known to say so. */
int slots_timed_first(const struct best_first *b, int *sure, int out[SLOT_COUNT]);

/* The index of the plan of the least hoped sum; -1: every plan fails. */
int plan_wanted(const struct best_first *b, double share);

/* The slots not timed of that plan, *first of them, and then those that are wanted next if these
 * disappoint: about `most`. */
int slots_wanted(const struct best_first *b, double share, int most, int *first,
                 int out[SLOT_COUNT]);

/* Whether the model expects the times of all of a plan, by defaults. */
bool model_knows(const struct best_first *b);

/* Slots that wait and were not timed, drawn by the seed: to see whether they are rightly not
 * wanted.  Those that could not even win with half of the time that is hoped for are left out. */
enum { AUDITED = 4 };
int slots_audited(const struct best_first *b, int out[AUDITED]);

/* ---- ahead.c: what compilers begin with --------------------------------------------------------
 */

struct job { /* an attempt of a slot */
    int slot, attempt;
};

/* Adds to some jobs what is timed next as far as it is known: the defaults of the baselines; those
 * of the slots that come first; the first steps of the climb of the plan that is expected to be the
 * fastest; the slots of which it is not known yet whether they come first, if their time is
 * expected; and, once that is known of all, those of the audit, unless the model knows a plan.
 * jobs: (segment_table_size(t)).  Returns how many there are. */
int add_likely_jobs(const struct best_first *b, const struct segment_table *t,
                    const struct baselines *baselines, struct job *jobs, int count);
