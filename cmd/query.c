#include "cmd/plans.h"
#include "cmd/search_int.h"

#include <inttypes.h>

static void mark_plan(void *stored, int value)
{
    ((bool *)stored)[plan_key(plan_from_value((unsigned)value))] = true;
}

static int fill(const struct options *o, const struct session *s, struct tune_report *r,
                struct status *st)
{
    static struct plan space[PLAN_SPACE];
    static bool stored[PLAN_KEYS];
    const struct db_best *b = &r->best;
    memset(stored, 0, sizeof(stored));
    r->pack = s->pack;
    r->total_trials = (int)b->plans_total;
    r->failed_trials = (int)b->plans_failed;
    r->censored_trials = (int)b->plans_censored;
    r->space = plan_space(o->space[0], o->space[1], space);
    r->drift = 1;
    r->seconds = NAN;
    if (db_plan_values(s->db, s->study, mark_plan, stored, st) != 0)
        return -1;
    for (int i = 0; i < r->space; i++)
        r->space_trials += stored[plan_key(space[i])];
    return 0;
}

static int read_baselines(struct db *db, int64_t study, struct tune_report *r, struct status *st)
{
    const char *comparison = r->best.final ? r->best.comparison : "";
    if (plan_unstable(db, study, r->best.value, comparison, r->unstable, st) != 0 ||
        plan_conditions(db, study, r->best.value, comparison, &r->conditions, st) != 0 ||
        runner_up_read(db, study, &r->best, &r->runner_up, st) != 0)
        return -1;
    return r->pack != NULL
               ? 0 /* it has none */
               : baselines_of_best(db, study, &r->best, r->baselines, &r->baseline_count, st);
}

/* ---- how the stored answer differs from the request ------------------------------------------ */

struct relaxing {
    const struct options *o;
    struct fingerprint here;
    const char *mask; /* asked for */
    json_t *names;
    const char *pack; /* that answers; null: the database does */
    const struct db_best *best;
};

/* Nothing where the texts are equal or one is empty: unknown. */
static void relax(struct relaxing *r, const char *name, const char *stored, const char *asked)
{
    if (stored[0] == '\0' || asked[0] == '\0' || strcmp(stored, asked) == 0)
        return;
    note(r->o, "the answer differs in %s%s: measured with '%s', asked for '%s'",
         strcmp(name, "mask") == 0 ? "attention " : "", name, stored, asked);
    json_array_append_new(r->names, json_string(name));
}

static void relax_number(struct relaxing *r, const char *name, uint64_t stored, uint64_t asked)
{
    char texts[2][24];
    snprintf(texts[0], sizeof(texts[0]), "%" PRIu64, stored);
    snprintf(texts[1], sizeof(texts[1]), "%" PRIu64, asked);
    relax(r, name, texts[0], texts[1]);
}

/* Leaves out compiler and libraries: to find their versions would take longer than a query may. */
static void compare(struct relaxing *r, const struct db_study *s)
{
    const struct fingerprint *here = &r->here;
    if (r->pack != NULL)
        pack_note(r->o, "the answer is", r->pack, s, r->best, here);
    relax(r, "mask", s->mask, r->mask);
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

/* ---- --top ----------------------------------------------------------------------------------- */

static json_t *top_json(const struct workload *w, const struct top_plan *plans, int count)
{
    json_t *rows = json_array();
    for (int i = 0; i < count; i++) {
        const struct top_plan *t = &plans[i];
        json_array_append_new(
            rows, json_pack("{si si so so sb so so so so sb so}", "rank", i + 1, "value",
                            (int)plan_value(t->plan), "fused", plan_fused_json(t->plan), "segments",
                            plan_segments_json(t->plan), "handwritten", t->plan.handwritten,
                            LAYER_MEMBERS(t->ms, w->layers), "compared", t->compared, "times_best",
                            json_number(t->times_best)));
    }
    return rows;
}

/* Says which plan the search found faster than the best one, which won among others, and how to
 * compare the two. */
static void note_faster(const struct options *o, const struct top_plan *plans, int count)
{
    int i = 1;
    while (i < count && (plans[i].compared || plans[i].times_best >= 1))
        i++;
    if (i >= count)
        return;
    SCOPED_BUF verb = BUF_INIT, command = BUF_INIT;
    buf_addf(&verb, "bench %u %u", plan_value(plans[0].plan), plan_value(plans[i].plan));
    options_command(o, verb.ptr, OPTS_PLANS, &command);
    note(o,
         "%u took less time in its search than %u, but the two were not timed side by side; '%s' "
         "does that",
         plan_value(plans[i].plan), plan_value(plans[0].plan), command.ptr);
}

/* Reads the N fastest plans of --top; null without it. */
static int read_top(const struct options *o, const struct session *s, const struct db_best *best,
                    json_t **out, struct status *st)
{
    if (!options_has(o, OPT(TOP)))
        return 0;
    SCOPED struct top_plan *plans = mem_alloc((size_t)o->top, sizeof(*plans));
    int count = 0;
    if (study_top(s->db, s->study, best, o->top, plans, &count, st) != 0)
        return -1;
    note_faster(o, plans, count);
    *out = top_json(&s->workload, plans, count);
    return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run(const struct options *o, struct status *st)
{
    SCOPED_BY(tune_report_release) struct tune_report report = {.new_trials = 0};
    SCOPED_BY(session_close) struct session s;
    json_auto_t *top = NULL, *names = json_array();
    struct relaxing relaxing = {.o = o, .names = names};
    struct db_study stored;
    SCOPED_BUF mask = BUF_INIT, texts = BUF_INIT;
    if (session_open_study(o, DB_READ, SCOPE_NEAR, &s, st) != 0 ||
        best_of_study(&s, &report.best, st) != 0 || fill(o, &s, &report, st) != 0 ||
        read_baselines(s.db, s.study, &report, st) != 0 ||
        read_top(o, &s, &report.best, &top, st) != 0 ||
        db_study_read(s.db, s.study, &texts, &stored, st) != 0) {
        if (st->code == STATUS_NOT_FOUND)
            sizes_add_unknown(o);
        return -1;
    }
    fingerprint_device(s.target, &relaxing.here);
    relaxing.pack = s.pack;
    relaxing.best = &report.best;
    mask_text(&s.workload.mask_spec, &mask);
    relaxing.mask = mask.ptr;
    compare(&relaxing, &stored);
    search_print(o, &s.workload, s.target.kind, &report, json_incref(names), json_incref(top),
                 NULL);
    return EXIT_SUCCESS;
}

const struct command cmd_query = {
    .name = "query",
    .operands = "",
    .summary = "Print the best plan known for a workload, measuring nothing",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(INIT) | OPT(PRECISION) | OPT(TOP) | OPT(DB),
    .required = OPT(BATCH) | OPT(SEQ_LEN),
    .each = true,
    .exits = EXITS_NO_RESULT,
    .about =
        "Only reads the database.  Where the workload was not measured here, answers from another\n"
        "device of the same model, other inputs, the attention mask with other parameters, or any\n"
        "device of the kind, and says what differs.  Exits 3 if nothing is known.\n"
        "--top N adds the N fastest plans: those timed side by side with the best one by these\n"
        "times, the others by the times of their search.",
    .examples = "fuseplan query -b 1 -s 128 -m causal\n"
                "fuseplan query -b 1 -s 128 -m causal --top 10\n"
                "fuseplan query -b 1 -s 128 -m causal --format json | jq .best.value",
    .run = run,
};
