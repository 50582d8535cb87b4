/* What a converged search measures to say how sure it is, and what it then can say. */
#include "search/close.h"
#include "search/study_int.h"

static double best_ms(const struct history *h)
{
    int best = history_best(h);
    return best >= 0 ? h->items[best].outcome.ms : NAN;
}

/* ---- what is measured ------------------------------------------------------------------------ */

/* The context of an evaluator that measures as `e` does, but only plans near the best. */
struct closer {
    const struct evaluator *e;
    const struct history *h;
    const struct segment_times *times;
    double share, most_ms; /* most_ms: the largest sum that may be measured, of one layer */
    int layers;
};

/* The `most`-th sum of the plans that may run, of one layer; infinite if there are fewer. */
static double limit_of(const struct search_options *o, const struct closing *how,
                       const struct evaluator *e, const struct segment_times *times)
{
    struct plan space[PLAN_SPACE];
    double sums[PLAN_SPACE], limit = INFINITY;
    int count = plan_space(o->space_lo, o->space_hi, space), known = 0;
    for (int i = 0; i < count; i++) {
        double sum = additive_ms(times, space[i]);
        if (!isnan(sum) && (e->fails == NULL || !e->fails(e->ctx, space[i])))
            sums[known++] = sum;
    }
    qsort(sums, (size_t)known, sizeof(*sums), stats_order);
    if (how->most < known)
        limit = sums[how->most - 1];
    return limit;
}

static int measure(void *ctx, struct plan p, struct outcome *out, struct status *st)
{
    const struct closer *c = ctx;
    return c->e->measure(c->e->ctx, p, out, st);
}

static const struct segment_times *segments(void *ctx)
{
    return ((const struct closer *)ctx)->times;
}

/* Whether a plan may not run, or would have to beat its sum by much to be the fastest. */
static bool left_out(void *ctx, struct plan p)
{
    const struct closer *c = ctx;
    double sum = additive_ms(c->times, p);
    bool near = sum <= c->most_ms && c->share * sum * c->layers < best_ms(c->h);
    return !near || (c->e->fails != NULL && c->e->fails(c->e->ctx, p));
}

static double now(void *ctx)
{
    const struct closer *c = ctx;
    return c->e->now(c->e->ctx);
}

int search_close(const struct search_options *o, const struct closing *how,
                 const struct evaluator *e, struct history *h, struct search_result *out,
                 struct status *st)
{
    const struct segment_times *times = e->segments != NULL ? e->segments(e->ctx) : NULL;
    *out = (struct search_result){.best = history_best(h), .stopped_by = STOP_SPACE};
    if (times == NULL)
        return 0;
    struct closer c = {.e = e,
                       .h = h,
                       .times = times,
                       .share = how->share,
                       .most_ms = limit_of(o, how, e, times),
                       .layers = how->layers};
    const struct evaluator near = {
        .measure = measure, .segments = segments, .fails = left_out, .now = now, .ctx = &c};
    struct search_options all = *o;
    all.strategy = strategy_find("additive");
    all.endless = true;
    int before = h->count, result = search_loop(&all, &near, h, how->progress, how->ctx, out, st);
    for (int i = before; i < h->count; i++)
        h->items[i].by = SIGNAL_SUM;
    return result;
}

/* ---- what can be said ------------------------------------------------------------------------ */

/* Below which time of its own a slot may be in the fastest plan, as a share of its parts' time.  Of
 * plans with several slots not timed nothing is known: each counts as if the others were timed. */
static void add_untimed(int slot, const struct covers *c, double least_sum, struct certainty *out)
{
    struct segment s = slot_segment(slot);
    double before = s.first > 0 ? c->ms[0][s.first - 1] : 0,
           after = s.last < OP_COUNT - 1 ? c->ms[s.last + 1][OP_COUNT - 1] : 0,
           others = before + after, parts = c->ms[s.first][s.last];
    bool known = isfinite(others) && isfinite(parts);
    out->untimed[out->untimed_count++] =
        (struct untimed_slot){slot, known ? fmax(0, least_sum - others) / parts : NAN};
}

void certainty_of(const struct history *h, const struct segment_times *times,
                  const bool fails[SLOT_COUNT], const struct plan *space, int space_count,
                  int layers, struct certainty *out)
{
    double best = best_ms(h);
    struct covers c;
    bool used[SLOT_COUNT] = {false};
    *out = (struct certainty){
        .known = !isnan(best), .gain = NAN, .largest = -INFINITY, .roofline = NAN};
    for (int i = 0; i < h->count; i++) {
        double sum = layers * additive_ms(times, h->items[i].plan);
        if (h->items[i].outcome.status == TRIAL_OK && !isnan(sum))
            out->largest = fmax(out->largest, 1 - h->items[i].outcome.ms / sum);
    }
    for (int i = 0; i < space_count; i++) {
        int slots[OP_COUNT], count = plan_slots(space[i], slots);
        if (history_has(h, space[i]) || plan_has_slot(space[i], fails))
            continue;
        out->open++;
        double gain = 1 - best / (layers * additive_ms(times, space[i]));
        out->gain = isnan(gain) ? out->gain : fmin(out->gain, gain); /* fmin ignores a NaN */
        for (int k = 0; k < count; k++)
            used[slots[k]] = true;
    }
    find_covers(times, &c);
    double least_sum = best / layers / (1 - (isnan(out->gain) ? 0 : out->gain));
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (used[slot] && isnan(times->ms[slot]))
            add_untimed(slot, &c, least_sum, out);
}
