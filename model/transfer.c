/* Segment times of a workload from those of others.
 *
 * The roofline of a segment is t0 + flops / F + bytes / M: t0 is the least time known of any
 * segment, F and M are the highest rates that one reached.  Let r(x) be the logarithm of a slot's
 * time over its roofline, x the logarithms of its sizes.  r is a Gaussian process (Rasmussen and
 * Williams, Gaussian Processes for Machine Learning, 2006, sections 2.2 and 2.7) with the mean of
 * all slots and the covariance
 *     level^2 + slope^2 (x - m)(x' - m) + bend^2 exp(-|x - x'|^2 / 2 reach^2) + noise^2 [x = x'],
 * m the mean of the known x.  Times known at one x count as one, their mean.
 *
 * Each known time is predicted from the others of its slot (equations 5.10 to 5.12 there).  How far
 * these predictions are off, in units of the standard deviations that the process gives them,
 * scales the standard deviation of what is predicted. */
#include "model/model_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Deviations of logarithms; reach and slope: per factor e of a size. */
static const double level = 1, slope = 0.15, bend = 0.2, reach = 1.5, noise = 0.02;

/* A slot's own errors count like those of all slots once there are so many. */
static const double errors_of_all = 4;

/* Standard deviations are scaled by no less than this: the known times may lie well by chance. */
static const double least_scale = 0.5;

/* What is known of a slot. */
struct known_slot {
    int count;
    double (*x)[TRANSFER_SIZES]; /* (count) owned */
    double *r;                   /* (count) owned */
    double *weight;              /* (count) owned: covariance^-1 (r - mean) */
    double *factor;              /* (count, count) owned: lower triangle of the covariance's */
    double middle[TRANSFER_SIZES];
    double squares; /* of its errors, in units of their deviations */
    int errors;
};

struct transfer {
    double t0, flops_per_us, bytes_per_us;
    double mean;
    struct known_slot slots[SLOT_COUNT];
    double scale; /* of the deviations, by the errors of all slots */
};

/* ---- the roofline ---------------------------------------------------------------------------- */

static bool is_known(const struct transfer_point *p)
{
    return isfinite(p->us) && p->us > 0;
}

static void find_rates(struct transfer *t, const struct transfer_point *points, int count)
{
    t->t0 = INFINITY;
    for (int i = 0; i < count; i++) {
        if (!is_known(&points[i]))
            continue;
        t->t0 = fmin(t->t0, points[i].us);
        t->flops_per_us = fmax(t->flops_per_us, points[i].flops / points[i].us);
        t->bytes_per_us = fmax(t->bytes_per_us, points[i].bytes / points[i].us);
    }
}

static double log_roofline(const struct transfer *t, const struct transfer_point *p)
{
    double us = t->t0;
    if (p->flops > 0)
        us += p->flops / t->flops_per_us;
    if (p->bytes > 0)
        us += p->bytes / t->bytes_per_us;
    return log(us);
}

/* ---- what is known --------------------------------------------------------------------------- */

static double distance2(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < TRANSFER_SIZES; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static void logs_of(const struct transfer_point *p, double out[TRANSFER_SIZES])
{
    for (int i = 0; i < TRANSFER_SIZES; i++)
        out[i] = log(p->size[i]);
}

/* Adds a point; the times at one place are summed up in r and counted in weight. */
static void add_point(struct known_slot *s, const double x[TRANSFER_SIZES], double r)
{
    int at = 0;
    while (at < s->count && distance2(s->x[at], x) > 1e-18)
        at++;
    if (at == s->count) {
        size_t room = (size_t)++s->count;
        s->x = mem_resize(s->x, room, sizeof(*s->x));
        s->r = mem_resize(s->r, room, sizeof(*s->r));
        s->weight = mem_resize(s->weight, room, sizeof(*s->weight));
        memcpy(s->x[at], x, sizeof(s->x[at]));
        s->r[at] = s->weight[at] = 0;
    }
    s->r[at] += r;
    s->weight[at]++;
}

static void gather(struct transfer *t, const struct transfer_point *points, int count)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < count; i++) {
        double x[TRANSFER_SIZES];
        if (!is_known(&points[i]))
            continue;
        logs_of(&points[i], x);
        add_point(&t->slots[points[i].slot], x, log(points[i].us) - log_roofline(t, &points[i]));
    }
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        struct known_slot *s = &t->slots[slot];
        for (int i = 0; i < s->count; i++, n++) {
            s->r[i] /= s->weight[i];
            sum += s->r[i];
            for (int k = 0; k < TRANSFER_SIZES; k++)
                s->middle[k] += s->x[i][k] / s->count;
        }
    }
    t->mean = n > 0 ? sum / n : 0;
}

/* ---- the process of a slot ------------------------------------------------------------------- */

/* Without noise. */
static double covariance(const struct known_slot *s, const double *a, const double *b)
{
    double along = 0;
    for (int i = 0; i < TRANSFER_SIZES; i++)
        along += (a[i] - s->middle[i]) * (b[i] - s->middle[i]);
    return level * level + slope * slope * along +
           bend * bend * exp(-distance2(a, b) / (2 * reach * reach));
}

/* The squares of the errors of predicting each point from the others, over their variances. */
static void judge(struct known_slot *s)
{
    int n = s->count;
    double *column = mem_alloc((size_t)n + 1, sizeof(*column));
    for (int i = 0; i < n && n > 1; i++) {
        memset(column, 0, (size_t)n * sizeof(*column));
        column[i] = 1;
        solve_lower(s->factor, n, column);
        double precision = 0;
        for (int k = i; k < n; k++)
            precision += column[k] * column[k];
        s->squares += s->weight[i] * s->weight[i] / precision;
        s->errors++;
    }
    free(column);
}

static void fit_slot(struct known_slot *s, double mean)
{
    int n = s->count;
    s->factor = mem_alloc((size_t)n * (size_t)n + 1, sizeof(*s->factor));
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            s->factor[i * n + j] = covariance(s, s->x[i], s->x[j]) + (i == j ? noise * noise : 0);
    cholesky(s->factor, s->weight, n);
    for (int i = 0; i < n; i++)
        s->weight[i] = s->r[i] - mean;
    solve_lower(s->factor, n, s->weight);
    solve_upper(s->factor, n, s->weight);
    judge(s);
}

struct transfer *transfer_fit(const struct transfer_point *points, int count)
{
    struct transfer *t = mem_alloc(1, sizeof(*t));
    double squares = 0;
    int errors = 0;
    *t = (struct transfer){.t0 = 0};
    find_rates(t, points, count);
    gather(t, points, count);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        fit_slot(&t->slots[slot], t->mean);
        squares += t->slots[slot].squares;
        errors += t->slots[slot].errors;
    }
    t->scale = errors > 0 ? squares / errors : 1;
    return t;
}

void transfer_free(struct transfer *t)
{
    for (int slot = 0; t != NULL && slot < SLOT_COUNT; slot++) {
        struct known_slot *s = &t->slots[slot];
        free(s->x);
        free(s->r);
        free(s->weight);
        free(s->factor);
    }
    free(t);
}

/* ---- what it says ---------------------------------------------------------------------------- */

static double scale_of(const struct transfer *t, const struct known_slot *s)
{
    double mean = (s->squares + errors_of_all * t->scale) / (s->errors + errors_of_all);
    return fmax(sqrt(mean), least_scale);
}

struct transferred transfer_predict(const struct transfer *t, const struct transfer_point *asked)
{
    const struct known_slot *s = &t->slots[asked->slot];
    double x[TRANSFER_SIZES], r = t->mean, variance = noise * noise;
    if (s->count == 0)
        return (struct transferred){NAN, NAN};
    double *to = mem_alloc((size_t)s->count, sizeof(*to));
    logs_of(asked, x);
    for (int i = 0; i < s->count; i++) {
        to[i] = covariance(s, x, s->x[i]);
        r += to[i] * s->weight[i];
    }
    solve_lower(s->factor, s->count, to);
    variance += covariance(s, x, x);
    for (int i = 0; i < s->count; i++)
        variance -= to[i] * to[i];
    free(to);
    return (struct transferred){exp(log_roofline(t, asked) + r),
                                scale_of(t, s) * sqrt(fmax(variance, noise * noise))};
}
