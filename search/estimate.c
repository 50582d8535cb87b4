/* A plan for a workload that was never measured.
 *
 * Each slot's time alone is transferred from the known workloads.  Plans measured there move the
 * posterior over what slots take in a plan: a plan that took q times the sum of its segments there
 * counts as if it had taken q times the sum of the transferred times here, as sure as such ratios
 * are the same in other workloads.
 *
 * Then each known workload is left out and its fastest plan's time estimated from the others.  The
 * errors, in units of their standard deviations, scale the interval: Student's t with as many
 * degrees of freedom as there are errors. */
#include "search/estimate.h"
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* So many of the nearest workloads lend their plans, the fastest so many of each. */
enum { LENDING = 6, LENT = 16 };

/* How far ratios of plans to their sums spread over workloads, where few tell, and at least. */
static const double usual_spread = 0.05, least_spread = 0.005;
enum { SPREAD_LEAST = 3 };

/* The interval's half width, at least, in units of its standard deviation. */
static const double least_scale = 0.5;

struct view {
    const struct known_workloads *k;
    const bool *left_out; /* (k->count) workloads that are ignored; may be null */
    int judged;           /* index of one more; -1: none */
};

static bool is_seen(const struct view *v, int i)
{
    return i != v->judged && (v->left_out == NULL || !v->left_out[i]);
}

/* ---- segments -------------------------------------------------------------------------------- */

/* The blocks that a slot computes: whole attention, but for the hand-written one, may take the mask
 * by its cover. */
static double blocks_of(int slot, const struct workload *w)
{
    struct segment s = slot_segment(slot);
    const struct block_lists *b = &w->blocks;
    bool whole = s.first <= ATTENTION_FIRST && s.last >= ATTENTION_LAST - 1;
    return whole && slot != SLOT_HANDWRITTEN && w->cover.parts > 0
               ? (double)cover_entries(&w->cover)
               : (double)(b->blocks_full + b->blocks_partial);
}

static struct transfer_point point_of(int slot, const struct workload *w)
{
    struct segment s = slot_segment(slot);
    double blocks = fmax(blocks_of(slot, w), 1);
    struct transfer_point out = {
        .slot = slot,
        .size = {(double)workload_tokens(w), segment_dependence(s) == ON_MASK ? blocks : 1},
        .bytes = segment_bytes(s, w),
        .us = NAN};
    for (int op = s.first; op <= s.last; op++)
        out.flops += op_flops(op, w, (int64_t)(blocks * MASK_BLOCK * MASK_BLOCK));
    return out;
}

static struct transfer *fit(const struct view *v)
{
    struct transfer_point *points =
        mem_alloc((size_t)v->k->count * SLOT_COUNT + 1, sizeof(*points));
    int count = 0;
    for (int i = 0; i < v->k->count; i++)
        for (int slot = 0; slot < SLOT_COUNT && is_seen(v, i); slot++) {
            const struct known_workload *w = &v->k->items[i];
            if (w->slots[slot].impl == NULL)
                continue;
            points[count] = point_of(slot, &w->workload);
            points[count++].us = w->slots[slot].us.median;
        }
    struct transfer *t = transfer_fit(points, count);
    free(points);
    return t;
}

/* All layers' times in ms, and the deviations of their logarithms. */
struct slot_times {
    struct segment_times ms;
    double sd[SLOT_COUNT];
};

static void transfer_times(const struct view *v, const struct workload *w, struct slot_times *out)
{
    struct transfer *t = fit(v);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        struct transfer_point asked = point_of(slot, w);
        struct transferred got = transfer_predict(t, &asked);
        out->ms.ms[slot] = 1e-3 * w->layers * got.us;
        out->sd[slot] = got.sd;
    }
    transfer_free(t);
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* A plan's time in a known workload over the sum of its segments; NaN where one is unknown. */
static double ratio_of(const struct known_workload *w, const struct observation *o)
{
    int slots[OP_COUNT], n = plan_slots(o->plan, slots);
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += w->slots[slots[i]].impl != NULL ? 1e-3 * w->slots[slots[i]].us.median : NAN;
    return o->outcome.status == TRIAL_OK ? o->outcome.ms / (w->workload.layers * sum) : NAN;
}

/* How far the logarithms of a plan's ratios spread over workloads. */
static double ratio_spread(const struct view *v)
{
    double *sum = mem_alloc(PLAN_KEYS, sizeof(*sum)), *square = mem_alloc(PLAN_KEYS, sizeof(*sum));
    int *count = mem_alloc(PLAN_KEYS, sizeof(*count)), freedom = 0;
    double squares = 0;
    for (int i = 0; i < v->k->count; i++) {
        const struct known_workload *w = &v->k->items[i];
        for (int p = 0; p < w->plans.count && is_seen(v, i); p++) {
            double r = log(ratio_of(w, &w->plans.items[p]));
            unsigned key = plan_key(w->plans.items[p].plan);
            if (isnan(r))
                continue;
            sum[key] += r;
            square[key] += r * r;
            count[key]++;
        }
    }
    for (int key = 0; key < PLAN_KEYS; key++)
        if (count[key] > 1) {
            squares += square[key] - sum[key] * sum[key] / count[key];
            freedom += count[key] - 1;
        }
    free(sum);
    free(square);
    free(count);
    return freedom < SPREAD_LEAST ? usual_spread
                                  : fmax(sqrt(fmax(squares, 0) / freedom), least_spread);
}

struct ranked {
    int index;
    double key;
};

static int by_key(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->index - y->index;
}

/* Plans of a known workload as if they had been measured here. */
static void lend(const struct known_workload *from, const struct segment_times *here, double spread,
                 struct history *out)
{
    const struct history *h = &from->plans;
    struct ranked *order = mem_alloc((size_t)h->count + 1, sizeof(*order));
    int count = 0;
    for (int i = 0; i < h->count; i++)
        if (!isnan(ratio_of(from, &h->items[i])) && !isnan(additive_ms(here, h->items[i].plan)))
            order[count++] = (struct ranked){i, h->items[i].outcome.ms};
    qsort(order, (size_t)count, sizeof(*order), by_key);
    for (int i = 0; i < count && i < LENT; i++) {
        const struct observation *o = &h->items[order[i].index];
        history_add(out, o->plan,
                    (struct outcome){.status = TRIAL_OK,
                                     .ms = ratio_of(from, o) * additive_ms(here, o->plan),
                                     .noise = spread});
    }
    free(order);
}

/* Indices of the workloads that are seen, the nearest first; returns their number. */
static int nearest_first(const struct view *v, const struct workload *w, struct ranked *out)
{
    int count = 0;
    for (int i = 0; i < v->k->count; i++)
        if (is_seen(v, i))
            out[count++] = (struct ranked){i, workload_distance(w, &v->k->items[i].workload)};
    qsort(out, (size_t)count, sizeof(*out), by_key);
    return count;
}

/* What slots take alone and in plans. */
struct forecast {
    struct slot_times alone;
    struct gaussian *posterior; /* owned */
    struct segment_times expected;
};

static void forecast_make(const struct view *v, const struct workload *w, struct forecast *out)
{
    struct ranked *order = mem_alloc((size_t)v->k->count + 1, sizeof(*order));
    int count = nearest_first(v, w, order);
    double spread = ratio_spread(v);
    struct history lent = {.count = 0};
    transfer_times(v, w, &out->alone);
    for (int i = 0; i < count && i < LENDING; i++)
        lend(&v->k->items[order[i].index], &out->alone.ms, spread, &lent);
    out->posterior = posterior_of(&lent, &out->alone.ms);
    gaussian_times(out->posterior, &out->expected);
    for (int slot = 0; slot < SLOT_COUNT; slot++) /* nothing is hoped of what is unknown */
        if (isnan(out->alone.ms.ms[slot]))
            out->expected.ms[slot] = NAN;
    history_release(&lent);
    free(order);
}

/* The deviation of the logarithm of a plan's time: segments are off together by what the posterior
 * says, and each by what transfer says. */
static double sd_of(const struct forecast *f, struct plan p)
{
    int slots[OP_COUNT], n = plan_slots(p, slots);
    double sum = additive_ms(&f->expected, p), sd = gaussian_sd(f->posterior, p);
    double variance = sd * sd + pow(gaussian_misfit(f->posterior) * sum, 2);
    for (int i = 0; i < n; i++)
        variance += pow(f->alone.sd[slots[i]] * f->expected.ms[slots[i]], 2);
    return sqrt(variance) / sum;
}

/* ---- how far off ----------------------------------------------------------------------------- */

struct errors {
    int count;
    double squares; /* of errors in units of their deviations */
    double logs;    /* the squares of the logarithms themselves */
};

static const struct observation *fastest_known(const struct known_workload *w,
                                               const struct segment_times *expected)
{
    const struct observation *best = NULL;
    for (int i = 0; i < w->plans.count; i++) {
        const struct observation *o = &w->plans.items[i];
        if (o->outcome.status == TRIAL_OK && !isnan(additive_ms(expected, o->plan)) &&
            (best == NULL || o->outcome.ms < best->outcome.ms))
            best = o;
    }
    return best;
}

static struct errors errors_of(const struct view *all)
{
    struct errors out = {.count = 0};
    for (int i = 0; i < all->k->count; i++) {
        const struct known_workload *w = &all->k->items[i];
        const struct view others = {all->k, all->left_out, i};
        struct forecast f;
        if (!is_seen(all, i))
            continue;
        forecast_make(&others, &w->workload, &f);
        const struct observation *o = fastest_known(w, &f.expected);
        if (o != NULL) {
            double error = log(o->outcome.ms / additive_ms(&f.expected, o->plan));
            out.count++;
            out.logs += error * error;
            out.squares += pow(error / sd_of(&f, o->plan), 2);
        }
        gaussian_free(f.posterior);
    }
    return out;
}

/* Student's t that 95 % of draws are below, with n degrees of freedom: Fisher and Cornish's
 * expansion, within 0.01 from 3 on. */
static double student(int n)
{
    return 1.645 + 1.524 / n + 1.42 / pow(n, 2) + 1.2 / pow(n, 3);
}

/* The interval's half width in units of its deviation. */
static double width_of(const struct errors *e)
{
    return student(e->count) * fmax(sqrt(e->squares / e->count), least_scale);
}

static struct interval interval_of(const struct forecast *f, double width, struct plan p)
{
    double ms = additive_ms(&f->expected, p), share = exp(width * sd_of(f, p));
    return (struct interval){ms, ms / share, ms * share};
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool is_near(const struct view *v, const struct workload *w, struct estimate *out)
{
    struct ranked *order = mem_alloc((size_t)v->k->count + 1, sizeof(*order));
    out->known = nearest_first(v, w, order);
    out->nearest = out->known > 0 ? order[0].index : -1;
    bool near = out->known >= NEAR_LEAST && order[0].key <= NEAR_FACTOR;
    free(order);
    return near;
}

static void rank(const struct forecast *f, double width, const struct plan *plans, int count,
                 struct estimate *out)
{
    struct ranked *order = mem_alloc((size_t)count + 1, sizeof(*order));
    int known = 0;
    for (int i = 0; i < count; i++) {
        double ms = additive_ms(&f->expected, plans[i]);
        if (!isnan(ms))
            order[known++] = (struct ranked){i, ms};
    }
    qsort(order, (size_t)known, sizeof(*order), by_key);
    for (out->count = 0; out->count < known && out->count < ESTIMATED_MOST; out->count++) {
        struct plan p = plans[order[out->count].index];
        out->plans[out->count] = (struct estimated_plan){p, interval_of(f, width, p)};
    }
    free(order);
}

struct estimate estimate_plans(const struct known_workloads *k, const bool *left_out,
                               const struct workload *w, const struct plan *plans, int count)
{
    const struct view v = {k, left_out, -1};
    struct estimate out = {.count = 0};
    struct forecast f;
    if (!is_near(&v, w, &out))
        return out;
    struct errors e = errors_of(&v);
    out.judged = e.count;
    out.usual_error = e.count > 0 ? sqrt(e.logs / e.count) : NAN;
    forecast_make(&v, w, &f);
    if (e.count > 0) /* else nothing says how far off a time may be */
        rank(&f, width_of(&e), plans, count, &out);
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        out.us[slot] = 1e3 * f.alone.ms.ms[slot] / w->layers;
    gaussian_free(f.posterior);
    return out;
}
