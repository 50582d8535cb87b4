#include "search/search_int.h"

#include <math.h>

/* The row of a value with a known median: its interval. */
struct wanted {
    int value;
    double median_ms;
    struct interval *out;
};

static int interval_row(void *ctx, const struct db_trial *row)
{
    const struct wanted *w = ctx;
    if (row->value != w->value || row->median_ms != w->median_ms)
        return 0;
    *w->out = (struct interval){row->median_ms, row->ci_low_ms, row->ci_high_ms};
    return 1;
}

static int fill_best(struct tuner *t, struct tune_report *out, struct status *st)
{
    if (db_best(t->db, t->study, &out->best, st) < 0) {
        if (st->code != STATUS_NOT_FOUND)
            return -1;
        *st = STATUS_INIT;
        out->best.value = -1;
        return 0;
    }
    struct wanted references[] = {
        {VALUE_UNFUSED, out->best.unfused_ms, &out->unfused},
        {VALUE_FIRST_VERSION, out->best.first_version_ms, &out->first_version},
    };
    enum db_trial_kind kind = out->best.final ? DB_TRIAL_FINAL : DB_TRIAL_PLAN;
    for (size_t i = 0; i < ARRAY_LEN(references); i++)
        if (db_trials(t->db, t->study, kind, interval_row, &references[i], st) < 0)
            return -1;
    return 0;
}

int report_fill(struct tuner *t, enum search_stop stopped_by, struct tune_report *out,
                struct status *st)
{
    const struct interval unknown = {NAN, NAN, NAN};
    *out = (struct tune_report){.best.value = -1,
                                .unfused = unknown,
                                .first_version = unknown,
                                .new_trials = t->new_trials,
                                .total_trials = t->history.count,
                                .space = t->space_count,
                                .space_trials =
                                    history_count_in(&t->history, t->space, t->space_count),
                                .stopped_by = search_stop_names[stopped_by],
                                .model_spearman = NAN,
                                .expected_faster_share = NAN,
                                .additive_value = additive_best(t, &t->segments.times)};
    for (int i = 0; i < t->history.count; i++) {
        out->failed_trials += t->history.items[i].outcome.status == OUTCOME_FAILED;
        out->censored_trials += t->history.items[i].outcome.status == OUTCOME_CENSORED;
    }
    if (fill_best(t, out, st) < 0 || learn_study(t, out, st) < 0) {
        tune_report_release(out);
        return -1;
    }
    out->seconds = clock_seconds() - t->start;
    return 0;
}

void tune_report_release(struct tune_report *r)
{
    db_best_release(&r->best);
}
