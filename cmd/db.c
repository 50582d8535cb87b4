#include "cmd/db_int.h"

#include <limits.h>
#include <string.h>

/* What an action finds open in its session. */
enum opens { OPENS_NOTHING, OPENS_READ };

static const struct action {
    const char *name;
    const char *operands; /* after the action: "", "FILE" or "FILE..." */
    const char *summary;
    uint64_t options, needs; /* OPT() bits beside the common ones: allowed, required */
    enum opens opens;
    db_action *run;
} actions[] = {
    {"list", "", "print each workload with its best plan", 0, 0, OPENS_NOTHING, db_list_run},
    {"info", "", "count what is stored", 0, 0, OPENS_READ, db_info_run},
    {"check", "", "print each problem found; exit 1 if there is one", 0, 0, OPENS_READ,
     db_check_run},
    {"forget", "", "remove a workload, --failed trials, or results of an --older-protocol",
     OPTS_WORKLOAD | OPT(INIT) | OPT(FAILED) | OPT(OLDER_PROTOCOL) | OPT(DRY_RUN), 0, OPENS_NOTHING,
     db_forget_run},
    {"merge", "FILE...", "add the results of other databases: all of them or nothing", 0, 0,
     OPENS_NOTHING, db_merge_run},
    {"export", "", "write all results as text, a sorted line each, to --output or standard output",
     OPT(OUTPUT), 0, OPENS_READ, db_export_run},
    {"import", "FILE...", "add the results of such texts: all of them or nothing", 0, 0,
     OPENS_NOTHING, db_import_run},
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
    uint64_t stray = o->given & ~(OPTS_COMMON | OPT(DB) | a->options);
    uint64_t missing = a->needs & ~o->given;
    for (int id = 0; id < OPTION_COUNT; id++) {
        const char *name = option_info((enum option_id)id)->name;
        if ((stray >> id & 1) != 0)
            return status_set(st, STATUS_USAGE, "'db %s' takes no option '--%s'", a->name, name);
        if ((missing >> id & 1) != 0)
            return status_set(st, STATUS_USAGE, "'db %s' needs the option '--%s'", a->name, name);
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

static int open_for(const struct options *o, const struct action *a, struct session *s,
                    struct status *st)
{
    switch (a->opens) {
    case OPENS_NOTHING:
        break;
    case OPENS_READ:
        return db_open(o->db, DB_READ, &s->db, st);
    }
    return 0;
}

static int run(const struct options *o, struct status *st)
{
    struct session s = {.db = NULL};
    int at = words_find("action", o->operands[0], list_actions, st);
    if (at < 0 || check_options(o, &actions[at], st) != 0 ||
        check_operands(o, &actions[at], st) != 0)
        return -1;
    int code = open_for(o, &actions[at], &s, st);
    if (code == 0)
        code = actions[at].run(o, &s, st);
    session_close(&s);
    return code;
}

static uint64_t options_of_action(const char *name)
{
    uint64_t options = 0;
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (strcmp(actions[i].name, name) == 0)
            options = OPTS_COMMON | OPT(DB) | actions[i].options;
    return options;
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
    .options_of = options_of_action,
    .run = run,
};
