/* An evaluator whose plans take what they take in a made-up space. */
#ifndef FUSEPLAN_TESTS_SEARCH_MADE_UP_H
#define FUSEPLAN_TESTS_SEARCH_MADE_UP_H

#include "search/search.h"
#include "tests/made_up.h"

/* Measuring advances the clock by the cost. */
struct evaluator made_up_evaluator(struct made_up *m);

/* Appends the lines of a recorded space: what measuring all of it, values lo..hi, would give. */
void made_up_recorded(const struct made_up *m, unsigned lo, unsigned hi, struct buf *out);

/* The same as a file of version 2, in which each segment and each plan took so many seconds: a
 * second of a segment's to build it. */
void made_up_recorded_with(const struct made_up *m, const char *target, unsigned lo, unsigned hi,
                           double attempt_s, double plan_s, struct buf *out);

#endif
