/* Who stands side by side, and for how long. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An interval needs 6 samples; verifying and warming up take about as long as another few. */
enum { SAMPLES_LEAST = 6, SAMPLES_BEFORE = 8 };

/* The unfused plan, 41115 and the plan of the smallest sum stand beside the fastest. */
enum { REFERENCES = 3 };

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
        if (plan_equal(items[i].plan, p) && items[i].outcome.status == TRIAL_OK)
            return &items[i];
    return NULL;
}

/* The `fastest` first of the ranked and the references behind them; out holds REFERENCES more.
 * Only plans that ran before: a comparison adds certainty, never a plan to the count. */
static int choose(const struct tuner *t, const struct observation *ranked, int fastest,
                  struct observation *out)
{
    int count = fastest;
    memcpy(out, ranked, (size_t)fastest * sizeof(*out));
    int additive = additive_best(t->space, t->space_count, &t->segments.times);
    const struct plan others[REFERENCES] = {
        plan_from_value(VALUE_UNFUSED), plan_from_value(VALUE_FIRST_VERSION),
        additive >= 0 ? t->space[additive] : plan_from_value(VALUE_UNFUSED)};
    for (int i = 0; i < REFERENCES; i++) {
        const struct observation *known = find(t->history.items, t->history.count, others[i]);
        if (known && !find(out, count, others[i]))
            out[count++] = *known;
    }
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
    struct observation items[1 + REFERENCES];
    int best = history_best(&t->history);
    if (best < 0)
        return 0;
    int count = choose(t, &t->history.items[best], 1, items);
    return LATE * (SAMPLES_BEFORE + SAMPLES_LEAST) * round_seconds(items, count);
}

static double seconds_left(const struct tuner *t, const struct contest *contest)
{
    return contest->share * (t->end - learn_seconds(t) - clock_seconds() - t->verify_s);
}

struct lineup lineup_in_time(const struct tuner *t, const struct history *from,
                             const struct contest *contest)
{
    struct lineup out = {.how = contest->how};
    struct observation *ranked = mem_alloc((size_t)from->count + 1, sizeof(*ranked));
    int ran = rank(from, ranked);
    int most = ran < contest->fastest ? ran : contest->fastest, fastest = most + 1;
    double left = seconds_left(t, contest), rounds = 0, round_s = 0;
    out.items = mem_alloc((size_t)most + REFERENCES, sizeof(*out.items));
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
