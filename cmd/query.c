#include "cmd/cmd.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void fill(const struct options *o, const struct history *h, struct tune_report *r)
{
    static struct plan space[PLAN_SPACE];
    const struct db_best *b = &r->best;
    unsigned lo, hi;
    struct status ignored = STATUS_INIT;
    plan_parse_range(o->space, &lo, &hi, &ignored);
    r->total_trials = (int)b->plans_total;
    r->failed_trials = (int)b->plans_failed;
    r->censored_trials = (int)b->plans_censored;
    r->space = plan_space(lo, hi, space);
    r->space_trials = history_count_in(h, space, r->space);
    r->model_spearman = r->expected_faster_share = r->seconds = NAN;
}

/* Those of the search that measured the best plan; the defaults where it does not say. */
static int read_baselines(const struct options *o, struct db *db, int64_t study,
                          struct tune_report *r, struct status *st)
{
    struct baselines wanted;
    if (baselines_from_options(o, &wanted, st) != 0)
        return -1;
    baselines_of_search(r->best.search_options, &wanted);
    r->baseline_count = wanted.count;
    return baselines_read(db, study, &r->best, &wanted, r->baselines, st);
}

/* ---- what was relaxed ---------------------------------------------------------------------------
 */

struct relaxing {
    const struct options *o;
    struct fingerprint here;
    json_t *names;
};

static void relax(struct relaxing *r, const char *name, const char *stored, const char *asked)
{
    if (stored[0] == '\0' || asked[0] == '\0' || strcmp(stored, asked) == 0)
        return;
    note(r->o, "relaxed: measured with %s '%s', asked for '%s'", name, stored, asked);
    json_array_append_new(r->names, json_string(name));
}

static void relax_number(struct relaxing *r, const char *name, uint64_t stored, uint64_t asked)
{
    char texts[2][24];
    snprintf(texts[0], sizeof(texts[0]), "%" PRIu64, stored);
    snprintf(texts[1], sizeof(texts[1]), "%" PRIu64, asked);
    relax(r, name, texts[0], texts[1]);
}

/* Compiler and libraries are what a query has no time to ask for: it answers whatever they are. */
static void compare(void *ctx, const struct db_study *s)
{
    struct relaxing *r = ctx;
    const struct fingerprint *here = &r->here;
    relax(r, "device", s->target.device, here->device);
    relax(r, "uuid", s->target.uuid, here->uuid);
    relax(r, "capability", s->target.capability, here->capability);
    if (here->units > 0)
        relax_number(r, "units", (uint64_t)s->target.units, (uint64_t)here->units);
    relax(r, "driver", s->target.driver, here->driver);
    relax(r, "protocol", s->protocol, here->protocol);
    relax(r, "init", s->init, ranges_names[r->o->ranges]);
    relax_number(r, "input seed", s->seed, 0);
    if (options_has(r->o, OPT(VERBOSE)))
        note(r->o, "measured on %s with %s and %s", s->target.device, s->target.compiler,
             s->target.libraries);
}

/* ---- the command --------------------------------------------------------------------------------
 */

static int run(const struct options *o, struct status *st)
{
    struct tune_report report = {.new_trials = 0};
    struct workload w = {.batch = 0};
    struct target_name target;
    struct db *db = NULL;
    int64_t study;
    int code = -1;
    struct relaxing relaxing = {.o = o};
    struct history history = {.count = 0};
    if (o->operand_count > 0)
        return status_set(st, STATUS_USAGE, "unexpected '%s'; a query takes options only",
                          o->operands[0]);
    relaxing.names = json_array();
    if (workload_from_options(o, false, &target, &w, st) != 0 ||
        db_open(o->db, DB_READ, &db, st) != 0 ||
        study_of_workload(o, db, target, &w, &study, st) != 0 ||
        db_best(db, study, &report.best, st) != 0 || study_history(db, study, &history, st) != 0)
        goto out;
    if (read_baselines(o, db, study, &report, st) != 0)
        goto out;
    fingerprint_device(target, &relaxing.here);
    if (db_study_read(db, study, compare, &relaxing, st) != 0)
        goto out;
    fill(o, &history, &report);
    report_print(o, &w, target.kind, &report, json_incref(relaxing.names));
    code = EXIT_SUCCESS;
out:
    json_decref(relaxing.names);
    history_release(&history);
    db_best_release(&report.best);
    db_close(db);
    workload_release(&w);
    return code;
}

const struct command cmd_query = {
    .name = "query",
    .operands = "",
    .summary = "Print the best plan known for a workload, measuring nothing",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(INIT) | OPT(DB),
    .about = "Reads only, and creates no database.  Where the workload was measured elsewhere, on\n"
             "another device or with other inputs, that answer is given and what differs is said.\n"
             "Exits 3 where nothing is known.",
    .examples = "fuseplan query -b 1 -s 128 -m causal\n"
                "fuseplan query -b 1 -s 128 -m causal --format json | jq .best.value",
    .run = run,
};
