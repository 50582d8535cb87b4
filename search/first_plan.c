/* The first plan is measured before any segment is timed alone, so that a search that is
 * interrupted, or whose time is over, soon has a plan to print.  It is the plan that was found
 * elsewhere, if the search is given one; its choices are then tried as defaults are.  Else each
 * implementation may say how long its default takes; then the plan of the least sum of these times
 * comes first.  If no plan has a time for every segment, it is the best plan of the nearest
 * workload, by its schedules there.  If there is none, or the plan does not run, it is the baseline
 * that takes the fewest compilers.
 *
 * The trial is stored if the search ends before it has measured this plan again, but not beyond the
 * budget.  On a CPU it is not measured again by the same schedules.  On a GPU it is: the trial
 * comes right after the warm-up, by which a large layer brings the GPU to its limit of power.  The
 * clock is lower then than for other plans, which run for some milliseconds each. */
#include "search/tuner_int.h"

/* Stage 1 times these choices as it times defaults. */
static void add_to_defaults(struct segment_table *t, const struct candidate *c)
{
    for (int i = 0; i < c->count; i++) {
        const struct choice *choice = &c->choices[i];
        struct slot *slot = &t->slots[slot_of(choice->segment, choice->impl->handwritten)];
        int attempt = slot_attempt(slot, choice);
        if (attempt >= 0)
            slot->attempts[attempt].usual = true;
    }
}

/* False: there is none in the space. */
static bool choose_given(struct tuner *t, struct candidate *out)
{
    const struct candidate *given = t->o->first;
    if (given == NULL || !plan_in_space(given->plan, t->space, t->space_count) ||
        history_has(&t->history, given->plan))
        return false;
    add_to_defaults(&t->segments, given);
    *out = *given;
    out->packed = t->segments.packed;
    return true;
}

/* False: too little is known. */
static bool choose_expected(const struct tuner *t, struct candidate *out)
{
    int plan = expected_best(&t->segments, t->space, t->space_count);
    return plan >= 0 && !history_has(&t->history, t->space[plan]) &&
           plan_candidate(&t->segments, NULL, t->space[plan], out, STATUS_IGNORED) == 0;
}

/* The plan that is expected to be the fastest, else that of the nearest workload; by a neighbour
 * the other way round.  1, 0 or -1. */
static int choose(struct tuner *t, struct candidate *out, struct status *st)
{
    if (!t->o->by_neighbour)
        return choose_expected(t, out) ? 1 : nearest_plan(t, out, st);
    int near = nearest_plan(t, out, st);
    t->taught = near > 0;
    return near != 0 ? near : choose_expected(t, out);
}

static int measure(struct tuner *t, struct status *st)
{
    struct first_plan *f = &t->first;
    tuner_step(t, PHASE_BASELINES, 0, 0, NULL);
    if (stage1_build_ahead(t, &f->candidate, st) != 0 ||
        bench_plan(t->bench, &f->candidate, &sampling_search, &f->trial, st) != 0)
        return -1;
    f->ran = f->owned = f->trial.status == TRIAL_OK;
    if (f->ran)
        f->known = (struct observation){.plan = f->candidate.plan,
                                        .outcome = outcome_of(TRIAL_OK, f->trial.ms)};
    else
        trial_release(&f->trial);
    return 0;
}

int first_plan_measure(struct tuner *t, struct status *st)
{
    struct first_plan *f = &t->first;
    int budget = t->o->search.budget;
    bool room = budget <= 0 || budget > t->o->baselines.count; /* else the baselines spend it */
    if (is_exhaustive(t) || history_best(&t->history) >= 0 || !(t->clock() < t->end))
        return 0;
    if (room && choose_given(t, &f->candidate) && measure(t, st) != 0)
        return -1;
    int chosen = room && !f->ran ? choose(t, &f->candidate, st) : 0;
    if (chosen < 0 || (chosen > 0 && measure(t, st) != 0))
        return -1;
    f->expected = f->ran;
    t->taught = t->taught && f->ran;
    return !f->ran && cheapest_baseline(t, &f->candidate) ? measure(t, st) : 0;
}

int first_plan_times(struct tuner *t, bool climb, deadline *until, struct status *st)
{
    int slots[OP_COUNT], count = plan_slots(t->first.candidate.plan, slots);
    return time_slots(t, slots, count, climb, until, st);
}

bool first_plan_stands(const struct tuner *t)
{
    return t->first.ran && t->segments.target != TARGET_CUDA;
}

bool first_plan_take(struct tuner *t, const struct candidate *c, struct trial *out)
{
    struct first_plan *f = &t->first;
    if (!f->owned || !first_plan_stands(t) || !same_choices(&f->candidate, c))
        return false;
    *out = f->trial;
    f->owned = false;
    return true;
}

int first_plan_keep(struct tuner *t, struct status *st)
{
    struct first_plan *f = &t->first;
    int budget = t->o->search.budget;
    if (!f->owned || history_has(&t->history, f->candidate.plan) ||
        (budget > 0 && t->history.count >= budget && history_best(&t->history) >= 0))
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
    if (t->first.owned)
        trial_release(&t->first.trial);
}
