/* Plans of known workloads, for one that was never measured.
 *
 * A plan takes longer than the sum of its segments timed alone: a launch ends before the next one
 * begins, and a segment finds less in the cache.  So a plan is expected to take
 *     factor * sum + gap * launches
 * a layer, with the factor and the gap that fit the measured plans of all known workloads best.  A
 * plan that took q times this in its workload is expected to take q times this here. */
#include "search/estimate_int.h"

#include <math.h>
#include <stdlib.h>

/* So many of the nearest workloads lend their plans, the fastest so many of each. */
enum { LENDING = 6, LENT = 16 };

/* How far q spreads over workloads, where few tell, and at least. */
static const double usual_spread = 0.05, least_spread = 0.005;
enum { SPREAD_LEAST = 3 };

/* Standard deviations before any plan is known: of the factor, and of the gap as a share of the
 * usual launch. */
static const double factor_sd = 0.15, gap_sd = 0.5;

/* ---- what plans take ------------------------------------------------------------------------- */

/* A plan in a known workload: one layer, in us. */
struct measured {
    double us, sum; /* NaN where the plan failed, or a segment is unknown */
    int launches;
    unsigned key;
};

static struct measured measured_of(const struct known_workload *w, const struct observation *o)
{
    int slots[OP_COUNT];
    struct measured m = {
        .us = NAN, .launches = plan_slots(o->plan, slots), .key = plan_key(o->plan)};
    for (int i = 0; i < m.launches; i++)
        m.sum += w->slots[slots[i]].impl != NULL ? w->slots[slots[i]].us.median : NAN;
    if (o->outcome.status == TRIAL_OK && !isnan(m.sum))
        m.us = 1e3 * o->outcome.ms / w->workload.layers;
    return m;
}

/* All whose times are known; free() them. */
static struct measured *all_measured(const struct view *v, int *count)
{
    struct measured *out = NULL;
    *count = 0;
    for (int i = 0; i < v->k->count; i++) {
        const struct known_workload *w = &v->k->items[i];
        out = mem_resize(out, (size_t)(*count + w->plans.count) + 1, sizeof(*out));
        for (int p = 0; p < w->plans.count && is_seen(v, i); p++) {
            out[*count] = measured_of(w, &w->plans.items[p]);
            *count += !isnan(out[*count].us);
        }
    }
    return out;
}

struct law {
    double factor, gap_us;
};

static double law_us(const struct law *l, double sum, int launches)
{
    return l->factor * sum + l->gap_us * launches;
}

/* Ridge regression of what plans take beside their sums, in shares of their times. */
static struct law fit_law(const struct measured *m, int count)
{
    double us = 0, launches = 0;
    for (int i = 0; i < count; i++) {
        us += m[i].us;
        launches += m[i].launches;
    }
    double usual = launches > 0 ? us / launches : 1; /* us a launch: the unit of the gap */
    double ff = pow(usual_spread / factor_sd, 2), gg = pow(usual_spread / gap_sd, 2);
    double fg = 0, f = 0, g = 0;
    for (int i = 0; i < count; i++) {
        double x = m[i].sum / m[i].us, y = m[i].launches * usual / m[i].us;
        ff += x * x;
        fg += x * y;
        gg += y * y;
        f += x * (1 - x);
        g += y * (1 - x);
    }
    double d = ff * gg - fg * fg;
    return (struct law){1 + (f * gg - g * fg) / d, usual * (g * ff - f * fg) / d};
}

/* How far the logarithms of a plan's times over the law's spread over workloads. */
static double spread_of(const struct law *l, const struct measured *m, int count)
{
    struct sums {
        double sum, square;
        int count;
    } *of = mem_alloc(PLAN_KEYS, sizeof(*of));
    double squares = 0;
    int freedom = 0;
    for (int i = 0; i < count; i++) {
        struct sums *s = &of[m[i].key];
        double r = log(m[i].us / law_us(l, m[i].sum, m[i].launches));
        s->sum += r;
        s->square += r * r;
        s->count++;
    }
    for (int key = 0; key < PLAN_KEYS; key++)
        if (of[key].count > 1) {
            squares += of[key].square - of[key].sum * of[key].sum / of[key].count;
            freedom += of[key].count - 1;
        }
    free(of);
    return freedom < SPREAD_LEAST ? usual_spread
                                  : fmax(sqrt(fmax(squares, 0) / freedom), least_spread);
}

/* ---- lending --------------------------------------------------------------------------------- */

struct lending {
    const struct segment_times *here;
    int layers;
    struct law law;
    double spread;
};

/* Of a known workload. */
static void lend(const struct lending *l, const struct known_workload *from, struct history *out)
{
    const struct history *h = &from->plans;
    struct ranked *order = mem_alloc((size_t)h->count + 1, sizeof(*order));
    int count = 0;
    for (int i = 0; i < h->count; i++)
        if (!isnan(measured_of(from, &h->items[i]).us) &&
            !isnan(additive_ms(l->here, h->items[i].plan)))
            order[count++] = (struct ranked){i, h->items[i].outcome.ms};
    qsort(order, (size_t)count, sizeof(*order), by_key);
    for (int i = 0; i < count && i < LENT; i++) {
        const struct observation *o = &h->items[order[i].index];
        struct measured m = measured_of(from, o);
        double sum = 1e3 * additive_ms(l->here, o->plan) / l->layers;
        double q = m.us / law_us(&l->law, m.sum, m.launches);
        history_add(out, o->plan,
                    (struct outcome){.status = TRIAL_OK,
                                     .ms = 1e-3 * l->layers * q * law_us(&l->law, sum, m.launches),
                                     .noise = l->spread});
    }
    free(order);
}

void lend_plans(const struct view *v, const struct segment_times *here, struct history *out)
{
    struct ranked *order = mem_alloc((size_t)v->k->count + 1, sizeof(*order));
    struct lending l = {.here = here, .layers = estimated(v)->layers};
    int workloads = nearest_first(v, order), count;
    struct measured *all = all_measured(v, &count);
    l.law = fit_law(all, count);
    l.spread = spread_of(&l.law, all, count);
    for (int i = 0; i < workloads && i < LENDING; i++)
        lend(&l, &v->k->items[order[i].index], out);
    free(all);
    free(order);
}
