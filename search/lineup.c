/* Who stands side by side, and for how long. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An interval needs 6 samples; verifying and warming up take about as long as another few. */
enum { SAMPLES_LEAST = 6, SAMPLES_BEFORE = 8 };

/* The baselines and the plan of the smallest sum stand beside the fastest. */
enum { BESIDE_MAX = BASELINES_MAX + 1 };

static int by_ms(const void *a, const void *b)
{
    const struct observation *x = a, *y = b;
    double xs = x->outcome.ms, ys = y->outcome.ms;
    return xs != ys ? (xs > ys) - (xs < ys) : (int)plan_value(x->plan) - (int)plan_value(y->plan);
}

/* The plans that ran, fastest first; returns how many.  out holds h->count. */
static int rank(const struct history *h, struct observation *out)
{
    int count = 0;
    for (int i = 0; i < h->count; i++)
        if (h->items[i].outcome.status == TRIAL_OK)
            out[count++] = h->items[i];
    qsort(out, (size_t)count, sizeof(*out), by_ms);
    return count;
}

static const struct observation *find(const struct observation *items, int count, struct plan p)
{
    for (int i = 0; i < count; i++)
        if (plan_equal(items[i].plan, p))
            return &items[i];
    return NULL;
}

const struct observation *baseline_known(const struct tuner *t, struct plan p)
{
    const struct observation *known = find(t->history.items, t->history.count, p);
    return known != NULL && known->outcome.status != TRIAL_FAILED ? known : NULL;
}

/* The `fastest` first of the ranked, behind them the baselines, given up earlier or not, and the
 * plan of the smallest sum; out holds BESIDE_MAX more.  Only plans that ran before: a comparison
 * adds certainty, never a plan to the count. */
static int choose(const struct tuner *t, const struct observation *ranked, int fastest,
                  struct observation *out)
{
    int count = fastest;
    memcpy(out, ranked, (size_t)fastest * sizeof(*out));
    const struct baselines *baselines = &t->o->baselines;
    for (int i = 0; i < baselines->count; i++) {
        const struct observation *known = baseline_known(t, baselines->plans[i]);
        if (known != NULL && find(out, count, known->plan) == NULL)
            out[count++] = *known;
    }
    int additive = additive_best(t->space, t->space_count, &t->segments.times);
    const struct observation *known =
        additive < 0 ? NULL : find(t->history.items, t->history.count, t->space[additive]);
    if (known != NULL && known->outcome.status == TRIAL_OK && find(out, count, known->plan) == NULL)
        out[count++] = *known;
    return count;
}

/* Seconds of one sample of each. */
static double round_seconds(const struct observation *items, int count)
{
    double ms = 0;
    for (int i = 0; i < count; i++)
        ms += items[i].outcome.ms;
    return ms / 1000;
}

/* Half as much again: plans before them run late, and they do themselves. */
#define LATE 1.5

double least_finals_seconds(const struct tuner *t)
{
    struct observation items[1 + BESIDE_MAX];
    int best = history_best(&t->history);
    if (best < 0)
        return 0;
    int count = choose(t, &t->history.items[best], 1, items);
    return LATE * (SAMPLES_BEFORE + SAMPLES_LEAST) * round_seconds(items, count);
}

static double seconds_left(const struct tuner *t, const struct contest *contest)
{
    return contest->share * (t->end - learn_seconds(t) - t->clock() - t->verify_s);
}

struct lineup lineup_in_time(const struct tuner *t, const struct history *from,
                             const struct contest *contest)
{
    struct lineup out = {.how = contest->how};
    struct observation *ranked = mem_alloc((size_t)from->count + 1, sizeof(*ranked));
    int ran = rank(from, ranked);
    int most = ran < contest->fastest ? ran : contest->fastest, fastest = most + 1;
    double left = seconds_left(t, contest), rounds = 0, round_s = 0;
    out.items = mem_alloc((size_t)most + BESIDE_MAX, sizeof(*out.items));
    while (rounds < SAMPLES_LEAST && --fastest > 0) {
        out.count = choose(t, ranked, fastest, out.items);
        round_s = round_seconds(out.items, out.count);
        rounds = left / round_s - SAMPLES_BEFORE;
    }
    free(ranked);
    out.cut_short = fastest < most;
    if (rounds < SAMPLES_LEAST) {
        out.count = 0;
        return out;
    }
    struct sampling *how = &out.how;
    if (rounds < how->min_samples)
        how->min_samples = (int)rounds;
    how->max_seconds = fmin(how->max_seconds, rounds * round_s / out.count);
    how->min_seconds = fmin(how->min_seconds, how->max_seconds);
    return out;
}

void lineup_release(struct lineup *l)
{
    free(l->items);
    *l = (struct lineup){.items = NULL};
}
