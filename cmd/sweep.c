#include "cmd/actions.h"
#include "cmd/sweep_int.h"

static const struct {
    struct action action;
    sweep_action *run;
} rows[] = {
    {{"plan", "TABLE", "print rows, their shards and what is known; measure nothing",
      OPTS_ROW | OPT(DB) | OPT(SHARDS)},
     sweep_plan_run},
    {{"run", "TABLE", "search the rows, or those of one --shard",
      OPTS_ROW | OPT(DB) | OPT(SHARD) | OPT(SAVE) | OPT(JOBS) | OPT(EVENTS)},
     sweep_run_run},
    {{"compile", "TABLE", "build what searches of the rows need first; no GPU is needed",
      OPTS_ROW | OPT(SHARD) | OPT(JOBS) | OPT(EVENTS)},
     sweep_compile_run},
    {{"script", "slurm TABLE", "write a batch script of --shards tasks",
      OPTS_ROW | OPT(SHARDS) | OPT(SAVE) | OPT(JOBS) | OPT(OUTPUT)},
     sweep_script_run},
    {{"collect", "TABLE DIR...", "store the texts of --save; print what is missing",
      OPTS_ROW | OPT(DB) | OPT(SHARDS)},
     sweep_collect_run},
    {{"verify", "PACK...", "run the plans of packs here; compare their times with the packs'",
      OPT(TARGET) | OPT(COMPILER) | OPT(JOBS) | OPT(EVENTS)},
     sweep_verify_run},
};

static const struct actions actions = ACTIONS("sweep", rows, OPTS_COMMON);

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
    int at = words_find("action", o->operands[0], list_actions, st);
    return at < 0 || action_check(&actions, at, o, st) != 0 ? -1 : rows[at].run(o, st);
}

const struct command cmd_sweep = {
    .name = "sweep",
    .operands = "ACTION [FILE...]",
    .summary = "Search a table of workloads, on several GPUs and hosts",
    .options = OPTS_COMMON | OPT(DB) | OPTS_ROW | OPT(SHARD) | OPT(SHARDS) | OPT(SAVE) | OPT(JOBS) |
               OPT(EVENTS) | OPT(OUTPUT),
    .exits = EXITS_NO_RESULT | EXITS_INTERRUPTED,
    .about =
        "A line of TABLE has the options of a row, as 'fuseplan db list' prints them; '#'\n"
        "begins a comment.  Lists of -b and -s, and several -m, are a row each.  Options of the "
        "command\n"
        "line hold for all rows; a row's own win.  Baselines are none, unless some are named.\n"
        "A row that fails does not stop the others.  The same command goes on where it stopped.\n"
        "--target cuda:all, or cuda:0,2, searches on several GPUs, a row on each at a time.\n"
        "Exits 0 if every row has a plan, 3 if some have none, 130 if it was stopped: then the\n"
        "same command goes on.  Exits 1 if the machine failed or a search was ended by a signal:\n"
        "trying again may help.  Exits 2 if the table is wrong.\n"
        "PACK is a text of 'fuseplan db export --pack'.  Of its rows measured on a device of the\n"
        "model of the one here each must run, be right, and take the pack's time within 3 %; else\n"
        "verify exits 3.",
    .more = help_actions,
    .examples = "fuseplan sweep plan table --shards 4\n"
                "fuseplan sweep run table --target cuda:all   # on a GPU\n"
                "fuseplan sweep run table --shard 0/4 --save sweep\n"
                "fuseplan sweep collect table sweep\n"
                "fuseplan sweep compile table --arch sm_90a   # needs nvcc\n"
                "fuseplan sweep verify h100.ndjson   # needs a pack\n"
                "fuseplan sweep script slurm table --shards 4 -o sweep.sbatch",
    .words = list_actions,
    .run = run,
};
