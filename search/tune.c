/* A search on a real target: its phases, in their order. */
#include "search/precision.h"
#include "search/tuner_int.h"

/* ---- the first plan, and segment times of other searches ------------------------------------- */

static int first_plan(struct tuner *t, struct search_result *found, struct status *st)
{
    (void)found;
    return first_plan_measure(t, st);
}

static int segments_of_others(struct tuner *t, struct search_result *found, struct status *st)
{
    (void)found;
    bool fresh = segment_table_tried(&t->segments) == 0 && !is_exhaustive(t) && stage1_goes_on(t);
    return fresh ? take_shared(t, st) : 0;
}

/* ---- what earlier searches leave ------------------------------------------------------------- */

/* Finals that earlier searches owe: plans that may not have been compared with the baselines.  An
 * exhaustive search compares after all plans, since it first refines hundreds. */
static int finals_owed(struct tuner *t, struct search_result *found, struct status *st)
{
    (void)found;
    bool owed = t->past.searched && !is_exhaustive(t) && t->history.count > t->o->baselines.count;
    return owed ? measure_finals(t, st) : 0;
}

/* Why this search measures no new plan; STOP_SPACE: it does. */
static enum search_stop spent(const struct tuner *t)
{
    const struct search_options *o = &t->o->search;
    if (o->budget > 0 && t->history.count >= o->budget)
        return STOP_BUDGET;
    return t->past.time_spent ? STOP_TIME : STOP_SPACE;
}

static int ends_if_spent(struct tuner *t, struct search_result *found, struct status *st)
{
    (void)st;
    found->stopped_by = spent(t);
    return 0;
}

/* ---- all phases ------------------------------------------------------------------------------ */

/* Times the best plan known and the baselines anew, side by side. */
static int best_again(struct tuner *t, struct search_result *found, struct status *st)
{
    SCOPED_BY(db_best_release) struct db_best best;
    if (db_best(t->db, t->study, &best, st) != 0 || phase_baselines(t, found, st) != 0)
        return -1;
    if (found->stopped_by != STOP_SPACE)
        return 0;
    found->stopped_by = STOP_DONE;
    return compare_again(t, plan_from_value((unsigned)best.value), st);
}

/* Schedules in plans, and the finals. */
static int finals(struct tuner *t, struct search_result *found, struct status *st)
{
    return found->stopped_by == STOP_INTERRUPTED ? 0 : measure_finals(t, st);
}

struct course {
    search_phase *const *phases; /* ends with a null */
    search_phase *last;          /* after them, wherever they ended; may be null */
};

static search_phase *const searching[] = {
    first_plan,  segments_of_others, phase_baselines,          phase_failures,
    finals_owed, ends_if_spent,      phase_segments_and_plans, NULL};
static const struct course course_search = {searching, finals};

static search_phase *const comparing[] = {best_again, NULL};
static const struct course course_again = {comparing, NULL};

/* An interrupt ends the phases, or a time limit that passes before the device is free, and is no
 * failure. */
static int run(struct tuner *t, const struct course *c, struct search_result *found,
               struct status *st)
{
    int result = 0;
    if (t->o->search.time_limit_s > 0)
        bench_limit(t->bench, t->o->search.time_limit_s);
    found->stopped_by = STOP_SPACE;
    for (search_phase *const *p = c->phases; *p != NULL && result == 0; p++) {
        result = (*p)(t, found, st);
        if (found->stopped_by != STOP_SPACE)
            break;
    }
    if (result == 0)
        result = first_plan_keep(t, st);
    if (result == 0 && c->last != NULL)
        result = c->last(t, found, st);
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

static int none_possible(const struct tuner *t, struct status *st)
{
    const struct search_options *o = &t->o->search;
    SCOPED_BUF precision = BUF_INIT;
    precision_text(bench_target(t->bench)->precision, "", &precision);
    return status_set(st, STATUS_USAGE,
                      "no plan from %d to %d has kernels for all operators where the precision is "
                      "%s; widen --space",
                      o->space_lo, o->space_hi, precision.ptr);
}

static int tuner_open(struct tuner *t, struct status *st)
{
    const struct search_options *o = &t->o->search;
    t->start = t->round = t->clock();
    t->end = o->time_limit_s > 0 ? t->start + o->time_limit_s : INFINITY;
    t->space_count = plan_space(o->space_lo, o->space_hi, t->space);
    if (bench_target(t->bench)->precision != 0)
        t->space_count = plans_possible(bench_target(t->bench), t->space, t->space_count);
    if (t->space_count == 0)
        return none_possible(t, st);
    segment_table_init(&t->segments, bench_target(t->bench));
    t->segments.packed = bench_workload(t->bench)->lengths != NULL;
    t->segments.retry_failed = t->o->retry_failed;
    if (!is_exhaustive(t))
        segment_table_expect(&t->segments, bench_workload(t->bench));
    if (study_open(t->bench, t->db, &t->study, st) != 0 ||
        segment_table_read(&t->segments, t->db, t->study, st) != 0 ||
        past_read(t->db, t->study, t->o, t->segments.precision, &t->past, st) != 0 ||
        fitted_read(t->db, t->study, bench_target(t->bench), &t->fitted, st) != 0 ||
        study_history(t->db, t->study, &t->history, st) != 0)
        return -1;
    if (t->o->retry_failed)
        t->failed.count = history_drop_failed(&t->history, t->failed.plans);
    return 0;
}

static struct tuner *tuner_new(struct bench *b, struct db *db, const struct tune_options *o)
{
    struct tuner *t = mem_alloc(1, sizeof(*t));
    *t = (struct tuner){
        .bench = b, .db = db, .o = o, .clock = o->clock != NULL ? o->clock : clock_seconds};
    return t;
}

static void tuner_free(struct tuner *t)
{
    first_plan_release(t);
    segment_table_release(&t->segments);
    fitted_release(&t->fitted);
    history_release(&t->history);
    free(t);
}
SCOPED_CLOSE(tuner, tuner_free)

/* Stores that a search begins, runs it, and stores how it ended. */
static int tuner_run(struct tuner *t, const char *strategy, const struct course *c,
                     struct search_result *found, struct status *st)
{
    SCOPED_BUF options = BUF_INIT;
    past_options(t->o, t->segments.precision, &options);
    if (db_search_start(t->db, t->study, strategy, options.ptr, t->search_id, st) != 0 ||
        run(t, c, found, st) != 0)
        return -1;
    return db_search_end(t->db, t->search_id, search_stop_names[found->stopped_by], st);
}

/* Whether the database answers: nothing is to be measured, and the finals were held. */
static int is_answered(struct tuner *t, bool *out, struct status *st)
{
    *out = false;
    if (tuner_retries(t) || spent(t) == STOP_SPACE || !baselines_measured(t))
        return 0;
    return finals_held(t, out, st);
}

static void say_what_is_left(const struct tuner *t, bool answered)
{
    if (answered)
        tuner_say(t, "nothing is measured: %s",
                  spent(t) == STOP_TIME
                      ? "an earlier search spent this time limit; a longer one goes on"
                      : "as many plans as the budget are stored; a larger one goes on");
    if (tuner_retries(t))
        tuner_say(t, "measuring again what failed: %d segments, %d plans",
                  segment_table_failed(&t->segments, NULL), t->failed.count);
    if (t->o->retry_failed && !tuner_retries(t))
        tuner_say(t, "no failure is stored for --retry-failed to measure again");
}

int tune(struct bench *b, struct db *db, const struct tune_options *o, struct tune_report *out,
         struct status *st)
{
    *out = (struct tune_report){.best.value = -1};
    if (tune_take_turn(b, o, st) != 0)
        return -1;
    SCOPED_BY(tuner_free_at) struct tuner *t = tuner_new(b, db, o);
    struct search_result found = {.stopped_by = STOP_BUDGET};
    bool answered;
    int result = tuner_open(t, st) == 0 ? is_answered(t, &answered, st) : -1;
    if (result == 0) {
        say_what_is_left(t, answered);
        found.stopped_by = spent(t);
    }
    if (result == 0 && !answered)
        result = tuner_run(t, is_exhaustive(t) ? rigor_names[o->rigor] : o->search.strategy->name,
                           &course_search, &found, st);
    bench_end_turn(b);
    return result == 0 ? report_fill(t, found.stopped_by, out, st) : -1;
}

int tune_again(struct bench *b, struct db *db, const struct tune_options *o,
               struct tune_report *out, struct status *st)
{
    SCOPED_BY(tuner_free_at) struct tuner *t = tuner_new(b, db, o);
    struct search_result found = {.stopped_by = STOP_SPACE};
    *out = (struct tune_report){.best.value = -1};
    if (tuner_open(t, st) != 0 || tuner_run(t, STRATEGY_AGAIN, &course_again, &found, st) != 0 ||
        report_fill(t, found.stopped_by, out, st) != 0)
        return -1;
    if (found.stopped_by == STOP_DONE)
        out->stopped_by = NULL;
    return 0;
}
