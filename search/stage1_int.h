/* The first plan, baselines, segments alone, and their deadlines; search_int.h includes it. */
#ifndef FUSEPLAN_SEARCH_STAGE1_INT_H
#define FUSEPLAN_SEARCH_STAGE1_INT_H

#include "search/search_int.h"

/* ---- deadlines.c: when the phases must end ------------------------------------------------------
 *
 * In the tuner's clock; infinite without a time limit.  They move as the search learns what the
 * finals will take. */

typedef double deadline(const struct tuner *t);
deadline stage1_end, stage2_end;
deadline first_climb_end; /* of the first plan's schedules */

/* ---- stage1.c -------------------------------------------------------------------------------- */

/* Builds, times and stores the untried defaults of the slots and, with `climb`, the schedules that
 * a climb from them reaches.  Begins nothing that may end after the deadline. */
int time_slots(struct tuner *t, const int *slots, int count, bool climb, deadline *until,
               struct status *st);

/* Times and climbs segments, the most promising first, until stage1_end(). */
int stage1(struct tuner *t, struct status *st);

/* Where compilers run while the device works: begins to build what a plan needs, and behind it what
 * stage 1 will time first. */
int stage1_build_ahead(struct tuner *t, const struct candidate *first, struct status *st);

/* Whether there is time for one more segment. */
bool stage1_goes_on(const struct tuner *t);

/* ---- first_plan.c: a plan to print from the first seconds on --------------------------------- */

int first_plan_measure(struct tuner *t, struct status *st); /* unless a plan is known */
/* time_slots() of its segments. */
int first_plan_times(struct tuner *t, bool climb, deadline *until, struct status *st);
/* Whether it ran and its trial is comparable with those of other plans. */
bool first_plan_stands(const struct tuner *t);
/* Takes its trial, if it stands and ran these choices. */
bool first_plan_take(struct tuner *t, const struct candidate *c, struct trial *out);
/* Stores it at the search's end, if its plan was not measured since and the budget has room. */
int first_plan_keep(struct tuner *t, struct status *st);
void first_plan_release(struct tuner *t);

/* ---- baselines.c: those of a search ---------------------------------------------------------- */

/* Whether each has a stored result, a failure included. */
bool baselines_measured(const struct tuner *t);

/* Of those not measured, the one that takes the fewest compilers.  False: none is left that may
 * run. */
bool cheapest_baseline(const struct tuner *t, struct candidate *out);

/* Says which ones, if they are to be measured. */
void say_baselines(const struct tuner *t);

#endif
