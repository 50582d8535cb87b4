/* What the commands that print a best plan share. */
#ifndef FUSEPLAN_CMD_SEARCH_INT_H
#define FUSEPLAN_CMD_SEARCH_INT_H

#include "cmd/cmd.h"

/* ---- search_output.c: the best plan, explained ----------------------------------------------- */

json_t *best_json(const struct workload *w, const struct db_best *b);

/* Prints the report in the format of the options.  relaxed: a JSON array of what the study and the
 * request differ in; top: the rows of --top, or null.  Both are taken over. */
void search_print(const struct options *o, const struct workload *w, enum target_kind target,
                  const struct tune_report *r, json_t *relaxed, json_t *top);

#endif
