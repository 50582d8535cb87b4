#include "tests/search/held_out.h"

#include "search/search_int.h"
#include "search/space_int.h"

#include <math.h>
#include <stdlib.h>

/* ---- reading --------------------------------------------------------------------------------- */

static double sum_of(const struct recorded_space *space, int plan)
{
    double sum = additive_ms(&space->segments, space->plans[plan]);
    return isnan(sum) ? INFINITY : sum;
}

/* Of a space recorded whole what a search of a few plans measures: the plans of the least sums. */
static void take_plans(const struct recorded_space *space, struct history *out)
{
    static double sums[PLAN_SPACE];
    bool taken[PLAN_SPACE] = {false};
    for (int i = 0; i < space->count; i++)
        sums[i] = sum_of(space, i);
    for (int n = 0; n < space->count && n < ESTIMATED_MOST; n++) {
        int next = -1;
        for (int i = 0; i < space->count; i++)
            if (!taken[i] && (next < 0 || sums[i] < sums[next]))
                next = i;
        taken[next] = true;
        history_add(out, space->plans[next], space->outcomes[next]);
    }
}

static int read_table(const char *file, struct known_workload *out, int *units, struct status *st)
{
    static struct recorded_space space; /* 300 KB: not on the stack */
    enum target_kind kind;
    *out = (struct known_workload){.plans = {.count = 0}};
    workload_init(&out->workload);
    if (recorded_space_read(file, &space, st) != 0)
        return -1;
    workload_release(&out->workload);
    int result = space_workload(&space, &kind, &out->workload, st);
    *units = (int)space.target.units;
    if (result == 0)
        result = workload_build_mask(&out->workload, NULL, st);
    for (int i = 0; i < SLOT_COUNT && result == 0; i++)
        if (space.fastest[i] != NULL)
            out->slots[i] = (struct slot_record){.impl = mem_strdup(space.fastest[i]->impl),
                                                 .schedule = mem_strdup(space.fastest[i]->schedule),
                                                 .us = {.median = space.fastest[i]->us}};
    if (result == 0)
        take_plans(&space, &out->plans);
    recorded_space_release(&space);
    return result;
}

int tables_read(const char *const *files, int count, struct known_workloads *out, struct status *st)
{
    int result = 0;
    *out = (struct known_workloads){.items = mem_alloc((size_t)count, sizeof(*out->items)),
                                    .target = TARGET_CUDA};
    while (out->count < count && result == 0) {
        result = read_table(files[out->count], &out->items[out->count], &out->units, st);
        out->count++;
    }
    return result;
}

/* ---- what is true ---------------------------------------------------------------------------- */

struct truth {
    struct segment_times expected; /* of all layers; NaN: not timed */
    const struct history *plans;
};

/* What a slot takes alone.  Where it was not timed, a search would take the time of a workload in
 * which it depends on nothing else. */
static double slot_us(const struct known_workloads *k, const struct known_workload *w, int slot)
{
    double us = w->slots[slot].impl != NULL ? w->slots[slot].us.median : NAN;
    for (int i = 0; i < k->count && isnan(us); i++)
        if (k->items[i].slots[slot].impl != NULL &&
            segment_shared(slot_segment(slot), &k->items[i].workload, &w->workload))
            us = k->items[i].slots[slot].us.median;
    return us;
}

static void truth_of(const struct known_workloads *k, const struct known_workload *w,
                     struct truth *out)
{
    struct segment_times alone;
    for (int i = 0; i < SLOT_COUNT; i++)
        alone.ms[i] = 1e-3 * w->workload.layers * slot_us(k, w, i);
    struct gaussian *g = posterior_of(&w->plans, &alone);
    gaussian_times(g, &out->expected);
    gaussian_free(g);
    for (int i = 0; i < SLOT_COUNT; i++)
        if (isnan(alone.ms[i]))
            out->expected.ms[i] = NAN;
    out->plans = &w->plans;
}

static double true_ms(const struct truth *t, struct plan p)
{
    for (int i = 0; i < t->plans->count; i++)
        if (plan_equal(t->plans->items[i].plan, p) && t->plans->items[i].outcome.status == TRIAL_OK)
            return t->plans->items[i].outcome.ms;
    return additive_ms(&t->expected, p);
}

static double least_ms(const struct truth *t, const struct plan *space, int count)
{
    double least = INFINITY;
    for (int i = 0; i < count; i++)
        least = fmin(least, true_ms(t, space[i]));
    return least;
}

/* ---- judging --------------------------------------------------------------------------------- */

static void judge_intervals(const struct known_workloads *k, const bool *left_out,
                            const struct known_workload *w, struct held_out *out)
{
    int count = 0, best = history_best(&w->plans);
    struct plan plans[ESTIMATED_MOST] = {w->plans.items[best].plan};
    for (int i = 0; i < w->plans.count && count < ESTIMATED_MOST - 1; i++)
        if (i != best && w->plans.items[i].outcome.status == TRIAL_OK)
            plans[++count] = w->plans.items[i].plan;
    count++;
    struct estimate e = estimate_plans(k, left_out, &w->workload, plans, count);
    out->error = NAN;
    out->measured = e.count;
    for (int i = 0; i < w->plans.count; i++)
        for (int p = 0; p < e.count; p++) {
            const struct observation *o = &w->plans.items[i];
            struct interval ms = e.plans[p].ms;
            if (!plan_equal(o->plan, e.plans[p].plan))
                continue;
            bool holds = ms.low <= o->outcome.ms && o->outcome.ms <= ms.high;
            out->inside += holds;
            if (i == best) {
                out->holds = holds;
                out->error = ms.median / o->outcome.ms - 1;
            }
        }
}

struct held_out held_out_judge(const struct known_workloads *k, int judged, bool tokens)
{
    static struct plan space[PLAN_SPACE];
    const struct known_workload *w = &k->items[judged];
    bool left_out[TABLES_MAX];
    struct held_out out = {.regret = NAN, .regret_16 = INFINITY, .all_known = true};
    struct truth truth;
    int count = plan_space(32768, 49152, space);
    for (int i = 0; i < k->count; i++)
        left_out[i] = i == judged || (tokens && workload_tokens(&k->items[i].workload) ==
                                                    workload_tokens(&w->workload));
    truth_of(k, w, &truth);
    double least = least_ms(&truth, space, count);
    out.estimate = estimate_plans(k, left_out, &w->workload, space, count);
    for (int i = 0; i < out.estimate.count; i++) {
        double regret = true_ms(&truth, out.estimate.plans[i].plan) / least - 1;
        if (i == 0)
            out.regret = regret;
        out.all_known = out.all_known && !isnan(regret);
        if (!isnan(regret))
            out.regret_16 = fmin(out.regret_16, regret);
    }
    judge_intervals(k, left_out, w, &out);
    return out;
}

struct held_out_summary held_out_summarise(const struct held_out *all, int count)
{
    struct held_out_summary out = {.count = count, .regret_worst = -INFINITY};
    double *regrets = mem_alloc((size_t)count + 1, sizeof(*regrets));
    double *errors = mem_alloc((size_t)count + 1, sizeof(*errors));
    int with_interval = 0;
    for (int i = 0; i < count; i++) {
        if (!isnan(all[i].regret)) {
            regrets[out.judged++] = all[i].regret;
            out.regret_worst = fmax(out.regret_worst, all[i].regret);
        }
        out.within += all[i].regret_16 <= 0.02;
        out.beyond += all[i].regret_16 > 0.02 && all[i].all_known;
        if (isnan(all[i].error))
            continue;
        errors[with_interval++] = fabs(all[i].error);
        out.holds += all[i].holds;
        out.inside += (double)all[i].inside / all[i].measured;
    }
    out.regret_median = out.judged > 0 ? stats_median(regrets, (size_t)out.judged).median : NAN;
    out.error_median = with_interval > 0 ? stats_median(errors, (size_t)with_interval).median : NAN;
    out.holds /= with_interval;
    out.inside /= with_interval;
    free(regrets);
    free(errors);
    return out;
}
