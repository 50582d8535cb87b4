#include "cmd/db_int.h"

#include <limits.h>
#include <string.h>

static const struct action {
    const char *name;
    const char *operands; /* after the action: "", "FILE" or "FILE..." */
    const char *summary;
    option_bits options; /* OPT() bits beside the common ones */
    bool reads;          /* finds the database open in its session */
    db_action *run;
} actions[] = {
    {"list", "", "print each workload with its best plan", 0, true, db_list_run},
    {"info", "", "count what is stored", 0, true, db_info_run},
    {"check", "", "print each problem found; exit 1 if there is one", 0, true, db_check_run},
    {"forget", "", "remove a workload, --failed trials, or results of an --older-protocol",
     OPTS_WORKLOAD | OPT(INIT) | OPT(FAILED) | OPT(OLDER_PROTOCOL) | OPT(DRY_RUN), false,
     db_forget_run},
    {"merge", "FILE...", "add the results of other databases: all of them or nothing", 0, false,
     db_merge_run},
    {"export", "", "write all results as text, a sorted line each, to --output or standard output",
     OPT(OUTPUT), true, db_export_run},
    {"import", "FILE...", "add the results of such texts: all of them or nothing", 0, false,
     db_import_run},
};

static void list_actions(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", actions[i].name);
}

static void help_actions(struct buf *out)
{
    buf_adds(out, "actions:\n");
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        char usage[32];
        snprintf(usage, sizeof(usage), "%s %s", actions[i].name, actions[i].operands);
        buf_addf(out, "  %-14s %s\n", usage, actions[i].summary);
    }
}

static int check_options(const struct options *o, const struct action *a, struct status *st)
{
    option_bits stray = o->given & ~(OPTS_COMMON | OPT(DB) | a->options);
    for (int id = 0; id < OPTION_COUNT; id++) {
        if ((stray >> id & 1) != 0)
            return status_set(st, STATUS_USAGE, "'db %s' takes no option '--%s'", a->name,
                              option_info((enum option_id)id)->name);
    }
    return 0;
}

static int check_operands(const struct options *o, const struct action *a, struct status *st)
{
    int given = o->operand_count - 1;
    int least = a->operands[0] != '\0';
    int most = strstr(a->operands, "...") != NULL ? INT_MAX : least;
    if (given < least)
        return status_set(st, STATUS_USAGE, "'db %s' needs %s", a->name, a->operands);
    if (given > most)
        return status_set(st, STATUS_USAGE, "'db %s' takes %s%s; found '%s'", a->name,
                          most > 0 ? "one " : "no operand", a->operands, o->operands[1 + most]);
    return 0;
}

static int run(const struct options *o, struct status *st)
{
    struct session s = {.db = NULL};
    int at = words_find("action", o->operands[0], list_actions, st);
    if (at < 0 || check_options(o, &actions[at], st) != 0 ||
        check_operands(o, &actions[at], st) != 0)
        return -1;
    int code = actions[at].reads ? db_open(o->db, DB_READ, &s.db, st) : 0;
    if (code == 0)
        code = actions[at].run(o, &s, st);
    session_close(&s);
    return code;
}

const struct command cmd_db = {
    .name = "db",
    .operands = "ACTION [FILE...]",
    .summary = "List, check, keep and move what is stored",
    .options = OPTS_COMMON | OPT(DB) | OPTS_WORKLOAD | OPT(INIT) | OPT(OUTPUT) | OPT(FAILED) |
               OPT(OLDER_PROTOCOL) | OPT(DRY_RUN),
    .exits = EXITS_NO_RESULT,
    .about =
        "Of two different results for one thing the one measured later stays, so that results\n"
        "may be merged in any order and twice.  Search strategies can be tried on\n"
        "what 'export' has written, without a device: see 'fuseplan replay'.",
    .more = help_actions,
    .examples = "fuseplan db list\n"
                "fuseplan db forget --failed --dry-run\n"
                "fuseplan db export -o results.ndjson\n"
                "fuseplan db import results.ndjson --db other.db\n"
                "fuseplan db merge other.db",
    .words = list_actions,
    .run = run,
};
