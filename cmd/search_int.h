/* What estimates need of a search's command. */
#ifndef FUSEPLAN_CMD_SEARCH_INT_H
#define FUSEPLAN_CMD_SEARCH_INT_H

#include "cmd/cmd.h"

/* ---- estimate.c: search --rigor estimate ----------------------------------------------------- */

int estimate_run(const struct options *o, struct status *st);

/* ---- session.c: databases without a study ---------------------------------------------------- */

/* Opens the user's database and, to read, the system's: out[0] or out[1] is null where there is
 * none, but not both.  Close both in any case. */
int databases_open(const struct options *o, enum db_mode mode, struct db *out[2],
                   struct status *st);

#endif
