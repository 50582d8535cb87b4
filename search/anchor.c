#include "search/tuner_int.h"

/* The anchor's time to its first one. */
struct ratio {
    double value; /* NaN: it did not run */
    double noise; /* half width of the 95 % interval, as a share */
};

/* The ratio of the anchor's time now to its first one. */
static int time_again(struct tuner *t, struct ratio *out, struct status *st)
{
    struct anchor_plan *a = &t->anchor;
    SCOPED_BY(trial_release) struct trial trial = {.status = TRIAL_FAILED, .reason = STATUS_INIT};
    *out = (struct ratio){NAN, NAN};
    if (bench_plan(t->bench, &a->candidate, &sampling_search, &trial, st) != 0)
        return -1;
    if (trial.status == TRIAL_OK) {
        struct outcome now = outcome_of(trial.status, trial.ms);
        *out = (struct ratio){.value = now.ms / a->first.ms,
                              .noise = INTERVAL_ERRORS * hypot(now.noise, a->first.noise)};
    }
    return 0;
}

/* Whether a ratio may be this drift, with noise. */
static bool may_be(const struct ratio *r, double drift)
{
    return fabs(r->value / drift - 1) <= r->noise;
}

/* What a ratio says of the drift, which was this one before. */
static double drift_of(const struct ratio *r, double before)
{
    if (isnan(r->value) || may_be(r, before))
        return before;
    return may_be(r, 1) ? 1 : r->value;
}

/* The one of two ratios that is nearer to the drift. */
static const struct ratio *nearer(const struct ratio *a, const struct ratio *b, double drift)
{
    return fabs(log(b->value / drift)) < fabs(log(a->value / drift)) ? b : a;
}

static void say_drift(const struct tuner *t, double drift)
{
    SCOPED_BUF name = BUF_INIT;
    plan_add(plan_value(t->anchor.candidate.plan), &name);
    tuner_say(t, "note: plan %s takes %.3f times what it took at first; times of plans are %s",
              name.ptr, drift, drift != 1 ? "divided by that" : "taken as they are again");
}

int anchor_check(struct tuner *t, struct status *st)
{
    struct anchor_plan *a = &t->anchor;
    struct ratio first, second;
    if (a->candidate.count == 0 || ++a->plans <= ANCHOR_EVERY)
        return 0;
    a->plans = 1;
    if (time_again(t, &first, st) != 0)
        return -1;
    double drift = drift_of(&first, a->drift);
    if (drift != a->drift && drift != 1) { /* something may have disturbed this one time */
        if (time_again(t, &second, st) != 0)
            return -1;
        drift =
            isnan(second.value) ? a->drift : drift_of(nearer(&first, &second, a->drift), a->drift);
    }
    if (drift != a->drift)
        say_drift(t, drift);
    a->drift = drift;
    return 0;
}

void anchor_note(struct tuner *t, const struct candidate *c, struct outcome *o)
{
    struct anchor_plan *a = &t->anchor;
    if (o->status == TRIAL_OK && a->candidate.count == 0)
        *a = (struct anchor_plan){.candidate = *c, .first = *o, .drift = 1};
    else if (o->status != TRIAL_FAILED && a->candidate.count > 0) {
        o->ms /= a->drift;
        o->drift = a->drift - 1;
    }
}

double anchor_drift(const struct tuner *t)
{
    return t->anchor.candidate.count > 0 ? t->anchor.drift : 1;
}

bool machine_is_crowded(struct tuner *t)
{
    enum { ENOUGH = 10 };
    struct disturbance d = bench_disturbance(t->bench);
    bool crowded = !is_exhaustive(t) && d.measured >= ENOUGH && 2 * d.crowded > d.measured;
    if (crowded && !t->told.crowded)
        tuner_say(t, "the machine is busy: other schedules, and most segments of several stages, "
                     "are left to a longer search on a quieter one");
    t->told.crowded |= crowded;
    return crowded;
}
