#include "cmd/sweep_int.h"

#include <limits.h>
#include <string.h>

static const struct action {
    const char *name, *operands, *summary;
    int least, most;     /* operands after the action */
    option_bits options; /* beside the common ones, --db and those of rows */
    sweep_action *run;
} actions[] = {
    {"plan", "TABLE", "print rows, their shards and what is known; measure nothing", 1, 1,
     OPT(SHARDS), sweep_plan_run},
    {"run", "TABLE", "search the rows, or those of one --shard", 1, 1,
     OPT(SHARD) | OPT(SAVE) | OPT(JOBS) | OPT(EVENTS), sweep_run_run},
    {"script", "slurm TABLE", "write a batch script of --shards tasks", 2, 2,
     OPT(SHARDS) | OPT(SAVE) | OPT(JOBS) | OPT(OUTPUT) | OPT(FORCE), sweep_script_run},
    {"collect", "TABLE DIR...", "store the texts of --save; print what is missing", 2, INT_MAX,
     OPT(SHARDS), sweep_collect_run},
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
        buf_addf(out, "  %-22s %s\n", usage, actions[i].summary);
    }
}

static int run(const struct options *given, struct status *st)
{
    int at = words_find("action", given->operands[0], list_actions, st);
    if (at < 0)
        return -1;
    const struct action *a = &actions[at];
    option_bits stray = given->given & ~(OPTS_COMMON | OPT(DB) | OPTS_ROW | a->options);
    for (int id = 0; id < OPTION_COUNT; id++)
        if ((stray >> id & 1) != 0)
            return status_set(st, STATUS_USAGE, "'sweep %s' takes no option '--%s'", a->name,
                              option_info((enum option_id)id)->name);
    int operands = given->operand_count - 1;
    if (operands < a->least || operands > a->most)
        return status_set(st, STATUS_USAGE, "'sweep %s' takes %s; found %d operands", a->name,
                          a->operands, operands);
    return a->run(given, st);
}

const struct command cmd_sweep = {
    .name = "sweep",
    .operands = "ACTION [FILE...]",
    .summary = "Search a table of workloads, on several GPUs and hosts",
    .options = OPTS_COMMON | OPT(DB) | OPTS_ROW | OPT(SHARD) | OPT(SHARDS) | OPT(SAVE) | OPT(JOBS) |
               OPT(EVENTS) | OPT(OUTPUT) | OPT(FORCE),
    .exits = EXITS_NO_RESULT | EXITS_INTERRUPTED,
    .about =
        "A line of TABLE has the options of a row, as 'fuseplan db list' prints them; '#' begins "
        "a\n"
        "comment.  Lists of -b and -s, and several -m, are a row each.  Options of the command\n"
        "line hold for all rows; a row's own win.\n"
        "A row that fails does not stop the others.  The same command goes on where it stopped.\n"
        "--target cuda:all, or cuda:0,2, searches on several GPUs, a row on each at a time.\n"
        "Exits 0 if every row has a plan, 3 if some have none, 130 if it was stopped: then the\n"
        "same command goes on.  Exits 1 if the machine failed, 2 if the table is wrong.",
    .more = help_actions,
    .examples = "fuseplan sweep plan table --shards 4\n"
                "fuseplan sweep run table --target cuda:all   # on a GPU\n"
                "fuseplan sweep run table --shard 0/4 --save sweep\n"
                "fuseplan sweep collect table sweep\n"
                "fuseplan sweep script slurm table --shards 4 -o sweep.sbatch",
    .words = list_actions,
    .run = run,
};
