#include "search/search_int.h"

#include <math.h>

/* Half widths of a 95 % interval are so many standard errors. */
#define INTERVAL_ERRORS 1.96

/* The anchor's time to its first one, or 1 if the difference may be noise; NaN if it did not run.
 */
static int time_again(struct tuner *t, double *drift, struct status *st)
{
    struct pace *a = &t->anchor;
    struct trial trial = {.status = TRIAL_FAILED, .reason = STATUS_INIT};
    if (bench_plan(t->bench, &a->candidate, &sampling_search, &trial, st) != 0)
        return -1;
    *drift = NAN;
    if (trial.status == TRIAL_OK) {
        struct outcome now = outcome_of(trial.status, trial.ms);
        double noise = INTERVAL_ERRORS * hypot(now.noise, a->first.noise);
        *drift = fabs(now.ms / a->first.ms - 1) > noise ? now.ms / a->first.ms : 1;
    }
    trial_release(&trial);
    return 0;
}

/* The one of two ratios that is nearer to 1; 1 if they differ in direction. */
static double agreed(double a, double b)
{
    if ((a > 1) != (b > 1) || (a < 1) != (b < 1))
        return 1;
    return fabs(log(a)) < fabs(log(b)) ? a : b;
}

int anchor_check(struct tuner *t, struct status *st)
{
    struct pace *a = &t->anchor;
    double drift, second;
    if (a->candidate.count == 0 || ++a->plans <= ANCHOR_EVERY)
        return 0;
    a->plans = 1;
    if (time_again(t, &drift, st) != 0)
        return -1;
    if (isnan(drift))
        return 0;
    if (drift != a->drift) { /* something may have disturbed this one time */
        if (time_again(t, &second, st) != 0)
            return -1;
        drift = isnan(second) ? a->drift : agreed(drift, second);
    }
    if (drift != a->drift)
        tuner_say(t, "note: plan %u takes %.3f times what it took at first; times of plans are %s",
                  plan_value(a->candidate.plan), drift,
                  drift != 1 ? "divided by that" : "taken as they are again");
    a->drift = drift;
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
