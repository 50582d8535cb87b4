/* What estimates need of a search's command. */
#ifndef FUSEPLAN_CMD_SEARCH_INT_H
#define FUSEPLAN_CMD_SEARCH_INT_H

#include "cmd/cmd.h"

/* ---- estimate.c: search --rigor estimate ----------------------------------------------------- */

int estimate_run(const struct options *o, struct status *st);

#endif
