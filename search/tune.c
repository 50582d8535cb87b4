#include "search/search_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of a time limit: what stage 1 may use, and what is kept for the finalists' samples.  Where those
 * and verifying them would take more than FINALS_MOST, plans are worth more. */
#define STAGE1_SHARE 0.5
#define FINALS_SHARE 0.15
#define FINALS_MOST  0.4

enum { MINUTE = 60, HOUR = 60 * MINUTE }; /* seconds */

const char *const rigor_names[RIGOR_COUNT] = {
    [RIGOR_MEASURE] = "measure", [RIGOR_EXHAUSTIVE] = "exhaustive"};

static bool exhaustive(const struct tuner *t)
{
    return t->o->rigor == RIGOR_EXHAUSTIVE;
}

/* ---- phases ---------------------------------------------------------------------------------- */

/* What the rest of the space takes if it goes on as it has; "" where that is not known. */
static const char *time_left(const struct tuner *t, int measured, char out[32])
{
    if (!exhaustive(t) || measured == 0)
        return "";
    double spent_s = clock_seconds() - t->stage2.start;
    double left_s = spent_s / measured * (t->stage2.open - measured);
    if (left_s < 2 * MINUTE)
        snprintf(out, 32, ", %.0f s left", left_s);
    else if (left_s < 2 * HOUR)
        snprintf(out, 32, ", %.0f min left", left_s / MINUTE);
    else
        snprintf(out, 32, ", %.1f h left", left_s / HOUR);
    return out;
}

static void plan_tick(void *ctx, const struct history *h, const struct observation *latest)
{
    (void)latest;
    const struct tuner *t = ctx;
    char of[32] = "", left[32];
    int best = history_best(h), measured = h->count - t->stage2.before;
    if (exhaustive(t))
        snprintf(of, sizeof(of), " of %d", t->stage2.before + t->stage2.open);
    if (best >= 0)
        tuner_tick(t, "plans: %d%s measured, best %u with %.3f ms%s", h->count, of,
                   plan_value(h->items[best].plan), h->items[best].outcome.ms,
                   time_left(t, measured, left));
    else
        tuner_tick(t, "plans: %d%s measured, none ran yet%s", h->count, of,
                   time_left(t, measured, left));
}

/* A share of the time limit as a moment; infinite without a limit. */
static double moment(const struct tuner *t, double share)
{
    return t->start + share * (t->end - t->start);
}

/* When segments alone must be done with.  An exhaustive search begins no plan before that: all of
 * its plans run the same choices. */
static double stage1_end(const struct tuner *t)
{
    return moment(t, exhaustive(t) ? 1 - FINALS_SHARE : STAGE1_SHARE);
}

/* When plans must be done with. */
static double stage2_end(const struct tuner *t)
{
    double limit = t->end - t->start;
    double finals = fmax(FINALS_SHARE * limit, least_finals_seconds(t)) + t->verify_s;
    return finals > FINALS_MOST * limit ? t->end : t->end - finals;
}

static int search_values(struct tuner *t, unsigned lo, unsigned hi, struct search_result *out,
                         struct status *st)
{
    struct search_options o = t->o->search;
    o.space_lo = lo;
    o.space_hi = hi;
    if (exhaustive(t)) /* expects nothing, so that it never converges */
        o.strategy = strategy_find("random");
    if (o.time_limit_s > 0) /* where nothing is left: a limit still */
        o.time_limit_s = fmax(1e-9, stage2_end(t) - clock_seconds());
    struct evaluator e = tuner_evaluator(t);
    if (lo == hi || exhaustive(t)) /* plans asked for by name: a known failure is an answer too */
        e.fails = NULL;
    t->stage2.start = clock_seconds();
    t->stage2.before = t->history.count;
    t->stage2.open = t->space_count - history_count_in(&t->history, t->space, t->space_count);
    int rc = search_loop(&o, &e, &t->history, plan_tick, t, out, st);
    t->new_trials += t->history.count - t->stage2.before;
    return rc;
}

/* The two plans that all others are compared with come first, with the segments that they need, so
 * that whenever the search ends there is something to compare with. */
static int measure_reference(struct tuner *t, unsigned value, struct search_result *out,
                             struct status *st)
{
    int slots[OP_COUNT];
    struct plan p = plan_from_value(value);
    int count = plan_slots(p, slots);
    *out = (struct search_result){.stopped_by = STOP_SPACE};
    if (history_has(&t->history, p))
        return 0;
    if (time_slots(t, slots, count, true, stage1_end(t), st) < 0)
        return -1;
    return search_values(t, value, value, out, st);
}

static void say_failed(const struct tuner *t)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        if (slot_failed(&t->segments.slots[i]))
            tuner_say(t, "ops %d-%d fail alone, plans with them are %s: %s", slot_segment(i).first,
                      slot_segment(i).last, exhaustive(t) ? "stored as failed" : "left out",
                      t->segments.slots[i].reason.message);
}

static int run_phases(struct tuner *t, struct search_result *result, struct status *st)
{
    const struct search_options *o = &t->o->search;
    const unsigned references[] = {VALUE_UNFUSED, VALUE_FIRST_VERSION};
    tuner_say(t, "measuring the unfused plan and %d", VALUE_FIRST_VERSION);
    for (size_t i = 0; i < ARRAY_LEN(references); i++) {
        if (measure_reference(t, references[i], result, st) < 0)
            return -1;
        say_sharing(t);
        if (result->stopped_by != STOP_SPACE)
            return 0;
    }
    tuner_say(t, "building and timing each segment alone");
    if (stage1(t, stage1_end(t), st) < 0)
        return -1;
    say_failed(t);
    tuner_say(t, "%s %d plans", exhaustive(t) ? "measuring all" : "searching", t->space_count);
    return search_values(t, o->space_lo, o->space_hi, result, st);
}

static bool budget_spent(const struct tuner *t)
{
    return t->o->search.budget > 0 && t->history.count >= t->o->search.budget;
}

/* An interrupt ends all phases, and is no failure. */
static int measure_all(struct tuner *t, struct search_result *result, struct status *st)
{
    int rc = budget_spent(t) ? 0 : run_phases(t, result, st);
    if (rc == 0 && result->stopped_by != STOP_INTERRUPTED)
        rc = measure_finals(t, st);
    say_disturbance(t);
    if (rc < 0 && st->code == STATUS_INTERRUPTED) {
        *st = STATUS_INIT;
        result->stopped_by = STOP_INTERRUPTED;
        rc = 0;
    }
    return rc;
}

/* ---- tune ------------------------------------------------------------------------------------ */

static int tuner_open(struct tuner *t, struct status *st)
{
    const struct search_options *o = &t->o->search;
    t->start = clock_seconds();
    t->end = o->time_limit_s > 0 ? t->start + o->time_limit_s : INFINITY;
    t->space_count = plan_space(o->space_lo, o->space_hi, t->space);
    segment_table_init(&t->segments, bench_target(t->bench));
    if (study_open(t->bench, t->db, &t->study, st) < 0 ||
        segment_table_read(&t->segments, t->db, t->study, st) < 0)
        return -1;
    return study_history(t->db, t->study, &t->history, st);
}

static int tuner_start(struct tuner *t, struct status *st)
{
    const struct search_options *o = &t->o->search;
    struct buf options;
    buf_init(&options);
    buf_addf(&options,
             "{\"rigor\": \"%s\", \"space\": [%u, %u], \"budget\": %d, \"time_limit_s\": %g, "
             "\"seed\": %" PRIu64 ", \"quantile\": %g}",
             rigor_names[t->o->rigor], o->space_lo, o->space_hi, o->budget, o->time_limit_s,
             o->seed, o->quantile);
    const char *strategy = exhaustive(t) ? rigor_names[RIGOR_EXHAUSTIVE] : o->strategy->name;
    int rc = db_search_start(t->db, t->study, strategy, options.ptr, t->search_id, st);
    buf_release(&options);
    return rc;
}

int tune(struct bench *b, struct db *db, const struct tune_options *o, struct tune_report *out,
         struct status *st)
{
    struct tuner *t = mem_alloc(1, sizeof(*t));
    *t = (struct tuner){.bench = b, .db = db, .o = o};
    struct search_result result = {.stopped_by = STOP_BUDGET};
    int rc = -1;
    bool done = false; /* a spent budget buys no more than the finals that an interrupt cut off */
    *out = (struct tune_report){.best.value = -1};
    if (tuner_open(t, st) < 0 || (budget_spent(t) && finals_held(t, &done, st) < 0))
        goto out;
    if (!done && (tuner_start(t, st) < 0 || measure_all(t, &result, st) < 0 ||
                  db_search_end(db, t->search_id, search_stop_names[result.stopped_by], st) < 0))
        goto out;
    rc = report_fill(t, result.stopped_by, out, st);
out:
    segment_table_release(&t->segments);
    history_release(&t->history);
    free(t);
    return rc;
}
