#include "search/strategy_int.h"

const char *const search_stop_names[STOP_COUNT] = {
    [STOP_BUDGET] = "budget",           [STOP_TIME] = "time",
    [STOP_CONVERGED] = "converged",     [STOP_SPACE] = "space",
    [STOP_INTERRUPTED] = "interrupted", [STOP_DONE] = "done",
};

struct loop {
    const struct search_options *o;
    const struct evaluator *e;
    struct history *h;
    search_progress *progress;
    void *progress_ctx;
    struct search_result *out;
    double start;                        /* seconds */
    double last_cost_s, last_proposal_s; /* what the last measurement and proposal took */
};

/* Notes why the search is over; returns 1. */
static int end(struct loop *l, enum search_stop reason)
{
    l->out->stopped_by = reason;
    return 1;
}

/* 1 if the search must end before work that takes so many seconds, else 0. */
static int must_stop(struct loop *l, double seconds)
{
    const struct search_options *o = l->o;
    if (o->stop != NULL && *o->stop != 0)
        return end(l, STOP_INTERRUPTED);
    if (o->budget > 0 && l->h->count >= o->budget)
        return end(l, STOP_BUDGET);
    if (o->time_limit_s > 0 && l->e->now(l->e->ctx) - l->start + seconds >= o->time_limit_s)
        return end(l, STOP_TIME);
    return 0;
}

static bool known_to_fail(const struct loop *l, struct plan p)
{
    return l->e->fails != NULL && l->e->fails(l->e->ctx, p);
}

/* Moves the plans whose segments were all timed alone to the front; returns how many. */
static int timed_first(const struct segment_times *times, struct plan *plans, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++)
        if (isfinite(additive_ms(times, plans[i]))) {
            struct plan p = plans[i];
            plans[i] = plans[n];
            plans[n++] = p;
        }
    return n;
}

/* Writes the plans of a space that may be proposed; returns how many.  Plans with a segment that
 * was not timed come when no other one is left. */
static int open_space(const struct loop *l, const struct segment_times *times,
                      const struct plan *space, int count, struct plan *open)
{
    int n = 0, timed;
    for (int i = 0; i < count; i++) {
        if (history_has(l->h, space[i]) || known_to_fail(l, space[i]))
            continue;
        open[n++] = space[i];
    }
    timed = times != NULL ? timed_first(times, open, n) : n;
    return timed > 0 ? timed : n;
}

static double best_of_first(const struct history *h, int count)
{
    struct history part = {.items = h->items, .count = count};
    int best = history_best(&part);
    return best < 0 ? NAN : h->items[best].outcome.ms;
}

/* As strategy.h defines it.  Comparisons with NaN are false, so a search without a best plan or an
 * expectation goes on. */
static bool converged(const struct history *h, double expected_ms, int patience)
{
    double gain = fmax(CONVERGED_GAIN, history_noise(h));
    if (h->count <= patience)
        return false;
    double best_ms = best_of_first(h, h->count);
    double before_ms = best_of_first(h, h->count - patience);
    double worthwhile_ms = best_ms * (1 - gain);
    return before_ms * (1 - gain) < best_ms && expected_ms > worthwhile_ms;
}

/* Returns 1 if the user interrupts or the time is over, -1 on a failure. */
static int measure(struct loop *l, struct plan p, enum signal by, struct status *st)
{
    double begin = l->e->now(l->e->ctx);
    struct outcome o;
    if (l->e->measure(l->e->ctx, p, &o, st) != 0) {
        if (st->code != STATUS_INTERRUPTED && st->code != STATUS_TIMEOUT)
            return -1;
        bool late = st->code == STATUS_TIMEOUT;
        *st = STATUS_INIT;
        return end(l, late ? STOP_TIME : STOP_INTERRUPTED);
    }
    l->last_cost_s = l->e->now(l->e->ctx) - begin;
    history_add(l->h, p, o);
    l->h->items[l->h->count - 1].by = by;
    l->out->new_trials++;
    if (l->progress != NULL)
        l->progress(l->progress_ctx, l->h, &l->h->items[l->h->count - 1]);
    return 0;
}

static int measure_batch(struct loop *l, const struct proposal *p, struct status *st)
{
    for (int i = 0; i < p->count; i++) {
        if (must_stop(l, l->last_cost_s) != 0)
            return 1;
        if (known_to_fail(l, p->plans[i])) /* the batch itself may have taught that */
            continue;
        int result = measure(l, p->plans[i], p->by[i] == SIGNAL_NONE ? SIGNAL_RULE : p->by[i], st);
        if (result != 0)
            return result;
    }
    return 0;
}

/* Proposes and measures one batch; returns 1 if the search is over, -1 on a failure. */
static int step(struct loop *l, const struct plan *space, int count, struct rng *rng,
                struct status *st)
{
    if (must_stop(l, l->last_proposal_s + l->last_cost_s) != 0)
        return 1;
    double begin = l->e->now(l->e->ctx);
    struct plan open[PLAN_SPACE];
    const struct segment_times *times = l->e->segments != NULL ? l->e->segments(l->e->ctx) : NULL;
    struct strategy_context c = {.space = open,
                                 .space_count = open_space(l, times, space, count, open),
                                 .history = l->h,
                                 .segments = times,
                                 .rng = rng,
                                 .quantile = l->o->quantile,
                                 .seed = l->o->seed};
    if (c.space_count == 0)
        return end(l, STOP_SPACE);
    int room = l->o->budget > 0 ? l->o->budget - l->h->count : PROPOSAL_MAX;
    struct proposal p;
    if (l->o->strategy->propose(&c, room < PROPOSAL_MAX ? room : PROPOSAL_MAX, &p, st) != 0)
        return -1;
    l->last_proposal_s = l->e->now(l->e->ctx) - begin;
    /* A space of one plan asks for its time. */
    int patience = l->o->patience > 0 ? l->o->patience : CONVERGED_PATIENCE;
    if (!l->o->endless && count > 1 && converged(l->h, p.expected_ms, patience))
        return end(l, STOP_CONVERGED);
    return measure_batch(l, &p, st);
}

static struct loop loop_of(const struct search_options *o, const struct evaluator *e,
                           struct history *h, search_progress *progress, void *ctx,
                           struct search_result *out)
{
    return (struct loop){.o = o,
                         .e = e,
                         .h = h,
                         .progress = progress,
                         .progress_ctx = ctx,
                         .out = out,
                         .start = e->now(e->ctx)};
}

int search_loop(const struct search_options *o, const struct evaluator *e, struct history *h,
                search_progress *progress, void *ctx, struct search_result *out, struct status *st)
{
    *out = (struct search_result){.best = -1};
    struct plan space[PLAN_SPACE];
    int count = plan_space(o->space_lo, o->space_hi, space);
    struct loop l = loop_of(o, e, h, progress, ctx, out);
    struct rng rng = {.state = splitmix64(o->seed)};
    int result = 0;
    while (result == 0)
        result = step(&l, space, count, &rng, st);
    out->best = history_best(h);
    return result < 0 ? -1 : 0;
}

int search_plan(const struct search_options *o, const struct evaluator *e, struct plan p,
                struct history *h, search_progress *progress, void *ctx, struct search_result *out,
                struct status *st)
{
    *out = (struct search_result){.stopped_by = STOP_SPACE};
    struct loop l = loop_of(o, e, h, progress, ctx, out);
    int result = must_stop(&l, 0) != 0 ? 1 : measure(&l, p, SIGNAL_NONE, st);
    if (result == 0)
        must_stop(&l, l.last_cost_s);
    out->best = history_best(h);
    return result < 0 ? -1 : 0;
}
