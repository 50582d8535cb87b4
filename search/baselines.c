/* Baselines: plans that others are compared with. */
#include "search/tuner_int.h"

#include <jansson.h>

/* ---- which they are -------------------------------------------------------------------------- */

bool baselines_have(const struct baselines *b, struct plan p)
{
    for (int i = 0; i < b->count; i++)
        if (plan_equal(b->plans[i], p))
            return true;
    return false;
}

void baselines_text(const struct baselines *b, struct buf *out)
{
    for (int i = 0; i < b->count; i++)
        buf_addf(out, "%s%u", i > 0 ? ", " : "", plan_value(b->plans[i]));
}

void baselines_of_search(const char *options_json, struct baselines *out)
{
    size_t i;
    json_t *value;
    json_auto_t *options = json_loads(options_json, 0, NULL);
    const json_t *values = json_object_get(options, "baselines");
    if (json_is_array(values))
        out->count = 0;
    json_array_foreach(values, i, value)
    {
        if (out->count < BASELINES_MAX && json_is_integer(value))
            out->plans[out->count++] = plan_from_value((unsigned)json_integer_value(value));
    }
}

/* ---- their times ----------------------------------------------------------------------------- */

struct interval times_ratio(const struct trial *a, const struct trial *b)
{
    int pairs = a->sample_count < b->sample_count ? a->sample_count : b->sample_count;
    if (a == b)
        return (struct interval){1, 1, 1};
    if (pairs == 0)
        return (struct interval){.median = a->ms.median / b->ms.median,
                                 .low = a->ms.low / b->ms.high,
                                 .high = a->ms.high / b->ms.low};
    return stats_median_ratio(a->samples_ms, b->samples_ms, (size_t)pairs);
}

struct baseline_time baseline_beside(struct plan p, const struct trial *baseline,
                                     const struct trial *plan, const char *compared_at)
{
    struct baseline_time out = {
        .plan = p, .ms = NO_INTERVAL, .speedup = NO_INTERVAL, .reason = baseline->reason};
    if (baseline->status != TRIAL_OK)
        return out;
    out.ms = baseline->ms;
    if (plan != NULL && plan->status == TRIAL_OK) {
        out.speedup = times_ratio(baseline, plan);
        snprintf(out.compared_at, sizeof(out.compared_at), "%s", compared_at);
    }
    return out;
}

bool baseline_ties(const struct baseline_time *b)
{
    return (b->speedup.low <= 1 && 1 <= b->speedup.high) || fabs(b->speedup.median - 1) <= b->tie;
}

static int read_one(struct db *db, int64_t study, const struct db_best *best,
                    const struct trial *best_trial, struct plan p, struct baseline_time *out,
                    struct status *st)
{
    SCOPED_BY(trial_release) struct trial trial;
    char stored_utc[CLOCK_UTC_SIZE];
    bool compared = best->final;
    int found = 0, value = (int)plan_value(p);
    if (compared)
        found = trial_read(db, study, value, best->comparison, &trial, NULL, stored_utc, st);
    if (found == 0) {
        compared = false;
        found = trial_read(db, study, value, "", &trial, NULL, stored_utc, st);
    }
    const struct trial *baseline = value == best->value && compared ? best_trial : &trial;
    if (found >= 0)
        *out = baseline_beside(p, baseline, compared ? best_trial : NULL, stored_utc);
    if (found > 0 && baseline->status != TRIAL_OK) {
        out->reason = STATUS_INIT;
        status_set(&out->reason, STATUS_UNFIT, "%s (measured %s)", baseline->reason.message,
                   stored_utc);
    }
    if (found < 0)
        return -1;
    return plan_unstable(db, study, value, compared ? best->comparison : "", out->unstable, st);
}

int baselines_read(struct db *db, int64_t study, const struct db_best *best,
                   const struct baselines *wanted, struct baseline_time out[BASELINES_MAX],
                   struct status *st)
{
    SCOPED_BY(trial_release) struct trial best_trial = {.status = TRIAL_FAILED};
    if (best->final &&
        trial_read(db, study, best->value, best->comparison, &best_trial, NULL, NULL, st) < 0)
        return -1;
    for (int i = 0; i < wanted->count; i++)
        if (read_one(db, study, best, &best_trial, wanted->plans[i], &out[i], st) != 0)
            return -1;
    return 0;
}

int runner_up_read(struct db *db, int64_t study, const struct db_best *best,
                   struct baseline_time *out, struct status *st)
{
    int value;
    *out = (struct baseline_time){.ms = NO_INTERVAL, .speedup = NO_INTERVAL};
    int found = best->final ? db_rival(db, study, best->value, best->comparison, &value, st) : 0;
    const struct baselines next = {1, {plan_from_value(found > 0 ? (unsigned)value : 0)}};
    if (found <= 0)
        return found;
    int result = baselines_read(db, study, best, &next, out, st);
    out->tie = DB_TIE; /* by which the best plan was chosen */
    return result;
}

/* ---- in a search ----------------------------------------------------------------------------- */

bool baselines_measured(const struct tuner *t)
{
    for (int i = 0; i < t->o->baselines.count; i++)
        if (!history_has(&t->history, t->o->baselines.plans[i]))
            return false;
    return true;
}

void say_baselines(const struct tuner *t)
{
    const struct baselines *b = &t->o->baselines;
    SCOPED_BUF text = BUF_INIT;
    for (int i = 0; i < b->count; i++) {
        buf_adds(&text, i > 0 ? ", " : "");
        plan_add(plan_value(b->plans[i]), &text);
    }
    if (!baselines_measured(t))
        tuner_say(t, "measuring the baselines: %s", text.ptr);
}

static int compilers_of(const struct candidate *c)
{
    int count = 0;
    for (int i = 0; i < c->count; i++)
        count += !c->choices[i].impl->library;
    return count;
}

bool cheapest_baseline(const struct tuner *t, struct candidate *out)
{
    const struct baselines *b = &t->o->baselines;
    bool found = false;
    for (int i = 0; i < b->count; i++) {
        struct candidate c;
        if (history_has(&t->history, b->plans[i]) ||
            plan_candidate(&t->segments, NULL, b->plans[i], &c, STATUS_IGNORED) != 0 ||
            (found && compilers_of(&c) >= compilers_of(out)))
            continue;
        *out = c;
        found = true;
    }
    return found;
}
