/* What replay.c and replay_clock.c share. */
#ifndef FUSEPLAN_SEARCH_REPLAY_INT_H
#define FUSEPLAN_SEARCH_REPLAY_INT_H

#include "search/space.h"

/* ---- replay_clock.c: what a search of a recorded space would take ---------------------------- */

struct replay_clock {
    const struct recorded_space *space;
    bool alone;            /* segments are timed alone */
    double now_s;          /* NaN if the space lacks seconds */
    double built_s;        /* on a GPU: when the compilers have built what was paid so far */
    bool paid[SLOT_COUNT]; /* the slot's attempts are on the clock */
};

/* Puts all attempts on the clock that are not there yet. */
void replay_clock_stage1(struct replay_clock *c);

/* Puts a plan of the space on the clock, and what its segments need first; returns the time. */
double replay_clock_plan(struct replay_clock *c, int index);

#endif
