/* The phase that times segments alone and then measures the plans that a strategy chooses. */
#include "search/tuner_int.h"

/* Whether the user asks for the time of one plan. */
static bool is_one(const struct tuner *t)
{
    return t->o->search.space_lo == t->o->search.space_hi;
}

/* What the progress of plans is told by. */
struct watch {
    const struct tuner *t;
    double start;
    int before, total; /* plans in the history when they began, and at the end; 0: unknown */
};

static struct watch watch_plans(const struct tuner *t)
{
    int budget = t->o->search.budget, before = t->history.count,
        open = t->space_count - history_count_in(&t->history, t->space, t->space_count);
    struct watch w = {t, t->clock(), before, is_one(t) ? 0 : before + open};
    if (budget < w.total && (budget > 0 || !is_exhaustive(t)))
        w.total = budget; /* 0: nobody knows when it converges */
    return w;
}

static void step_of_many(void *ctx, const struct history *h, const struct observation *latest)
{
    const struct watch *w = ctx;
    double left_s = w->total > 0 ? step_left(w->t->clock() - w->start, h->count - w->before,
                                             w->total - w->before)
                                 : INFINITY;
    tuner_step_by(w->t, PHASE_PLANS, h->count, w->total, left_s, latest);
}

static struct search_options options_until_finals(const struct tuner *t)
{
    struct search_options o = t->o->search;
    if (o.time_limit_s > 0)
        o.time_limit_s = fmax(1e-9, stage2_end(t) - t->clock());
    return o;
}

/* Lets the strategy choose plans of the space. */
static int search_space(struct tuner *t, int patience, struct search_result *found,
                        struct status *st)
{
    struct watch w = watch_plans(t);
    struct search_options o = options_until_finals(t);
    struct evaluator e = tuner_evaluator(t);
    o.patience = patience;
    if (is_exhaustive(t)) { /* random expects no time, so the search never converges */
        o.strategy = strategy_find("random");
        e.segments = NULL; /* it does not matter which segments were timed */
    }
    if (is_one(t) || is_exhaustive(t)) /* the user wants their failures stored too */
        e.fails = plan_lacks_code;
    int result = search_loop(&o, &e, &t->history, step_of_many, &w, found, st);
    t->new_trials += t->history.count - w.before;
    return result;
}

/* Measures the plans of which a search that has converged must be sure. */
static int make_sure(struct tuner *t, struct search_result *found, struct status *st)
{
    struct watch w = watch_plans(t);
    const struct search_options o = options_until_finals(t);
    const struct closing how = {CLOSE_SHARE, CLOSE_MOST, bench_workload(t->bench)->layers,
                                step_of_many, &w};
    const struct evaluator e = tuner_evaluator(t);
    int result = search_close(&o, &how, &e, &t->history, found, st);
    t->new_trials += t->history.count - w.before;
    if (found->stopped_by == STOP_SPACE)
        found->stopped_by = STOP_CONVERGED;
    return result;
}

/* Searches on if some of the plans of which it must be sure were missing: so it stops at the same
 * plan if it is run again.  What a near workload has taught need not be sure. */
static int plans(struct tuner *t, int patience, struct search_result *found, struct status *st)
{
    for (int sure_of = -1; sure_of != t->history.count;) {
        if (search_space(t, patience, found, st) != 0)
            return -1;
        sure_of = t->history.count;
        if (found->stopped_by != STOP_CONVERGED || t->taught)
            break;
        if (make_sure(t, found, st) != 0)
            return -1;
        if (found->stopped_by != STOP_CONVERGED)
            break;
    }
    return 0;
}

static void say_plans(const struct tuner *t)
{
    say_failed(t, is_exhaustive(t) ? "stored as failed" : "left out");
    tuner_say(t, "%s %d plan%s", is_exhaustive(t) ? "measuring all" : "searching", t->space_count,
              t->space_count == 1 ? "" : "s");
}

static int patience_of(const struct tuner *t)
{
    if (t->taught)
        return TAUGHT_PATIENCE;
    return t->segments.target == TARGET_CUDA ? GPU_PATIENCE : CONVERGED_PATIENCE;
}

/* Segments, then plans.  Plans may converge long before the time limit.  What it kept from stage 1
 * is worth more than plans without those segments: so as long as it cuts stage 1 short, one batch
 * of plans is enough, and segments get a share of the time that is left.  found->stopped_by: why it
 * ended. */
int phase_segments_and_plans(struct tuner *t, struct search_result *found, struct status *st)
{
    const int patience = patience_of(t);
    for (int round = 0;; round++) {
        int tried = segment_table_tried(&t->segments);
        tuner_say(t, round > 0 ? "time is left to go on with segments alone"
                               : "building and timing each segment alone");
        if (stage1(t, st) != 0)
            return -1;
        bool cut = !stage1_goes_on(t);
        found->stopped_by = STOP_TIME;
        if (choices_may_change(t))
            return 0;
        if (round == 0)
            say_plans(t);
        if (plans(t, cut ? PROPOSAL_MAX : patience, found, st) != 0)
            return -1;
        t->round = t->clock();
        if (!cut || found->stopped_by != STOP_CONVERGED)
            return 0;
        bool fit = stage1_goes_on(t) && (round == 0 || segment_table_tried(&t->segments) > tried);
        if (!fit)
            return plans(t, patience, found, st);
    }
}
