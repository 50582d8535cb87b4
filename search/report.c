#include "search/search_int.h"

#include <math.h>

static const struct db_best no_best = {
    .value = -1, .unfused = {NAN, NAN, NAN}, .first_version = {NAN, NAN, NAN}};

static int fill_best(struct tuner *t, struct tune_report *out, struct status *st)
{
    if (db_best(t->db, t->study, &out->best, st) < 0) {
        if (st->code != STATUS_NOT_FOUND)
            return -1;
        *st = STATUS_INIT;
        out->best = no_best;
    }
    return 0;
}

int report_fill(struct tuner *t, enum search_stop stopped_by, struct tune_report *out,
                struct status *st)
{
    *out = (struct tune_report){
        .best = no_best,
        .new_trials = t->new_trials,
        .total_trials = t->history.count,
        .space = t->space_count,
        .space_trials = history_count_in(&t->history, t->space, t->space_count),
        .stopped_by = search_stop_names[stopped_by],
        .model_spearman = NAN,
        .expected_faster_share = NAN,
        .additive_value = additive_best(t->space, t->space_count, &t->segments.times)};
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
