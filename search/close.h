/* search, continued: how sure a search is.
 *
 * The sum of a plan's segments is no bound: some plans are faster than theirs.  A search that has
 * converged measures all plans that need no more than that to be the fastest: those with
 * CLOSE_SHARE times their sum below the best time, but of the whole space at most the CLOSE_MOST of
 * the least sums.  What is left to say is by how much the others would have to beat their sums. */

#pragma once

#include "search/strategy.h"

#define CLOSE_SHARE 0.95
enum { CLOSE_MOST = 300 };

/* A slot whose segment was never timed.  Its operators can be run by timed segments; `hope` is a
 * share of what these take in the fastest way.  A plan with the slot can be the fastest plan only
 * if
 *   - the slot takes less than this share, or
 *   - the plan takes less than the sum of its segments by more than `gain` below, or
 *   - the plan has another slot that was never timed. */
struct untimed_slot {
    int slot;
    double hope; /* NaN: timed segments cannot run the operators */
};

struct certainty {
    bool known;  /* else the search did not converge, or nothing can be said */
    int open;    /* plans of the space not measured, without those that must fail */
    double gain; /* a plan of these is the fastest only if it takes less than its sum by more than
                    this share, or has a segment that was not timed; NaN: there is none */
    double largest;  /* the largest such share of the measured plans, below 0 if none has one */
    double roofline; /* the best time to the least that the roofline allows the whole chain; NaN */
    int untimed_count;
    struct untimed_slot untimed[SLOT_COUNT];
};

/* Fills all but `roofline`.  fails: which slots fail alone. */
void certainty_of(const struct history *h, const struct segment_times *times,
                  const bool fails[SLOT_COUNT], const struct plan *space, int space_count,
                  int layers, struct certainty *out);
