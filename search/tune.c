#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>

const char *const rigor_names[RIGOR_COUNT] = {
    [RIGOR_MEASURE] = "measure", [RIGOR_EXHAUSTIVE] = "exhaustive"};

static bool exhaustive(const struct tuner *t)
{
    return t->o->rigor == RIGOR_EXHAUSTIVE;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static bool budget_spent(const struct tuner *t)
{
    return t->o->search.budget > 0 && t->history.count >= t->o->search.budget;
}

static void plan_step(void *ctx, const struct history *h, const struct observation *latest)
{
    const struct tuner *t = ctx;
    int budget = t->o->search.budget, total = t->stage2.before + t->stage2.open;
    if (budget < total && (budget > 0 || !exhaustive(t)))
        total = budget; /* 0: nobody knows when it converges */
    tuner_step(t, PHASE_PLANS, h->count, t->stage2.one ? 0 : total, latest);
}

/* The plans of an exhaustive search all run the choices that stage 1 ends with: none runs if stage
 * 1 was cut short. */
static bool choices_may_change(const struct tuner *t)
{
    return exhaustive(t) && !stage1_goes_on(t);
}

/* Whether a plan is measured even if the budget is spent. */
static bool is_wanted(const struct tuner *t, struct plan p)
{
    bool failed = false;
    for (int i = 0; i < t->failed_count && !failed; i++)
        failed = plan_key(t->failed[i]) == plan_key(p);
    return failed || baselines_have(&t->o->baselines, p);
}

/* Notes that stage 2 begins, over the values lo..hi. */
static struct search_options begin_search(struct tuner *t, unsigned lo, unsigned hi, double until)
{
    struct search_options o = t->o->search;
    o.space_lo = lo;
    o.space_hi = hi;
    if (o.time_limit_s > 0) /* 0 would mean no limit */
        o.time_limit_s = fmax(1e-9, until - t->clock());
    o.hasty = t->stage2.hasty;
    t->stage2.start = t->clock();
    t->stage2.one = lo == hi;
    t->stage2.before = t->history.count;
    t->stage2.open = t->space_count - history_count_in(&t->history, t->space, t->space_count);
    return o;
}

static int search_values(struct tuner *t, unsigned lo, unsigned hi, double until,
                         struct search_result *out, struct status *st)
{
    struct search_options o = begin_search(t, lo, hi, until);
    if (exhaustive(t)) /* random expects no time, so the search never converges */
        o.strategy = strategy_find("random");
    struct evaluator e = tuner_evaluator(t);
    if (lo == hi || exhaustive(t)) /* the user wants the failures of these plans stored too */
        e.fails = NULL;
    if (exhaustive(t)) /* nor does it matter which segments were timed */
        e.segments = NULL;
    if (lo == hi && is_wanted(t, plan_from_value(lo)))
        o.budget = 0;
    int result = search_loop(&o, &e, &t->history, plan_step, t, out, st);
    t->new_trials += t->history.count - t->stage2.before;
    return result;
}

/* Searches the space.  Once that has converged, measures the plans of which it must be sure, and
 * searches on if there were some: so it stops at the same plan if it is run again. */
static int search_space(struct tuner *t, struct search_result *found, struct status *st)
{
    const struct search_options *o = &t->o->search;
    const struct closing how = {CLOSE_SHARE, CLOSE_MOST, bench_workload(t->bench)->layers,
                                plan_step, t};
    int before, result;
    do {
        result = search_values(t, o->space_lo, o->space_hi, stage2_end(t), found, st);
        before = t->history.count;
        if (result != 0 || found->stopped_by != STOP_CONVERGED)
            return result;
        const struct search_options rest = begin_search(t, o->space_lo, o->space_hi, stage2_end(t));
        const struct evaluator e = tuner_evaluator(t);
        result = search_close(&rest, &how, &e, &t->history, found, st);
        t->new_trials += t->history.count - before;
        if (found->stopped_by == STOP_SPACE)
            found->stopped_by = STOP_CONVERGED;
    } while (result == 0 && found->stopped_by == STOP_CONVERGED && t->history.count > before);
    return result;
}

/* Baselines come first, with their segments, so that there is something to compare with whenever
 * the search ends.  They run the fastest schedules known by then.  In an exhaustive search all
 * plans run the schedules that stage 1 ends with.  Where a time limit leaves no time for the
 * segments of one, and there is a plan to print, it is left out, unless the first plan stands for
 * it.
 */
static int measure_baseline(struct tuner *t, struct plan p, struct search_result *out,
                            struct status *st)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    unsigned value = plan_value(p);
    *out = (struct search_result){.stopped_by = STOP_SPACE};
    if (history_has(&t->history, p))
        return 0;
    tuner_step(t, PHASE_BASELINES, 0, 0, NULL);
    if (time_slots(t, slots, count, exhaustive(t), stage1_end, st) != 0)
        return -1;
    bool is_first = first_plan_stands(t) && plan_equal(t->first.candidate.plan, p),
         one_ran = t->first.ran || history_best(&t->history) >= 0;
    if (!stage1_goes_on(t) && one_ran && !is_first)
        return 0; /* a later search makes up for it */
    out->stopped_by = STOP_TIME;
    return choices_may_change(t) ? 0 : search_values(t, value, value, t->end, out, st);
}

/* Why this search measures no new plan; STOP_COUNT: it does. */
static enum search_stop spent(const struct tuner *t)
{
    return budget_spent(t) ? STOP_BUDGET : t->past.time_spent ? STOP_TIME : STOP_COUNT;
}

/* Whether earlier searches may have left plans that were not compared with the baselines.  An
 * exhaustive search compares after all plans, since it first refines hundreds. */
static bool may_owe_finals(const struct tuner *t)
{
    return t->past.searched && !exhaustive(t) && t->history.count > t->o->baselines.count;
}

/* Times the segments of an expected first plan, measures the baseline that takes the fewest
 * compilers, and tries other schedules of the first plan's segments.  This comes before the other
 * baselines, because their segments may take seconds each. */
static int measure_first(struct tuner *t, struct search_result *found, struct status *st)
{
    struct candidate c;
    if (first_plan_times(t, false, stage1_end, st) != 0 ||
        (cheapest_baseline(t, &c) && measure_baseline(t, c.plan, found, st) != 0))
        return -1;
    t->first.climb = t->clock();
    return found->stopped_by == STOP_SPACE ? first_plan_times(t, true, first_climb_end, st) : 0;
}

/* found->stopped_by: STOP_SPACE once all are measured. */
static int measure_baselines(struct tuner *t, struct search_result *found, struct status *st)
{
    say_baselines(t);
    found->stopped_by = STOP_SPACE;
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
static bool retries(const struct tuner *t)
{
    return t->failed_count > 0 || segment_table_failed(&t->segments, NULL) > 0;
}

/* Measures again the segments and plans that are stored as failed; an exhaustive search leaves the
 * plans to its usual phases, which need the choices that stage 1 ends with.  found->stopped_by:
 * STOP_SPACE once all are measured. */
static int retry_failed(struct tuner *t, struct search_result *found, struct status *st)
{
    int slots[SLOT_COUNT], count = segment_table_failed(&t->segments, slots);
    if (time_slots(t, slots, count, false, stage1_end, st) != 0)
        return -1;
    for (int i = 0; i < t->failed_count && !exhaustive(t); i++) {
        unsigned value = plan_value(t->failed[i]);
        if (history_has(&t->history, t->failed[i]))
            continue;
        tuner_step(t, PHASE_FAILURES, i, t->failed_count, NULL);
        if (search_values(t, value, value, t->end, found, st) != 0)
            return -1;
        if (found->stopped_by != STOP_SPACE)
            return 0;
    }
    return 0;
}

static void say_stage2(const struct tuner *t)
{
    say_failed(t, exhaustive(t) ? "stored as failed" : "left out");
    const char *doing = exhaustive(t) ? "measuring all" : "searching";
    tuner_say(t, "%s %d plan%s", doing, t->space_count, t->space_count == 1 ? "" : "s");
}

/* Segments that stage 1 had no time for are worth more than plans without them. */
static int run_stages(struct tuner *t, bool again, struct search_result *found, struct status *st)
{
    tuner_say(t, again ? "time is left to go on with segments alone"
                       : "building and timing each segment alone");
    if (stage1(t, st) != 0)
        return -1;
    t->stage2.hasty = !stage1_goes_on(t);
    found->stopped_by = STOP_TIME;
    if (choices_may_change(t))
        return 0;
    if (!again)
        say_stage2(t);
    return search_space(t, found, st);
}

/* Stage 2 may converge long before it must end.  What the time limit kept from stage 1 then gets a
 * share of the time that is left. */
static int run_phases(struct tuner *t, struct search_result *found, struct status *st)
{
    if (retries(t))
        tuner_say(t, "measuring again what failed: %d segments, %d plans",
                  segment_table_failed(&t->segments, NULL), t->failed_count);
    if (first_plan_measure(t, st) != 0)
        return -1;
    if (segment_table_tried(&t->segments) == 0 && !exhaustive(t) && stage1_goes_on(t) &&
        take_shared(t, st) != 0)
        return -1;
    if (measure_baselines(t, found, st) != 0)
        return -1;
    if (found->stopped_by == STOP_SPACE && retry_failed(t, found, st) != 0)
        return -1;
    if (found->stopped_by != STOP_SPACE)
        return 0;
    if (may_owe_finals(t) && measure_finals(t, st) != 0)
        return -1;
    found->stopped_by = spent(t);
    if (found->stopped_by != STOP_COUNT)
        return 0;
    bool again = false;
    do {
        int tried = segment_table_tried(&t->segments);
        if (run_stages(t, again, found, st) != 0)
            return -1;
        t->round = t->clock();
        again = t->stage2.hasty && found->stopped_by == STOP_CONVERGED && stage1_goes_on(t) &&
                (!again || segment_table_tried(&t->segments) > tried);
    } while (again);
    if (!t->stage2.hasty || found->stopped_by != STOP_CONVERGED)
        return 0;
    t->stage2.hasty = false; /* no other segment fits */
    return search_space(t, found, st);
}

/* Measures the baselines that are missing, and times them and the best plan known anew. */
static int run_again(struct tuner *t, struct search_result *found, struct status *st)
{
    struct db_best best;
    if (db_best(t->db, t->study, &best, st) != 0)
        return -1;
    struct plan p = plan_from_value((unsigned)best.value);
    db_best_release(&best);
    int result = measure_baselines(t, found, st);
    if (result == 0 && found->stopped_by == STOP_SPACE)
        result = compare_again(t, p, st);
    return result;
}

/* Runs all phases and the finals.  An interrupt ends them, or a time limit that passes before the
 * device is free, and is no failure. */
static int measure_all(struct tuner *t, struct search_result *found, struct status *st)
{
    if (t->o->search.time_limit_s > 0)
        bench_limit(t->bench, t->o->search.time_limit_s);
    int result = t->o->again ? run_again(t, found, st) : run_phases(t, found, st);
    if (result == 0)
        result = first_plan_keep(t, st);
    if (result == 0 && found->stopped_by != STOP_INTERRUPTED && !t->o->again)
        result = measure_finals(t, st);
    say_disturbance(t);
    if (result == 0 || (st->code != STATUS_INTERRUPTED && st->code != STATUS_TIMEOUT))
        return result;
    found->stopped_by = st->code == STATUS_TIMEOUT ? STOP_TIME : STOP_INTERRUPTED;
    if (st->code == STATUS_TIMEOUT)
        tuner_say(t, "%s", st->message);
    *st = STATUS_INIT;
    return first_plan_keep(t, st);
}

/* ---- tune ------------------------------------------------------------------------------------ */

static int tuner_open(struct tuner *t, struct status *st)
{
    const struct search_options *o = &t->o->search;
    t->start = t->round = t->clock();
    t->end = o->time_limit_s > 0 ? t->start + o->time_limit_s : INFINITY;
    t->space_count = plan_space(o->space_lo, o->space_hi, t->space);
    segment_table_init(&t->segments, bench_target(t->bench));
    t->segments.packed = bench_workload(t->bench)->lengths != NULL;
    t->segments.retry_failed = t->o->retry_failed;
    if (study_open(t->bench, t->db, &t->study, st) != 0 ||
        segment_table_read(&t->segments, t->db, t->study, st) != 0 ||
        past_read(t->db, t->study, t->o, &t->past, st) != 0 ||
        fitted_read(t->db, t->study, bench_target(t->bench), &t->fitted, st) != 0)
        return -1;
    if (study_history(t->db, t->study, &t->history, st) != 0)
        return -1;
    if (t->o->retry_failed)
        t->failed_count = history_drop_failed(&t->history, t->failed);
    return 0;
}

static int tuner_start(struct tuner *t, struct status *st)
{
    struct buf options;
    buf_init(&options);
    past_options(t->o, &options);
    const char *strategy = t->o->again     ? "again"
                           : exhaustive(t) ? rigor_names[t->o->rigor]
                                           : t->o->search.strategy->name;
    int result = db_search_start(t->db, t->study, strategy, options.ptr, t->search_id, st);
    buf_release(&options);
    return result;
}

int tune(struct bench *b, struct db *db, const struct tune_options *o, struct tune_report *out,
         struct status *st)
{
    struct tuner *t = mem_alloc(1, sizeof(*t));
    *t = (struct tuner){
        .bench = b, .db = db, .o = o, .clock = o->clock != NULL ? o->clock : clock_seconds};
    struct search_result found = {.stopped_by = STOP_BUDGET};
    int result = -1;
    bool done = false; /* else baselines and finals that are missing come first */
    *out = (struct tune_report){.best.value = -1};
    if (tuner_open(t, st) != 0 || (!o->again && !retries(t) && spent(t) != STOP_COUNT &&
                                   baselines_measured(t) && finals_held(t, &done, st) != 0))
        goto out;
    if (spent(t) == STOP_TIME && !o->again && !retries(t))
        tuner_say(t,
                  "an earlier search spent as much time as --time-limit allows; raise it to go on");
    if (done)
        found.stopped_by = spent(t);
    if (o->retry_failed && !retries(t))
        tuner_say(t, "no failure is stored for --retry-failed to measure again");
    if (!done && (tuner_start(t, st) != 0 || measure_all(t, &found, st) != 0 ||
                  db_search_end(db, t->search_id, search_stop_names[found.stopped_by], st) != 0))
        goto out;
    result = report_fill(t, found.stopped_by, out, st);
    if (o->again && found.stopped_by == STOP_SPACE)
        out->stopped_by = NULL;
out:
    first_plan_release(t);
    segment_table_release(&t->segments);
    fitted_release(&t->fitted);
    history_release(&t->history);
    free(t);
    return result;
}
