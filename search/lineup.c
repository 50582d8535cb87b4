/* The contenders of a comparison, and how long they are timed. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An interval needs 6 samples; verifying and warming up take about as long as 8 more. */
enum { SAMPLES_LEAST = 6, SAMPLES_BEFORE = 8 };

/* Beside the fastest contend the baselines and the plan of the smallest additive time. */
enum { BESIDE_MAX = BASELINES_MAX + 1 };

static int by_ms(const void *a, const void *b)
{
    const struct observation *x = a, *y = b;
    double xs = x->outcome.ms, ys = y->outcome.ms;
    return xs != ys ? (xs > ys) - (xs < ys) : (int)plan_value(x->plan) - (int)plan_value(y->plan);
}

/* Writes the plans that ran, fastest first, at most h->count; returns how many. */
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

/* Writes the contenders, at most fastest + BESIDE_MAX: the first `fastest` of the ranked, the
 * baselines, censored or not, and the plan of the smallest additive time.  All were measured
 * before, so that a comparison never adds a plan to the budget.  Returns how many. */
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

/* What one sample of each takes. */
static double round_seconds(const struct observation *items, int count)
{
    double ms = 0;
    for (int i = 0; i < count; i++)
        ms += items[i].outcome.ms;
    return ms / 1000;
}

/* The finals may begin late and take longer than estimated: keep half as much again. */
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
