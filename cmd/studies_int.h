/* Databases and studies without a session. */
#ifndef FUSEPLAN_CMD_STUDIES_INT_H
#define FUSEPLAN_CMD_STUDIES_INT_H

#include "cmd/cmd.h"

/* ---- studies.c ------------------------------------------------------------------------------- */

/* Opens the user's database and, to read, the system's: out[0] or out[1] is null where there is
 * none, but not both.  Close both in any case. */
int databases_open(const struct options *o, enum db_mode mode, struct db *out[2],
                   struct status *st);

/* A study and the database that has it, which the caller closes. */
struct found_study {
    struct db *db; /* null: none is found */
    int64_t study;
    bool system; /* it is the system's database */
};

/* Finds the study of a workload in the user's database.  To read, takes that of the system's if no
 * plan ran in the user's.  near: where no plan ran, one that stands in, see
 * study_near_workload().  STATUS_NOT_FOUND if there is none. */
int study_find(const struct options *o, enum db_mode mode, bool near, struct target_name target,
               const struct workload *w, struct found_study *out, struct status *st);

/* The same to read, for a command that does without: 0 where nothing is known. */
int study_find_known(const struct options *o, struct target_name target, const struct workload *w,
                     struct found_study *out, struct status *st);

/* The same for the workload of a session; notes that `what`, "the schedules are", is from the
 * system's database if it is. */
int session_find_known(const struct options *o, const struct session *s, const char *what,
                       struct found_study *out, struct status *st);

#endif
