/* A plan for a workload that was never measured.
 *
 * Each slot's time alone is transferred from the known workloads.  Plans measured there move the
 * posterior over what slots take in a plan, as if they had been measured here (lend.c).
 *
 * Then each known workload is left out and its fastest plan's time estimated from the others.  The
 * errors, in units of their standard deviations, scale the interval: Student's t with as many
 * degrees of freedom as there are errors. */
#include "search/estimate_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The interval's half width, at least, in units of its standard deviation. */
static const double least_scale = 0.5;

/* ---- segments -------------------------------------------------------------------------------- */

/* How many blocks attention computes, and how many of them in its longest query block. */
struct block_count {
    double all, longest;
};

static void count_blocks(const struct block_lists *l, struct block_count *out)
{
    out->all += (double)(l->blocks_full + l->blocks_partial);
    for (int i = 0; i < l->lists * l->blocks; i++)
        out->longest = fmax(out->longest, l->start[i + 1] - l->start[i]);
}

/* Blocks for which all multiprocessors take as long as the busiest of them takes: it computes at
 * least the blocks of the longest query block of one head, one after another. */
static double busy_blocks(const struct known_workloads *k, const struct workload *w,
                          const struct block_count *c)
{
    return fmax(fmax(c->all, c->longest * k->units / w->heads), 1);
}

/* Whether the schedule expected to be the fastest reads the mask by its cover. */
static bool is_covered(const struct known_workloads *k, const struct workload *w)
{
    const struct segment whole = {ATTENTION_FIRST, ATTENTION_LAST - 1};
    const struct build_target target = build_target_of(k->target, "", true, w);
    struct choice usual;
    return w->cover.parts > 0 && choices_for(&target, whole, false, 1, &usual) > 0 &&
           choice_blocks(&usual, w) == cover_entries(&w->cover);
}

static struct transfer_point point_of(int slot, const struct workload *w, double blocks)
{
    struct segment s = slot_segment(slot);
    struct transfer_point out = {
        .slot = slot,
        .size = {(double)workload_tokens(w), segment_dependence(s) == ON_MASK ? blocks : 1},
        .bytes = segment_bytes(s, w),
        .us = NAN};
    for (int op = s.first; op <= s.last; op++)
        out.flops += op_flops(op, w, (int64_t)(blocks * MASK_BLOCK * MASK_BLOCK));
    return out;
}

/* Without times.  Whole attention, but for the hand-written one, may take the mask by its cover. */
static void fill_points(const struct known_workloads *k, const struct workload *w,
                        struct transfer_point points[SLOT_COUNT])
{
    struct block_count plain = {0, 0}, cover = {0, 0};
    count_blocks(&w->blocks, &plain);
    for (int i = 0; i < w->cover.parts; i++)
        count_blocks(&w->cover.part[i].blocks, &cover);
    bool covered = is_covered(k, w);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        struct segment s = slot_segment(slot);
        bool whole = s.first <= ATTENTION_FIRST && s.last >= ATTENTION_LAST - 1;
        bool by_cover = whole && slot != SLOT_HANDWRITTEN && covered;
        points[slot] = point_of(slot, w, busy_blocks(k, w, by_cover ? &cover : &plain));
    }
}

/* (k->count + 1, SLOT_COUNT); free() it. */
static struct transfer_point *points_of(const struct known_workloads *k,
                                        const struct workload *asked)
{
    struct transfer_point *points = mem_alloc(((size_t)k->count + 1) * SLOT_COUNT, sizeof(*points));
    for (int i = 0; i < k->count; i++) {
        struct transfer_point *of = points + (ptrdiff_t)i * SLOT_COUNT;
        fill_points(k, &k->items[i].workload, of);
        for (int slot = 0; slot < SLOT_COUNT; slot++)
            if (k->items[i].slots[slot].impl != NULL)
                of[slot].us = k->items[i].slots[slot].us.median;
    }
    fill_points(k, asked, points + (ptrdiff_t)k->count * SLOT_COUNT);
    return points;
}

static struct transfer *fit(const struct view *v)
{
    struct transfer_point *seen = mem_alloc((size_t)v->k->count * SLOT_COUNT + 1, sizeof(*seen));
    int count = 0;
    for (int i = 0; i < v->k->count; i++)
        if (is_seen(v, i)) {
            memcpy(seen + count, v->points + (ptrdiff_t)i * SLOT_COUNT, SLOT_COUNT * sizeof(*seen));
            count += SLOT_COUNT;
        }
    struct transfer *t = transfer_fit(seen, count);
    free(seen);
    return t;
}

/* All layers' times in ms, and the deviations of their logarithms. */
struct slot_times {
    struct segment_times ms;
    double sd[SLOT_COUNT];
};

static void transfer_times(const struct view *v, struct slot_times *out)
{
    struct transfer *t = fit(v);
    int at = v->judged >= 0 ? v->judged : v->k->count;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        struct transferred got = transfer_predict(t, &v->points[(ptrdiff_t)at * SLOT_COUNT + slot]);
        out->ms.ms[slot] = 1e-3 * estimated(v)->layers * got.us;
        out->sd[slot] = got.sd;
    }
    transfer_free(t);
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* What slots take alone and in plans. */
struct forecast {
    struct slot_times alone;
    struct gaussian *posterior; /* owned */
    struct segment_times expected;
};

static void forecast_make(const struct view *v, struct forecast *out)
{
    struct history lent = {.count = 0};
    transfer_times(v, &out->alone);
    lend_plans(v, &out->alone.ms, &lent);
    out->posterior = posterior_of(&lent, &out->alone.ms);
    gaussian_times(out->posterior, &out->expected);
    for (int slot = 0; slot < SLOT_COUNT; slot++) /* nothing is hoped of what is unknown */
        if (isnan(out->alone.ms.ms[slot]))
            out->expected.ms[slot] = NAN;
    history_release(&lent);
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
        struct view others = *all;
        struct forecast f;
        if (!is_seen(all, i))
            continue;
        others.judged = i;
        forecast_make(&others, &f);
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

static bool is_near(const struct view *v, struct estimate *out)
{
    struct ranked *order = mem_alloc((size_t)v->k->count + 1, sizeof(*order));
    out->known = nearest_first(v, order);
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
    struct view v = {.k = k, .left_out = left_out, .asked = w, .judged = -1};
    struct estimate out = {.count = 0};
    struct forecast f;
    if (!is_near(&v, &out))
        return out;
    struct transfer_point *points = points_of(k, w);
    v.points = points;
    struct errors e = errors_of(&v);
    out.judged = e.count;
    out.usual_error = e.count > 0 ? sqrt(e.logs / e.count) : NAN;
    forecast_make(&v, &f);
    if (e.count > 0) /* else nothing says how far off a time may be */
        rank(&f, width_of(&e), plans, count, &out);
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        out.us[slot] = 1e3 * f.alone.ms.ms[slot] / w->layers;
    gaussian_free(f.posterior);
    free(points);
    return out;
}
