/* What the plans measured so far say of all plans: the linear posterior over segments, and
 * plans' own times. */
#include "search/strategy_int.h"

/* The bound of a censored plan says something only where the plan is expected to be faster. */
static bool says_something(const struct observation *o, const struct segment_times *expected)
{
    return o->outcome.status == TRIAL_OK ||
           (o->outcome.status == TRIAL_CENSORED && expected != NULL &&
            additive_ms(expected, o->plan) < o->outcome.ms);
}

/* Of the plans of a history that say something. */
static struct gaussian *fit(const struct history *h, const struct segment_times *alone,
                            const struct segment_times *expected)
{
    SCOPED struct plan *plans = mem_alloc((size_t)h->count + 1, sizeof(*plans));
    SCOPED double *ms = mem_alloc((size_t)h->count + 1, sizeof(*ms));
    SCOPED double *noise = mem_alloc((size_t)h->count + 1, sizeof(*noise));
    struct gaussian_data d = {.plans = plans, .ms = ms, .noise = noise};
    for (int i = 0; i < h->count; i++)
        if (says_something(&h->items[i], expected)) {
            plans[d.count] = h->items[i].plan;
            ms[d.count] = h->items[i].outcome.ms;
            noise[d.count++] = h->items[i].outcome.noise;
        }
    return gaussian_fit(&d, alone);
}

struct gaussian *posterior_of(const struct history *h, const struct segment_times *alone)
{
    struct gaussian *g = fit(h, alone, NULL);
    struct segment_times expected;
    gaussian_times(g, &expected);
    for (int i = 0; i < h->count; i++)
        if (h->items[i].outcome.status == TRIAL_CENSORED &&
            says_something(&h->items[i], &expected)) {
            free(g);
            return fit(h, alone, &expected);
        }
    return g;
}

/* Two figures of a plan's time: measured, which has noise, and expected, the sum of its segments,
 * about which plans spread.  Their weights are how much each of the two is known to be off. */
static struct finalist own_time(int index, const struct observation *o, const struct gaussian *g,
                                const struct segment_times *expected)
{
    double sum = additive_ms(expected, o->plan), sd = gaussian_sd(g, o->plan);
    double misfit = gaussian_misfit(g) * sum, noise = o->outcome.noise * o->outcome.ms;
    double share = misfit * misfit / (misfit * misfit + noise * noise);
    return (struct finalist){.index = index,
                             .ms = sum + share * (o->outcome.ms - sum),
                             .sd = hypot(sqrt(share) * noise, (1 - share) * sd)};
}

static int by_own(const void *a, const void *b)
{
    const struct finalist *x = a, *y = b;
    return x->ms != y->ms ? (x->ms > y->ms) - (x->ms < y->ms) : x->index - y->index;
}

struct finalist *own_times(const struct history *h, const struct segment_times *alone, int *count)
{
    struct finalist *out = mem_alloc((size_t)h->count + 1, sizeof(*out));
    struct segment_times expected;
    SCOPED struct gaussian *g = posterior_of(h, alone);
    *count = 0;
    gaussian_times(g, &expected);
    for (int i = 0; i < h->count; i++)
        if (h->items[i].outcome.status == TRIAL_OK)
            out[(*count)++] = own_time(i, &h->items[i], g, &expected);
    qsort(out, (size_t)*count, sizeof(*out), by_own);
    return out;
}

/* How sure it must be that a plan is slower than the most promising one for it to be no finalist,
 * in standard deviations of the difference. */
static const double beaten_by = 2;

static bool may_win(const struct finalist *first, const struct finalist *other)
{
    return other->ms - first->ms <= beaten_by * hypot(first->sd, other->sd);
}

int finalists_of(const struct history *h, const struct segment_times *alone,
                 struct finalist out[FINALISTS_MOST])
{
    int ran, count = 0;
    SCOPED struct finalist *all = own_times(h, alone, &ran);
    while (count < ran && count < FINALISTS_MOST &&
           (count < FINALISTS_LEAST || may_win(&all[0], &all[count]))) {
        out[count] = all[count];
        count++;
    }
    return count;
}
