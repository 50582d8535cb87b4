/* Databases and studies without a session. */
#ifndef FUSEPLAN_CMD_STUDIES_INT_H
#define FUSEPLAN_CMD_STUDIES_INT_H

#include "cmd/cmd.h"

/* ---- studies.c ------------------------------------------------------------------------------- */

/* A study and the database that has it, which the caller closes. */
struct found_study {
    struct db *db; /* null: none is found */
    int64_t study;
};

/* Finds the study of a workload.  near: one that stands in is as good, see study_near_workload().
 * STATUS_NOT_FOUND if there is none. */
int study_find(const struct options *o, enum db_mode mode, bool near, struct target_name target,
               const struct workload *w, struct found_study *out, struct status *st);

/* The same to read, for a command that does without: 0 where nothing is known. */
int study_find_known(const struct options *o, struct target_name target, const struct workload *w,
                     struct found_study *out, struct status *st);

#endif
