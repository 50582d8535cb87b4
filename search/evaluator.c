/* The evaluator of a real target: builds, verifies and times a plan, and stores the trial. */
#include "search/tuner_int.h"

/* The machine counts as slower if the best plan takes this much longer than before. */
#define SLOWED_RATIO 1.2

/* Times the segments of a plan that stage 1 had no time for: so that the plan runs the fastest
 * default of each, and if one fails, no plan with it is built. */
static int time_missing(struct tuner *t, struct plan p, struct status *st)
{
    int slots[OP_COUNT], missing = 0, count = plan_slots(p, slots);
    for (int i = 0; i < count; i++)
        if (t->segments.slots[slots[i]].best == NULL)
            slots[missing++] = slots[i];
    return time_slots(t, slots, missing, false, stage2_end, st);
}

/* Times the best plan again.  If it does not run, *ms is its old time, with the drift. */
static int time_best_again(struct tuner *t, double *ms, struct status *st)
{
    const struct observation *best = &t->history.items[history_best(&t->history)];
    struct candidate c;
    SCOPED_BY(trial_release) struct trial trial = {.status = TRIAL_FAILED, .reason = STATUS_INIT};
    *ms = anchor_drift(t) * best->outcome.ms;
    if (plan_candidate(&t->segments, NULL, best->plan, &c, STATUS_IGNORED) != 0)
        return 0;
    if (bench_plan(t->bench, &c, &sampling_search, &trial, st) != 0)
        return -1;
    if (trial.status == TRIAL_OK)
        *ms = trial.ms.median;
    return 0;
}

/* Censors a plan that is hopeless beside the best, unless it is a baseline.  If the best plan
 * itself takes longer than before, the machine has become slower, and the plan gets a second
 * chance. */
static int time_plan(struct tuner *t, const struct candidate *c, struct trial *out,
                     struct status *st)
{
    if (is_exhaustive(t)) /* slow plans are wanted too */
        return bench_plan(t->bench, c, &sampling_exhaustive, out, st);
    struct sampling how = sampling_search;
    int best = history_best(&t->history);
    if (best >= 0 && !baselines_have(&t->o->baselines, c->plan))
        how.censor_above_ms = HOPELESS_RATIO * anchor_drift(t) * t->history.items[best].outcome.ms;
    if (bench_plan(t->bench, c, &how, out, st) != 0)
        return -1;
    if (out->status != TRIAL_CENSORED)
        return 0;
    double best_ms;
    if (time_best_again(t, &best_ms, st) != 0)
        return -1;
    if (best_ms < SLOWED_RATIO * anchor_drift(t) * t->history.items[best].outcome.ms)
        return 0;
    how.censor_above_ms = HOPELESS_RATIO * best_ms;
    trial_release(out);
    return bench_plan(t->bench, c, &how, out, st);
}

/* Whether there is no time to build the segments of a plan that there was no time to time. */
static bool too_late(const struct tuner *t, struct plan p)
{
    int slots[OP_COUNT], missing = 0, count = plan_slots(p, slots);
    for (int i = 0; i < count; i++)
        missing +=
            t->segments.slots[slots[i]].best == NULL && !slot_failed(&t->segments.slots[slots[i]]);
    return missing > 0 && t->clock() + missing * t->slowest.build_s > stage2_end(t);
}

static int measure_in_time(struct tuner *t, struct plan plan, struct outcome *out,
                           struct status *st)
{
    struct candidate c;
    SCOPED_BY(trial_release) struct trial trial = {.status = TRIAL_FAILED, .reason = STATUS_INIT};
    if (time_missing(t, plan, st) != 0)
        return -1;
    if (too_late(t, plan))
        return status_set(st, STATUS_TIMEOUT, "no time is left to build plan %u", plan_value(plan));
    bool broken = plan_candidate(&t->segments, NULL, plan, &c, &trial.reason) != 0;
    if ((!is_exhaustive(t) && anchor_check(t, st) != 0) ||
        (!broken && !first_plan_take(t, &c, &trial) && time_plan(t, &c, &trial, st) != 0) ||
        trial_store(t->db, t->study, DB_TRIAL_PLAN, &c, &trial, t->search_id, st) != 0)
        return -1;
    *out = outcome_of(trial.status, trial.ms);
    anchor_note(t, &c, out);
    return 0;
}

static int measure_plan(void *ctx, struct plan plan, struct outcome *out, struct status *st)
{
    int result = measure_in_time(ctx, plan, out, st);
    if (result != 0 && st->code == STATUS_TIMEOUT)
        tuner_say(ctx, "%s", st->message); /* the search only knows that its time is over */
    return result;
}

static const struct segment_times *segment_times_of(void *ctx)
{
    return &((struct tuner *)ctx)->segments.times;
}

static bool plan_fails(void *ctx, struct plan p)
{
    const struct tuner *t = ctx;
    int slots[OP_COUNT];
    int count = plan_slots(p, slots);
    for (int i = 0; i < count; i++)
        if (slot_failed(&t->segments.slots[slots[i]]))
            return true;
    return false;
}

bool plan_lacks_code(void *ctx, struct plan p)
{
    const struct tuner *t = ctx;
    int slots[OP_COUNT];
    int count = plan_slots(p, slots);
    for (int i = 0; i < count; i++)
        if (t->segments.slots[slots[i]].count == 0)
            return true;
    return false;
}

static double now(void *ctx)
{
    return ((const struct tuner *)ctx)->clock();
}

struct evaluator tuner_evaluator(struct tuner *t)
{
    return (struct evaluator){.measure = measure_plan,
                              .segments = segment_times_of,
                              .fails = plan_fails,
                              .now = now,
                              .ctx = t};
}
