/* Phases that measure what is asked for: the baselines, and what is stored as failed. */
#include "search/tuner_int.h"

static void step_of_one(void *ctx, const struct history *h, const struct observation *latest)
{
    tuner_step(ctx, PHASE_PLANS, h->count, 0, latest);
}

/* Measures a plan whatever the budget, and stores its failure too. */
static int measure_one(struct tuner *t, struct plan p, struct search_result *found,
                       struct status *st)
{
    struct search_options o = t->o->search;
    int before = t->history.count;
    o.budget = 0;
    if (o.time_limit_s > 0) /* 0 would mean no limit */
        o.time_limit_s = fmax(1e-9, t->end - t->clock());
    struct evaluator e = tuner_evaluator(t);
    int result = search_plan(&o, &e, p, &t->history, step_of_one, t, found, st);
    t->new_trials += t->history.count - before;
    return result;
}

/* Baselines come first, with their segments, so that there is something to compare with whenever
 * the search ends.  They run the fastest schedules known by then.  In an exhaustive search all
 * plans run the schedules that stage 1 ends with.  Where a time limit leaves no time for the
 * segments of one, and there is a plan to print, it is left out, unless the first plan stands for
 * it. */
static int measure_baseline(struct tuner *t, struct plan p, struct search_result *found,
                            struct status *st)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    if (history_has(&t->history, p))
        return 0;
    tuner_step(t, PHASE_BASELINES, 0, 0, NULL);
    if (time_slots(t, slots, count, is_exhaustive(t), stage1_end, st) != 0)
        return -1;
    bool is_first = first_plan_stands(t) && plan_equal(t->first.candidate.plan, p),
         one_ran = t->first.ran || history_best(&t->history) >= 0;
    if (!stage1_goes_on(t) && one_ran && !is_first)
        return 0; /* a later search makes up for it */
    if (!choices_may_change(t))
        return measure_one(t, p, found, st);
    found->stopped_by = STOP_TIME;
    return 0;
}

/* Times the segments of an expected first plan, measures the baseline that takes the fewest
 * compilers, and tries other schedules of the first plan's segments.  Under a time limit this comes
 * before the other baselines, because their segments may take seconds each.  Else stage 1 tries
 * them, where compilers are done with them by then. */
static int measure_first(struct tuner *t, struct search_result *found, struct status *st)
{
    struct candidate c;
    if (first_plan_times(t, false, stage1_end, st) != 0 ||
        (cheapest_baseline(t, &c) && measure_baseline(t, c.plan, found, st) != 0))
        return -1;
    if (found->stopped_by != STOP_SPACE || (isinf(t->end) && bench_builds_beside(t->bench)))
        return 0;
    t->first.climb = t->clock();
    return first_plan_times(t, true, first_climb_end, st);
}

int phase_baselines(struct tuner *t, struct search_result *found, struct status *st)
{
    say_baselines(t);
    if (t->first.expected && measure_first(t, found, st) != 0)
        return -1;
    for (int i = 0; i < t->o->baselines.count && found->stopped_by == STOP_SPACE; i++) {
        if (measure_baseline(t, t->o->baselines.plans[i], found, st) != 0)
            return -1;
        say_sharing(t);
    }
    return 0;
}

/* Whether there are stored failures to measure again. */
bool tuner_retries(const struct tuner *t)
{
    return t->failed.count > 0 || segment_table_failed(&t->segments, NULL) > 0;
}

/* Measures again the segments and plans that are stored as failed; an exhaustive search leaves the
 * plans to its usual phases, which need the choices that stage 1 ends with. */
int phase_failures(struct tuner *t, struct search_result *found, struct status *st)
{
    int slots[SLOT_COUNT], count = segment_table_failed(&t->segments, slots);
    if (time_slots(t, slots, count, false, stage1_end, st) != 0)
        return -1;
    for (int i = 0; i < t->failed.count && !is_exhaustive(t) && found->stopped_by == STOP_SPACE;
         i++) {
        if (history_has(&t->history, t->failed.plans[i]))
            continue;
        tuner_step(t, PHASE_FAILURES, i, t->failed.count, NULL);
        if (measure_one(t, t->failed.plans[i], found, st) != 0)
            return -1;
    }
    return 0;
}
