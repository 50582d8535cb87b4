#include "cmd/cmd.h"

#include <math.h>
#include <stdlib.h>

static void fill(const struct options *o, struct tune_report *r)
{
    static uint16_t space[PLAN_SPACE];
    const struct db_best *b = &r->best;
    unsigned lo, hi;
    struct status ignored = STATUS_INIT;
    plan_parse_range(o->space, &lo, &hi, &ignored);
    r->unfused = (struct interval){b->unfused_ms, NAN, NAN};
    r->first_version = (struct interval){b->first_version_ms, NAN, NAN};
    r->total_trials = (int)b->plans_total;
    r->failed_trials = (int)b->plans_failed;
    r->censored_trials = (int)b->plans_censored;
    r->space = plan_space(lo, hi, space);
    r->model_spearman = r->expected_faster_share = r->seconds = NAN;
    r->additive_value = -1;
}

static int run(const struct options *o, struct status *st)
{
    struct tune_report report = {.new_trials = 0};
    struct workload w = {.batch = 0};
    struct target_name target;
    struct db *db = NULL;
    int64_t study;
    int code = -1;
    if (o->operand_count > 0)
        return status_set(st, STATUS_USAGE, "unexpected '%s'; a query takes options only",
                          o->operands[0]);
    if (db_open(o->db, DB_READ, &db, st) < 0 ||
        study_from_options(o, db, &target, &w, &study, st) < 0 ||
        db_best(db, study, &report.best, st) < 0)
        goto out;
    fill(o, &report);
    report_print(o, &w, target.kind, &report);
    db_best_release(&report.best);
    code = EXIT_SUCCESS;
out:
    if (code < 0 && db && st->code == STATUS_NOT_FOUND)
        status_prefix(st, "nothing is known; 'fuseplan search' with the same options measures it");
    db_close(db);
    workload_release(&w);
    return code;
}

const struct command cmd_query = {
    .name = "query",
    .operands = "",
    .summary = "Print the best plan known for a workload, measuring nothing",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(DB),
    .about = "Reads only, and creates no database.  Exits 3 where nothing is known.",
    .examples = "fuseplan query -b 1 -s 128 -m causal\n"
                "fuseplan query -b 1 -s 128 -m causal --format json | jq .best.value",
    .run = run,
};
