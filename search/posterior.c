/* What the plans measured so far say of all plans: the linear posterior over segments, and of a
 * plan's own time. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>

/* The bound of a censored plan says something only where the plan is expected to be faster. */
static bool says_something(const struct observation *o, const struct segment_times *expected)
{
    return o->outcome.status == TRIAL_OK ||
           (o->outcome.status == TRIAL_CENSORED && expected != NULL &&
            additive_ms(expected, o->plan) < o->outcome.ms);
}

static struct gaussian *fit(const struct history *h, const struct segment_times *alone,
                            const struct segment_times *expected)
{
    struct plan *plans = mem_alloc((size_t)h->count + 1, sizeof(*plans));
    double *ms = mem_alloc((size_t)h->count + 1, sizeof(*ms));
    double *noise = mem_alloc((size_t)h->count + 1, sizeof(*noise));
    struct gaussian_data d = {.plans = plans, .ms = ms, .noise = noise};
    for (int i = 0; i < h->count; i++)
        if (says_something(&h->items[i], expected)) {
            plans[d.count] = h->items[i].plan;
            ms[d.count] = h->items[i].outcome.ms;
            noise[d.count++] = h->items[i].outcome.noise;
        }
    struct gaussian *out = gaussian_fit(&d, alone);
    free(plans);
    free(ms);
    free(noise);
    return out;
}

struct gaussian *posterior_of(const struct history *h, const struct segment_times *alone)
{
    struct gaussian *g = fit(h, alone, NULL);
    struct segment_times expected;
    bool more = false;
    gaussian_times(g, &expected);
    for (int i = 0; i < h->count && !more; i++)
        more =
            h->items[i].outcome.status == TRIAL_CENSORED && says_something(&h->items[i], &expected);
    if (!more)
        return g;
    gaussian_free(g);
    return fit(h, alone, &expected);
}

struct own_time own_time_of(const struct gaussian *g, const struct segment_times *expected,
                            const struct observation *o)
{
    double sum = additive_ms(expected, o->plan), sum_sd = gaussian_sd(g, o->plan);
    double misfit = gaussian_misfit(g) * sum, noise = o->outcome.noise * o->outcome.ms;
    double share = misfit * misfit / (misfit * misfit + noise * noise);
    return (struct own_time){.ms = sum + share * (o->outcome.ms - sum),
                             .sd = hypot(sqrt(share) * noise, (1 - share) * sum_sd)};
}

static int by_own(const void *a, const void *b)
{
    const struct finalist *x = a, *y = b;
    return (x->own.ms > y->own.ms) - (x->own.ms < y->own.ms);
}

/* How sure it must be that a plan is slower than the most promising one for it to be no finalist,
 * in standard deviations of the difference. */
static const double beaten_by = 2;

static bool may_win(const struct finalist *first, const struct finalist *other)
{
    return other->own.ms - first->own.ms <= beaten_by * hypot(first->own.sd, other->own.sd);
}

int finalists_of(const struct history *h, const struct segment_times *alone,
                 struct finalist out[FINALISTS_MOST])
{
    struct finalist *all = mem_alloc((size_t)h->count + 1, sizeof(*all));
    struct segment_times expected;
    struct gaussian *g = posterior_of(h, alone);
    int ran = 0, count = 0;
    gaussian_times(g, &expected);
    for (int i = 0; i < h->count; i++)
        if (h->items[i].outcome.status == TRIAL_OK)
            all[ran++] = (struct finalist){i, own_time_of(g, &expected, &h->items[i])};
    qsort(all, (size_t)ran, sizeof(*all), by_own);
    while (count < ran && count < FINALISTS_MOST &&
           (count < FINALISTS_LEAST || may_win(&all[0], &all[count]))) {
        out[count] = all[count];
        count++;
    }
    gaussian_free(g);
    free(all);
    return count;
}

double sum_spearman(const struct history *h, const struct segment_times *alone)
{
    double *said = mem_alloc((size_t)h->count + 1, sizeof(*said));
    double *measured = mem_alloc((size_t)h->count + 1, sizeof(*measured));
    struct observation *kept = mem_alloc((size_t)h->count + 1, sizeof(*kept));
    size_t n = 0;
    for (int fold = 0; fold < FOLDS; fold++) {
        struct history part = {.items = kept};
        struct segment_times expected;
        for (int i = 0; i < h->count; i++)
            if (i % FOLDS != fold)
                kept[part.count++] = h->items[i];
        struct gaussian *g = posterior_of(&part, alone);
        gaussian_times(g, &expected);
        gaussian_free(g);
        for (int i = fold; i < h->count; i += FOLDS)
            if (h->items[i].outcome.status == TRIAL_OK) {
                said[n] = additive_ms(&expected, h->items[i].plan);
                measured[n++] = h->items[i].outcome.ms;
            }
    }
    double out = n >= JUDGED_LEAST ? stats_spearman(said, measured, n) : NAN;
    free(said);
    free(measured);
    free(kept);
    return out;
}
