#include "cmd/actions.h"
#include "cmd/db_int.h"

static const struct {
    struct action action;
    bool reads; /* finds the database open in its session */
    db_action *run;
} rows[] = {
    {{"list", "", "print each workload with its best plan", 0}, true, db_list_run},
    {{"info", "", "count what is stored", 0}, true, db_info_run},
    {{"check", "", "print each problem found; exit 1 if there is one", 0}, true, db_check_run},
    {{"forget", "", "remove a workload, --failed trials, or results of an --older-protocol",
      OPTS_WORKLOAD | OPT(INIT) | OPT(FAILED) | OPT(OLDER_PROTOCOL) | OPT(DRY_RUN)},
     false,
     db_forget_run},
    {{"merge", "FILE...", "add the results of other databases: all of them or nothing", 0},
     false,
     db_merge_run},
    {{"export", "", "write all results as text, a sorted line each, to --output or standard output",
      OPT(OUTPUT) | OPT(PACK)},
     true,
     db_export_run},
    {{"import", "FILE...", "add the results of such texts: all of them or nothing", 0},
     false,
     db_import_run},
};

static const struct actions actions = ACTIONS("db", rows, OPTS_COMMON | OPT(DB));

static void list_actions(struct buf *out)
{
    actions_list(&actions, out);
}

static void help_actions(struct buf *out)
{
    actions_help(&actions, out);
}

static int run(const struct options *o, struct status *st)
{
    SCOPED_BY(session_close) struct session s = {.db = NULL};
    int at = words_find("action", o->operands[0], list_actions, st);
    if (at < 0 || action_check(&actions, at, o, st) != 0)
        return -1;
    return rows[at].reads && db_open(o->db, DB_READ, &s.db, st) != 0 ? -1 : rows[at].run(o, &s, st);
}

const struct command cmd_db = {
    .name = "db",
    .operands = "ACTION [FILE...]",
    .summary = "List, check, keep and move what is stored",
    .options = OPTS_COMMON | OPT(DB) | OPTS_WORKLOAD | OPT(INIT) | OPT(OUTPUT) | OPT(FAILED) |
               OPT(OLDER_PROTOCOL) | OPT(DRY_RUN) | OPT(PACK),
    .exits = EXITS_NO_RESULT,
    .about =
        "Of two different results for one thing the one measured later stays, so that results\n"
        "may be merged in any order and twice.  Search strategies can be tried on\n"
        "what 'export' has written, without a device: see 'fuseplan replay'.",
    .more = help_actions,
    .examples = "fuseplan db list\n"
                "fuseplan db forget --failed --dry-run\n"
                "fuseplan db export -o results.ndjson\n"
                "fuseplan db export --pack -o h100.ndjson\n"
                "fuseplan db import results.ndjson --db other.db\n"
                "fuseplan db merge other.db",
    .words = list_actions,
    .run = run,
};
