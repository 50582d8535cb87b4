/* The first plan, with all segments by their defaults: the one that takes the least time by what
 * the implementations expect, or, where they expect nothing, the baseline that takes the fewest
 * compilers.  It is measured before any segment is timed alone, so that a search that is
 * interrupted, or whose time is over, soon has a plan to print.  Its trial is stored if the search
 * ends before it has measured this plan by the best defaults, or if these are the same.
 *
 * The schedules of an expected plan are tried next.  A search of a few seconds gets no further. */
#include "search/search_int.h"

#include <math.h>

static bool choose_expected(const struct tuner *t, struct candidate *out)
{
    const struct workload *w = bench_workload(t->bench);
    struct segment_times expected;
    struct status fails = STATUS_INIT;
    for (int i = 0; i < SLOT_COUNT; i++) {
        const struct slot *s = &t->segments.slots[i];
        expected.ms[i] = s->count > 0 ? choice_expected_us(&s->attempts[0].choice, w) : NAN;
    }
    int plan = additive_best(t->space, t->space_count, &expected);
    return plan >= 0 && tuner_candidate(t, t->space[plan], out, &fails) == 0;
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
        struct status fails = STATUS_INIT;
        if (history_has(&t->history, b->plans[i]) ||
            tuner_candidate(t, b->plans[i], &c, &fails) != 0 ||
            (found && compilers_of(&c) >= compilers_of(out)))
            continue;
        *out = c;
        found = true;
    }
    return found;
}

int first_plan_measure(struct tuner *t, struct status *st)
{
    struct first_plan *f = &t->first;
    if (t->o->rigor != RIGOR_MEASURE || history_best(&t->history) >= 0 || !(t->clock() < t->end))
        return 0;
    f->expected = choose_expected(t, &f->candidate);
    if (!f->expected && !cheapest_baseline(t, &f->candidate))
        return 0;
    tuner_step(t, PHASE_BASELINES, 0, 0, NULL);
    if (stage1_build_ahead(t, &f->candidate, st) != 0 ||
        bench_plan(t->bench, &f->candidate, &sampling_search, &f->trial, st) != 0)
        return -1;
    f->ran = f->trial.status == TRIAL_OK;
    if (f->ran)
        f->known = (struct observation){.plan = f->candidate.plan,
                                        .outcome = outcome_of(TRIAL_OK, f->trial.ms)};
    else
        trial_release(&f->trial);
    return 0;
}

int first_plan_times(struct tuner *t, bool climb, struct status *st)
{
    int slots[OP_COUNT];
    if (!t->first.ran)
        return 0;
    int count = plan_slots(t->first.candidate.plan, slots);
    return time_slots(t, slots, count, climb, stage1_end, st);
}

bool first_plan_take(struct tuner *t, const struct candidate *c, struct trial *out)
{
    struct first_plan *f = &t->first;
    if (!f->ran || !same_choices(&f->candidate, c))
        return false;
    *out = f->trial;
    f->ran = false;
    return true;
}

int first_plan_keep(struct tuner *t, struct status *st)
{
    struct first_plan *f = &t->first;
    int budget = t->o->search.budget;
    if (!f->ran || history_has(&t->history, f->candidate.plan) ||
        (budget > 0 && t->history.count >= budget))
        return 0;
    if (trial_store(t->db, t->study, DB_TRIAL_PLAN, &f->candidate, &f->trial, t->search_id, st) !=
        0)
        return -1;
    history_add(&t->history, f->candidate.plan, f->known.outcome);
    t->new_trials++;
    tuner_step(t, PHASE_BASELINES, 0, 0, &t->history.items[t->history.count - 1]);
    return 0;
}

void first_plan_release(struct tuner *t)
{
    if (t->first.ran)
        trial_release(&t->first.trial);
}
