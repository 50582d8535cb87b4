/* The contenders of a comparison, and how long they are timed. */
#include "search/tuner_int.h"

/* Verifying and warming up take about as long as SAMPLES_BEFORE samples, and hardly less than
 * SAMPLES_LATEST. */
enum { SAMPLES_BEFORE = 8, SAMPLES_LATEST = 4 };

/* Beside the fastest contend the baselines and the plan of the smallest additive time. */
enum { BESIDE_MAX = BASELINES_MAX + 1 };

/* Writes the plans that ran, fastest first, at most h->count; returns how many.  Sorted by measured
 * times alone, noise would choose. */
static int rank(const struct tuner *t, const struct history *h, struct observation *out)
{
    int count;
    SCOPED struct finalist *all = own_times(h, &t->segments.times, &count);
    for (int i = 0; i < count; i++)
        out[i] = h->items[all[i].index];
    return count;
}

static bool has(const struct observation *items, int count, struct plan p)
{
    for (int i = 0; i < count; i++)
        if (plan_equal(items[i].plan, p))
            return true;
    return false;
}

/* Adds the baselines, censored or not, to the contenders; returns how many there are then.  Here
 * and below all were measured before, so that a comparison never adds a plan to the budget. */
static int add_baselines(const struct tuner *t, struct observation *out, int count)
{
    const struct baselines *baselines = &t->o->baselines;
    for (int i = 0; i < baselines->count; i++) {
        const struct observation *known = history_find(&t->history, baselines->plans[i]);
        if (known != NULL && !has(out, count, known->plan))
            out[count++] = *known;
    }
    return count;
}

/* Adds the plan of the smallest additive time; returns how many contenders there are then. */
static int add_additive(const struct tuner *t, struct observation *out, int count)
{
    int additive = additive_best(t->space, t->space_count, &t->segments.times);
    const struct observation *known =
        additive < 0 ? NULL : history_find(&t->history, t->space[additive]);
    if (known != NULL && known->outcome.status == TRIAL_OK && !has(out, count, known->plan))
        out[count++] = *known;
    return count;
}

/* What one sample of each takes now. */
static double round_seconds(const struct tuner *t, const struct observation *items, int count)
{
    double ms = 0;
    for (int i = 0; i < count; i++)
        ms += items[i].outcome.ms;
    return anchor_drift(t) * ms / 1000;
}

double least_finals_seconds(const struct tuner *t)
{
    struct observation items[2 + BASELINES_MAX];
    int best = history_best(&t->history);
    if (best < 0)
        return 0;
    /* The second one stands for the plan of the smallest additive time. */
    items[0] = items[1] = t->history.items[best];
    int count = add_baselines(t, items, 2);
    return (SAMPLES_BEFORE + SAMPLES_OF_AN_INTERVAL) * round_seconds(t, items, count) +
           bench_oracle_left_seconds(t->bench);
}

/* Writes the contenders, at most fastest + BESIDE_MAX: the first `fastest` of the ranked, the
 * baselines and the plan of the smallest additive time.  If `fastest` is 0, writes only the first
 * and the baselines.  Returns how many. */
static int choose(const struct tuner *t, const struct observation *ranked, int fastest,
                  struct observation *out)
{
    int first = fastest > 0 ? fastest : 1;
    memcpy(out, ranked, (size_t)first * sizeof(*out));
    int count = add_baselines(t, out, first);
    return fastest > 0 ? add_additive(t, out, count) : count;
}

struct lineup lineup_in_time(const struct tuner *t, const struct history *from,
                             const struct contest *contest)
{
    struct lineup out = {.how = contest->how};
    SCOPED struct observation *ranked = mem_alloc((size_t)from->count + 1, sizeof(*ranked));
    int ran = rank(t, from, ranked);
    int most = ran < contest->fastest ? ran : contest->fastest, fastest = most;
    double limit_s = contest->share * (t->end - t->clock());
    double round_s, left = limit_s - contest->share * bench_oracle_left_seconds(t->bench);
    out.items = mem_alloc((size_t)most + BESIDE_MAX, sizeof(*out.items));
    for (;; fastest--) {
        out.count = choose(t, ranked, fastest, out.items);
        round_s = round_seconds(t, out.items, out.count);
        if (fastest == 0 || left >= (SAMPLES_BEFORE + SAMPLES_OF_AN_INTERVAL) * round_s)
            break;
    }
    out.cut_short = fastest < most;
    out.fastest = fastest > 0 ? fastest : 1;
    if (left < (SAMPLES_LATEST + SAMPLES_OF_AN_INTERVAL) * round_s) {
        out.count = out.fastest = 0;
        return out;
    }
    struct sampling *how = &out.how;
    double rounds = fmax(left / round_s - SAMPLES_BEFORE, SAMPLES_OF_AN_INTERVAL);
    how->min_samples = (int)fmin(how->min_samples, rounds);
    how->max_seconds = fmin(how->max_seconds, rounds * round_s / out.count);
    how->min_seconds = fmin(how->min_seconds, how->max_seconds);
    how->limit_s = isinf(t->end) ? 0 : limit_s;
    return out;
}

void lineup_release(struct lineup *l)
{
    free(l->items);
    *l = (struct lineup){.items = NULL};
}
