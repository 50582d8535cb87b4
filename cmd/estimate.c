/* search --rigor estimate: a plan for a workload that was never measured. */
#include "search/estimate.h"
#include "cmd/search_int.h"
#include "cmd/studies_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct estimating {
    const struct options *o;
    struct target_name target;
    struct workload workload;
    struct db *databases[2]; /* either may be null */
    struct known_workloads known;
    struct estimate got;
};

/* ---- where nothing near is known ------------------------------------------------------------- */

static void add_known(const struct estimating *e, int i, struct buf *out)
{
    struct buf text;
    buf_init(&text);
    struct db_workload w = db_workload_of(&e->known.items[i].workload, &text);
    known_options(&w, target_names[e->target.kind], out);
    buf_release(&text);
}

static int refuse_few(const struct estimating *e, struct status *st)
{
    struct db *db = e->databases[0] != NULL ? e->databases[0] : e->databases[1];
    const struct workload *w = &e->workload;
    struct status missing = STATUS_INIT;
    status_set(&missing, STATUS_NOT_FOUND,
               "an estimate needs segment times of %d workloads with %d heads of %d, ffn %d, %d "
               "layer%s and %s on %s, and '%s' has those of %d; 'fuseplan search' of other sizes "
               "or masks adds some",
               NEAR_LEAST, w->heads, w->head_size, w->ffn, w->layers, w->layers == 1 ? "" : "s",
               dtypes[w->dtype].name, target_names[e->target.kind], db_path(db), e->known.count);
    return known_refuse(db, &missing, st);
}

/* Says what is missing. */
static int refuse(const struct estimating *e, struct status *st)
{
    if (e->known.count < NEAR_LEAST)
        return refuse_few(e, st);
    struct buf nearest;
    buf_init(&nearest);
    add_known(e, e->got.nearest, &nearest);
    double away = workload_distance(&e->workload, &e->known.items[e->got.nearest].workload);
    if (away > NEAR_FACTOR)
        status_set(st, STATUS_NOT_FOUND,
                   "nothing near is known: the nearest workload, '%s', is a factor %.0f away in "
                   "tokens or kept blocks, and an estimate reaches a factor %d; 'fuseplan search' "
                   "of a workload between them brings it nearer",
                   nearest.ptr, away, NEAR_FACTOR);
    else
        status_set(st, STATUS_NOT_FOUND,
                   "no plan of --space has segments that were all timed in other workloads, or no "
                   "plan was measured there; 'fuseplan search' goes on with '%s', the nearest one",
                   nearest.ptr);
    buf_release(&nearest);
    return -1;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *interval_json(struct interval ms)
{
    return json_pack("{so so so}", "median_ms", json_number(ms.median), "ci_low_ms",
                     json_number(ms.low), "ci_high_ms", json_number(ms.high));
}

static json_t *plan_json(const struct workload *w, const struct estimated_plan *p)
{
    json_t *out =
        json_pack("{si so sb so sb}", "value", (int)plan_value(p->plan), "segments",
                  plan_segments_json(p->plan), "handwritten", p->plan.handwritten, "us_per_layer",
                  json_number(1e3 * p->ms.median / w->layers), "predicted", 1);
    json_t *ms = interval_json(p->ms);
    json_object_update(out, ms);
    json_decref(ms);
    return out;
}

/* The implementation that ran a slot fastest in the nearest workload that has it. */
static const char *implementation_of(const struct estimating *e, int slot)
{
    const char *out = "";
    double least = INFINITY;
    for (int i = 0; i < e->known.count; i++) {
        const struct known_workload *k = &e->known.items[i];
        double away = workload_distance(&e->workload, &k->workload);
        if (k->slots[slot].impl == NULL || away >= least)
            continue;
        least = away;
        out = k->slots[slot].impl;
    }
    return out;
}

static json_t *best_json_of(const struct estimating *e)
{
    json_t *out = plan_json(&e->workload, &e->got.plans[0]);
    json_t *implementations = json_array(), *times = json_array();
    int slots[OP_COUNT], n = plan_slots(e->got.plans[0].plan, slots);
    for (int i = 0; i < n; i++) {
        json_array_append_new(implementations, json_string(implementation_of(e, slots[i])));
        json_array_append_new(times, json_number(e->got.us[slots[i]]));
    }
    json_object_set_new(out, "implementation", implementations);
    json_object_set_new(out, "median_us", times);
    json_object_set_new(out, "device", json_string(e->known.device));
    return out;
}

static json_t *estimate_json(const struct estimating *e, json_t *relaxed)
{
    json_t *plans = json_array();
    struct buf nearest;
    buf_init(&nearest);
    add_known(e, e->got.nearest, &nearest);
    for (int i = 0; i < e->got.count; i++)
        json_array_append_new(plans, plan_json(&e->workload, &e->got.plans[i]));
    json_t *out = json_pack("{so so so sf s{si ss si so} sO}", "workload",
                            workload_json(&e->workload, e->target.kind), "best", best_json_of(e),
                            "plans", plans, "interval", ESTIMATE_SHARE, "known", "workloads",
                            e->got.known, "nearest", nearest.ptr, "judged", e->got.judged,
                            "usual_error", json_number(e->got.usual_error), "relaxed", relaxed);
    buf_release(&nearest);
    return out;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_segments(const struct estimating *e)
{
    static const struct column columns[] = {
        {"ops", "ops", 0},
        {"impl", "implementation nearby", 0},
        {"us", "alone, us", 1},
        {"operators", "operators", 0},
    };
    struct output out;
    struct segment segments[OP_COUNT];
    int slots[OP_COUNT], n = plan_slots(e->got.plans[0].plan, slots);
    plan_segments(e->got.plans[0].plan, segments);
    output_begin(&out, FORMAT_TABLE, columns, ARRAY_LEN(columns));
    for (int i = 0; i < n; i++) {
        struct buf names;
        char range[12];
        buf_init(&names);
        segment_describe(segments[i], &names);
        output_row(&out, json_pack("{ss ss so ss}", "ops", segment_text(segments[i], range), "impl",
                                   implementation_of(e, slots[i]), "us",
                                   json_number(e->got.us[slots[i]]), "operators", names.ptr));
        buf_release(&names);
    }
    output_end(&out);
}

static void print_text(const struct estimating *e)
{
    const struct estimated_plan *p = &e->got.plans[0];
    struct buf key, nearest;
    buf_init(&key);
    buf_init(&nearest);
    workload_text(&e->workload, &key);
    add_known(e, e->got.nearest, &nearest);
    printf("%-12s %s on %s\n", "workload", key.ptr, target_names[e->target.kind]);
    printf("%-12s %u, predicted, not measured\n\n", "plan", plan_value(p->plan));
    print_segments(e);
    int d = ms_decimals(p->ms.median), layers = e->workload.layers;
    printf("\n%-12s %.*f ms, with %.0f %% between %.*f and %.*f, for %d layer%s, %.1f us a layer\n",
           "expected", d, p->ms.median, 100 * ESTIMATE_SHARE, d, p->ms.low, d, p->ms.high, layers,
           layers > 1 ? "s" : "", 1e3 * p->ms.median / layers);
    printf("%-12s segment times of %d other workloads on %s, the nearest '%s'\n", "from",
           e->got.known, e->known.device, nearest.ptr);
    printf(
        "%-12s the estimates of %d of these, each from the others, are off by %.1f %% (root mean "
        "square)\n",
        "error", e->got.judged, 100 * e->got.usual_error);
    printf("%-12s", "next");
    for (int i = 1; i < e->got.count && i <= 4; i++)
        printf("%s %u +%.1f %%", i > 1 ? "," : "", plan_value(e->got.plans[i].plan),
               100 * (e->got.plans[i].ms.median / p->ms.median - 1));
    printf("%s\n", e->got.count > 1 ? "" : " none");
    buf_release(&key);
    buf_release(&nearest);
}

static void print(const struct estimating *e, json_t *relaxed)
{
    static const struct column columns[] = {
        {"value", NULL, 0},     {"handwritten", NULL, 0}, {"median_ms", NULL, 0},
        {"ci_low_ms", NULL, 0}, {"ci_high_ms", NULL, 0},  {"us_per_layer", NULL, 0},
        {"predicted", NULL, 0}, {"device", NULL, 0},
    };
    progress_hide();
    if (e->o->format == FORMAT_TABLE)
        print_text(e);
    else if (e->o->format == FORMAT_CSV)
        output_object(FORMAT_CSV, columns, ARRAY_LEN(columns), best_json_of(e));
    else
        output_object(e->o->format, NULL, 0, estimate_json(e, relaxed));
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool was_measured(const struct estimating *e)
{
    struct buf asked;
    bool same = false;
    buf_init(&asked);
    workload_text(&e->workload, &asked);
    for (int i = 0; i < e->known.count && !same; i++) {
        const struct known_workload *k = &e->known.items[i];
        struct buf text;
        buf_init(&text);
        workload_text(&k->workload, &text);
        same = strcmp(asked.ptr, text.ptr) == 0 && history_best(&k->plans) >= 0;
        buf_release(&text);
    }
    buf_release(&asked);
    return same;
}

static int estimate(struct estimating *e, struct status *st)
{
    const struct options *o = e->o;
    struct fingerprint here;
    fingerprint_device(e->target, &here);
    const struct db_study near = {.target = {.device = here.device},
                                  .protocol = here.protocol,
                                  .init = ranges_names[o->ranges]};
    const struct estimate_question q = {&e->workload, e->target.kind, &near};
    if (known_read(e->databases, &q, &e->known, st) != 0)
        return -1;
    struct plan *space = mem_alloc(PLAN_SPACE, sizeof(*space));
    int count = plan_space(o->space[0], o->space[1], space);
    e->got = estimate_plans(&e->known, NULL, &e->workload, space, count);
    free(space);
    if (e->got.count == 0)
        return refuse(e, st);
    json_t *relaxed = json_array();
    note_relaxed(o, "the estimate", "device", e->known.device, here.device, relaxed);
    note_relaxed(o, "the estimate", "protocol", e->known.protocol, here.protocol, relaxed);
    if (was_measured(e))
        note(o, "this workload was measured; 'fuseplan query' prints its best plan");
    print(e, relaxed);
    json_decref(relaxed);
    return 0;
}

/* Options that say what or how to measure have no meaning here. */
static int refuse_measuring(const struct options *o, struct status *st)
{
    static const enum option_id measuring[] = {
        OPTION_BASELINE,     OPTION_BUDGET,   OPTION_TIME_LIMIT, OPTION_AGAIN,
        OPTION_RETRY_FAILED, OPTION_STRATEGY, OPTION_QUANTILE,   OPTION_COMPILER,
        OPTION_ARCH,         OPTION_JOBS,     OPTION_EVENTS};
    for (size_t i = 0; i < ARRAY_LEN(measuring); i++)
        if ((o->given >> measuring[i] & 1) != 0)
            return status_set(st, STATUS_USAGE,
                              "--%s with --rigor estimate, which measures nothing; leave one of "
                              "them out",
                              option_info(measuring[i])->name);
    return 0;
}

int estimate_run(const struct options *o, struct status *st)
{
    struct estimating e = {.o = o};
    int code = -1;
    if (refuse_measuring(o, st) != 0)
        return -1;
    if (workload_from_options(o, true, &e.target, &e.workload, st) == 0 &&
        databases_open(o, DB_READ, e.databases, st) == 0)
        code = estimate(&e, st);
    known_release(&e.known);
    for (int i = 0; i < 2; i++)
        db_close(e.databases[i]);
    workload_release(&e.workload);
    return code;
}
