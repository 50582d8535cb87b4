#include "search/search_int.h"

#include <math.h>

/* Half widths of a 95 % interval are so many standard errors. */
#define INTERVAL_ERRORS 1.96

static void note_time(struct tuner *t, struct outcome now)
{
    struct pace *a = &t->anchor;
    double ratio = now.ms / a->first.ms;
    double noise = INTERVAL_ERRORS * hypot(now.noise, a->first.noise);
    double drift = fabs(ratio - 1) > noise ? ratio : 1;
    if (drift != a->drift)
        tuner_say(t, "note: plan %u takes %.3f times what it took at first; times of plans are %s",
                  plan_value(a->candidate.plan), ratio,
                  drift != 1 ? "divided by that" : "taken as they are again");
    a->drift = drift;
}

int anchor_check(struct tuner *t, struct status *st)
{
    struct pace *a = &t->anchor;
    struct trial trial = {.status = TRIAL_FAILED, .reason = STATUS_INIT};
    if (a->candidate.count == 0 || ++a->plans <= ANCHOR_EVERY)
        return 0;
    a->plans = 1;
    if (bench_plan(t->bench, &a->candidate, &sampling_search, &trial, st) != 0)
        return -1;
    if (trial.status == TRIAL_OK)
        note_time(t, outcome_of(trial.status, trial.ms));
    trial_release(&trial);
    return 0;
}

void anchor_note(struct tuner *t, const struct candidate *c, struct outcome *o)
{
    struct pace *a = &t->anchor;
    if (o->status == TRIAL_OK && a->candidate.count == 0)
        *a = (struct pace){.candidate = *c, .first = *o, .drift = 1};
    else if (o->status != TRIAL_FAILED && a->candidate.count > 0)
        o->ms /= a->drift;
}
