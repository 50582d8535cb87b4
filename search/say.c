#include "search/tuner_int.h"

static const char *const tune_phases[PHASE_COUNT] = {
    [PHASE_BASELINES] = "baselines", [PHASE_FAILURES] = "failures", [PHASE_SEGMENTS] = "segments",
    [PHASE_SCHEDULES] = "schedules", [PHASE_PLANS] = "plans",       [PHASE_FINALS] = "finals",
};

void tuner_say(const struct tuner *t, const char *fmt, ...)
{
    char line[1200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (t->o->say != NULL)
        t->o->say(t->o->ctx, line);
}

static const struct observation *first_baseline(const struct tuner *t)
{
    const struct observation *known = NULL;
    for (int i = 0; i < t->o->baselines.count && known == NULL; i++)
        known = history_find(&t->history, t->o->baselines.plans[i]);
    return known;
}

void tuner_step_by(const struct tuner *t, enum tune_phase phase, int done, int total, double left_s,
                   const struct observation *latest)
{
    if (t->o->step == NULL)
        return;
    int best = history_best(&t->history);
    const struct observation *first = t->first.ran ? &t->first.known : NULL;
    double left = fmin(left_s, t->end - t->clock());
    bool known = isfinite(left) && phase != PHASE_FINALS; /* in the finals the bench knows better */
    const struct tune_state state = {.step = {.phase = tune_phases[phase],
                                              .done = done,
                                              .total = total,
                                              .left_s = known ? fmax(left, 0) : NAN},
                                     .latest = latest,
                                     .best = best >= 0 ? &t->history.items[best] : first,
                                     .baseline = first_baseline(t)};
    t->o->step(t->o->ctx, &state);
}

void tuner_step(const struct tuner *t, enum tune_phase phase, int done, int total,
                const struct observation *latest)
{
    tuner_step_by(t, phase, done, total, INFINITY, latest);
}

void say_failed(const struct tuner *t, const char *fate)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        if (slot_failed(&t->segments.slots[i]) && t->segments.slots[i].count > 0)
            tuner_say(t, "ops %d-%d fail alone, plans with them are %s: %s", slot_segment(i).first,
                      slot_segment(i).last, fate, t->segments.slots[i].reason.message);
}

static void say_once(const struct tuner *t,
                     void (*text)(const struct disturbance *d, struct buf *out), bool *said)
{
    struct disturbance d = bench_disturbance(t->bench);
    SCOPED_BUF line = BUF_INIT;
    text(&d, &line);
    if (line.len > 0 && !*said) {
        tuner_say(t, "note: %s", line.ptr);
        *said = true;
    }
}

void say_sharing(struct tuner *t)
{
    say_once(t, disturbance_sharing_text, &t->told.sharing);
}

void say_disturbance(struct tuner *t)
{
    bool said_crowd = false, said_slowdown = false;
    say_sharing(t);
    say_once(t, disturbance_crowd_text, &said_crowd);
    say_once(t, disturbance_slowdown_text, &said_slowdown);
}
