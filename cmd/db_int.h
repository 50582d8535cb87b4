/* The actions of the command db, each titled by its .c file. */
#pragma once

#include "cmd/cmd.h"

/* Runs an action on o->operands[1..]; returns an exit status, or -1. */
typedef int db_action(const struct options *o, struct session *s, struct status *st);

/* ---- db_info.c ------------------------------------------------------------------------------- */

db_action db_info_run, db_check_run;

/* ---- db_list.c ------------------------------------------------------------------------------- */

db_action db_list_run;

/* The options that name a study on a command line. */
json_t *db_study_options(const struct db_listed *l);

/* ---- db_forget.c ----------------------------------------------------------------------------- */

db_action db_forget_run;

/* ---- db_move.c ------------------------------------------------------------------------------- */

db_action db_merge_run, db_import_run, db_export_run;
