/* An evaluator whose plans take what they take in a made-up space. */
#ifndef FUSEPLAN_TESTS_SEARCH_MADE_UP_H
#define FUSEPLAN_TESTS_SEARCH_MADE_UP_H

#include "search/search.h"
#include "tests/made_up.h"

/* Measuring advances the clock by the cost. */
struct evaluator made_up_evaluator(struct made_up *m);

/* Appends what db_export() would write of a study of all of its plans. */
void made_up_recorded(const struct made_up *m, struct buf *out);

#endif
