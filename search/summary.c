/* The report of a search: the best plan, and what was measured. */
#include "search/tuner_int.h"

/* ---- how sure the search is ------------------------------------------------------------------ */

/* The least time that the roofline allows the whole chain, as one kernel: all layers; NaN if
 * unknown. */
static int chain_least_ms(struct tuner *t, double *out, struct status *st)
{
    const struct workload *w = bench_workload(t->bench);
    const unsigned precision = bench_target(t->bench)->precision;
    const struct work chain = segment_work((struct segment){0, OP_COUNT - 1}, w, precision);
    struct limits rates;
    bool of_device, memory_bound;
    if (study_rates(t->db, t->study, &t->segments.times, w, precision, &rates, &of_device, st) != 0)
        return -1;
    *out = 1e-3 * w->layers * least_us(&chain, &rates, &memory_bound);
    return 0;
}

/* Unless the search ended before it was sure, left segments to a quieter machine, or its times say
 * nothing. */
static int fill_certainty(struct tuner *t, enum search_stop stopped_by, struct tune_report *out,
                          struct status *st)
{
    bool fails[SLOT_COUNT];
    double least_ms = NAN;
    int best = history_best(&t->history);
    if (best < 0 || out->indistinct || t->told.crowded ||
        (stopped_by != STOP_CONVERGED && stopped_by != STOP_SPACE))
        return 0;
    for (int i = 0; i < SLOT_COUNT; i++)
        fails[i] = slot_failed(&t->segments.slots[i]);
    certainty_of(&t->history, &t->segments.times, fails, t->space, t->space_count,
                 bench_workload(t->bench)->layers, &out->certainty);
    int result = chain_least_ms(t, &least_ms, st);
    out->certainty.roofline = t->history.items[best].outcome.ms / least_ms;
    return result;
}

/* ---- the report ------------------------------------------------------------------------------ */

static const struct db_best no_best = {.value = -1};

static int fill_best(struct tuner *t, struct tune_report *out, struct status *st)
{
    if (db_best(t->db, t->study, &out->best, st) != 0) {
        if (st->code != STATUS_NOT_FOUND)
            return -1;
        *st = STATUS_INIT;
        out->best = no_best;
    }
    out->baseline_count = t->o->baselines.count;
    if (out->best.final && plan_unstable(t->db, t->study, out->best.value, out->best.comparison,
                                         out->unstable, st) != 0)
        return -1;
    if (out->best.value >= 0 &&
        plan_conditions(t->db, t->study, out->best.value,
                        out->best.final ? out->best.comparison : "", &out->conditions, st) != 0)
        return -1;
    return runner_up_read(t->db, t->study, &out->best, &out->runner_up, st) != 0
               ? -1
               : baselines_read(t->db, t->study, &out->best, &t->o->baselines, out->baselines, st);
}

/* Counts what is stored, also by searches beside this one. */
static int fill_counts(const struct tuner *t, struct tune_report *out, struct status *st)
{
    SCOPED_BY(history_release) struct history stored = {.count = 0};
    if (study_history(t->db, t->study, &stored, st) != 0)
        return -1;
    out->total_trials = stored.count;
    out->space_trials = history_count_in(&stored, t->space, t->space_count);
    for (int i = 0; i < stored.count; i++) {
        out->failed_trials += stored.items[i].outcome.status == TRIAL_FAILED;
        out->censored_trials += stored.items[i].outcome.status == TRIAL_CENSORED;
    }
    return 0;
}

int report_fill(struct tuner *t, enum search_stop stopped_by, struct tune_report *out,
                struct status *st)
{
    *out = (struct tune_report){
        .best = no_best,
        .new_trials = t->new_trials,
        .space = t->space_count,
        .stopped_by = search_stop_names[stopped_by],
        .indistinct = history_indistinct(&t->history),
        .drift = anchor_drift(t),
    };
    for (int i = 0; i < t->history.count; i++) {
        const struct observation *o = &t->history.items[i];
        bool asked_for = baselines_have(&t->o->baselines, o->plan);
        out->proposed[asked_for ? SIGNAL_NONE : o->by]++;
    }
    if (fill_counts(t, out, st) != 0 || fill_best(t, out, st) != 0 ||
        fill_certainty(t, stopped_by, out, st) != 0) {
        tune_report_release(out);
        return -1;
    }
    for (int i = 0; i < t->history.count; i++)
        if ((int)plan_value(t->history.items[i].plan) == out->best.value &&
            !baselines_have(&t->o->baselines, t->history.items[i].plan))
            out->best_by = t->history.items[i].by;
    out->seconds = t->clock() - t->start;
    return 0;
}

void tune_report_release(struct tune_report *r)
{
    db_best_release(&r->best);
}
