#include "cmd/search_int.h"

static int run(const struct options *o, struct status *st)
{
    if (o->precision != 0 || options_has(o, OPT(ERROR) | OPT(ACCURACY)))
        return search_precisions(o, st);
    SCOPED_BY(session_close) struct session s;
    SCOPED_BY(tune_report_release) struct tune_report report;
    if (search_run(o, &s, &report, st) != 0)
        return -1;
    search_print(o, &s.workload, s.target.kind, &report, json_array(), NULL, NULL);
    return search_end(o, &report);
}

const struct command cmd_search = {
    .name = "search",
    .operands = "",
    .summary = "Find the fastest plan of a workload",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(INIT) | OPT(BASELINE) | OPT(SPACE) | OPT(BUDGET) |
               OPT(TIME_LIMIT) | OPT(TOTAL_TIME) | OPT(AGAIN) | OPT(RETRY_FAILED) | OPT(RIGOR) |
               OPT(STRATEGY) | OPT(QUANTILE) | OPT(PRECISION) | OPT(ERROR) | OPT(ACCURACY) |
               OPT(COMPILER) | OPT(ARCH) | OPT(JOBS) | OPT(DB) | OPT(EVENTS),
    .required = OPT(BATCH) | OPT(SEQ_LEN),
    .each = true,
    .exits = EXITS_NO_RESULT | EXITS_INTERRUPTED,
    .about = "Builds, verifies and times segments and plans, stores each result as it comes, and\n"
             "ends at its budget, its time limit or when nothing faster is expected.  What is\n"
             "stored is never measured again: the same command goes on where it stopped.  Ctrl-C\n"
             "stores all and prints the best plan so far; a second Ctrl-C ends at once.\n"
             "The baselines are measured first and timed side by side with the fastest plans.\n"
             "With '--rigor exhaustive' every plan of the space is measured, in random order, and\n"
             "the 256 fastest are timed again side by side.\n"
             "With '--again' the best plan known and the baselines are timed anew.\n"
             "With '--retry-failed' what is stored as failed is measured again first.\n"
             "With --precision all plans have GEMMs in e4m3.  With --error and --accuracy the\n"
             "search chooses these GEMMs together with the plan: those that lose no more than the\n"
             "error.  The best plans of each precision are then timed side by side.",
    .more = help_strategies,
    .examples =
        "fuseplan search -b 1 -s 128 -m causal\n"
        "fuseplan search -b 1 -s 128 -m causal --again\n"
        "fuseplan search -b 2 -s 256 -m sliding --budget 64 --time-limit 3m\n"
        "fuseplan search -b 8 -s 512 --error 0.02 --accuracy accuracy.json   # needs a model\n"
        "fuseplan search -b 1 -s 128 -m causal --rigor exhaustive   # takes hours\n"
        "fuseplan search -b 1 -s 128 -m causal --strategy random --seed 1 --format json",
    .run = run,
};
