/* A Gaussian process over plans that knows neighbours.
 *
 * A plan takes what its segments take alone, in all of its layers, and a normal deviation.  Two
 * plans deviate alike by what they share: a factor that all segments have, a gap before each
 * launch, their equal segments, and their equal pairs of adjacent segments, which slow or help each
 * other. So what was measured of one plan says something of those that share its pairs, and how
 * much (Rasmussen, Williams: Gaussian Processes for Machine Learning, 2006, section 2.2).
 *
 * Times are kept in units of the mean measured time. */
#include "model/model_int.h"

#include <math.h>
#include <stdlib.h>

/* Standard deviations, as shares: of all segments; of a segment; of a pair, to the sum of both; and
 * of a plan's time.  The gap's is in units of the mean plan.  Those of the factor and of the gap
 * are wide: a few plans tell them. */
static const double common_sd = 0.15, own_sd = 0.02, pair_sd = 0.04, misfit = 0.004, gap_sd = 0.01;

/* A plan by its segments.  Arrays of OP_COUNT are indexed by a segment's first operator. */
struct shape {
    int count, first[OP_COUNT];
    int slot[OP_COUNT];  /* that begins at this operator; -1: none does */
    double ms[OP_COUNT]; /* alone, in all layers, in units */
    double sum;
};

struct pairs {
    struct segment_times alone; /* in all layers, in units */
    double unit;                /* ms */
    int count, cap;
    struct shape *shapes; /* (cap) of the plans it knows */
    double *factor;       /* (cap, cap) Cholesky factor of their covariance, by columns */
    double *rest;         /* (cap) the factor's inverse times their deviations */
    double *x;            /* (cap) scratch */
};

static bool make_shape(const struct pairs *f, struct plan p, struct shape *out)
{
    int slots[OP_COUNT];
    out->count = plan_slots(p, slots);
    out->sum = 0;
    for (int op = 0; op < OP_COUNT; op++)
        out->slot[op] = -1;
    for (int i = 0; i < out->count; i++) {
        int first = slot_segment(slots[i]).first;
        out->first[i] = first;
        out->slot[first] = slots[i];
        out->ms[first] = f->alone.ms[slots[i]];
        out->sum += out->ms[first];
    }
    return isfinite(out->sum);
}

static double covariance(const struct shape *a, const struct shape *b)
{
    double own = 0, pair = 0, before = 0; /* before: the time of the segment in front, if shared */
    for (int i = 0; i < a->count; i++) {
        int first = a->first[i];
        bool shared = a->slot[first] == b->slot[first];
        double ms = shared ? a->ms[first] : 0;
        own += ms * ms;
        if (ms > 0 && before > 0)
            pair += (before + ms) * (before + ms);
        before = ms;
    }
    return common_sd * common_sd * a->sum * b->sum + gap_sd * gap_sd * a->count * b->count +
           own_sd * own_sd * own + pair_sd * pair_sd * pair;
}

/* Fills f->x with the factor's inverse times the covariances with the plans known; returns the
 * variance that these leave to the plan. */
static double solve(struct pairs *f, const struct shape *s)
{
    double variance = covariance(s, s), *restrict x = f->x;
    for (int i = 0; i < f->count; i++)
        x[i] = covariance(s, &f->shapes[i]);
    for (int i = 0, count = f->count; i < count; i++) {
        const double *restrict column = f->factor + (size_t)i * (size_t)f->cap;
        double by = x[i] /= column[i];
        for (int k = i + 1; k < count; k++)
            x[k] -= column[k] * by;
        variance -= by * by;
    }
    return fmax(variance, 0);
}

static double deviation(const struct pairs *f)
{
    double sum = 0;
    for (int i = 0; i < f->count; i++)
        sum += f->x[i] * f->rest[i];
    return sum;
}

/* Adds a plan by its time and its standard error, in units. */
static void add(struct pairs *f, const struct shape *s, double time, double error)
{
    double own = sqrt(solve(f, s) + error * error);
    for (int i = 0; i < f->count; i++)
        f->factor[(size_t)i * (size_t)f->cap + (size_t)f->count] = f->x[i];
    f->factor[(size_t)f->count * (size_t)f->cap + (size_t)f->count] = own;
    f->rest[f->count] = (time - s->sum - deviation(f)) / own;
    f->shapes[f->count++] = *s;
}

/* ---- fitting --------------------------------------------------------------------------------- */

struct measured {
    int at; /* its index in the data */
    double ms, sum;
};

static int by_ms(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    return x->ms != y->ms ? (x->ms > y->ms) - (x->ms < y->ms) : x->at - y->at;
}

/* The plans whose segments were all timed alone: the PAIRS_PLANS_MOST fastest.  Returns how many.
 */
static int choose(const struct gaussian_data *d, const struct segment_times *alone,
                  struct measured *out)
{
    int count = 0;
    for (int i = 0; i < d->count; i++) {
        double sum = additive_ms(alone, d->plans[i]);
        if (isfinite(sum) && sum > 0)
            out[count++] = (struct measured){i, d->ms[i], sum};
    }
    qsort(out, (size_t)count, sizeof(*out), by_ms);
    return count < PAIRS_PLANS_MOST ? count : PAIRS_PLANS_MOST;
}

/* A plan has several layers: the median of its time over its sum. */
static void set_units(struct pairs *f, const struct measured *plans, int count,
                      const struct segment_times *alone)
{
    double *ratios = mem_alloc((size_t)count + 1, sizeof(*ratios)), sum = 0;
    for (int i = 0; i < count; i++) {
        ratios[i] = plans[i].ms / plans[i].sum;
        sum += plans[i].ms;
    }
    double unfused = additive_ms(alone, plan_of(0, false));
    double layers = count > 0 ? stats_median(ratios, (size_t)count).median : 1;
    f->unit = count > 0 ? sum / count : isfinite(unfused) ? unfused : 1;
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        f->alone.ms[slot] = layers * alone->ms[slot] / f->unit;
    free(ratios);
}

struct pairs *pairs_fit(const struct gaussian_data *d, const struct segment_times *alone)
{
    struct pairs *f = mem_alloc(1, sizeof(*f));
    struct measured *plans = mem_alloc((size_t)d->count + 1, sizeof(*plans));
    int count = choose(d, alone, plans);
    f->cap = count + PAIRS_ASSUMED_MOST;
    f->shapes = mem_alloc((size_t)f->cap, sizeof(*f->shapes));
    f->factor = mem_alloc((size_t)f->cap * (size_t)f->cap, sizeof(*f->factor));
    f->rest = mem_alloc((size_t)f->cap, sizeof(*f->rest));
    f->x = mem_alloc((size_t)f->cap, sizeof(*f->x));
    set_units(f, plans, count, alone);
    for (int i = 0; i < count; i++) {
        struct shape s;
        double time = plans[i].ms / f->unit;
        double noise = d->noise != NULL ? d->noise[plans[i].at] : 0;
        make_shape(f, d->plans[plans[i].at], &s);
        add(f, &s, time, time * hypot(misfit, noise));
    }
    free(plans);
    return f;
}

void pairs_free(struct pairs *f)
{
    if (f == NULL)
        return;
    free(f->shapes);
    free(f->factor);
    free(f->rest);
    free(f->x);
    free(f);
}

/* ---- what it says ---------------------------------------------------------------------------- */

struct pairs_time pairs_expect(struct pairs *f, struct plan p)
{
    struct shape s;
    if (!make_shape(f, p, &s))
        return (struct pairs_time){NAN, NAN, misfit};
    double variance = solve(f, &s);
    return (struct pairs_time){f->unit * (s.sum + deviation(f)), f->unit * sqrt(variance), misfit};
}

void pairs_assume(struct pairs *f, struct plan p)
{
    struct shape s;
    if (f->count == f->cap || !make_shape(f, p, &s))
        return;
    solve(f, &s);
    double time = s.sum + deviation(f);
    add(f, &s, time, time * misfit);
}
