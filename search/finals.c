#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>

/* How many of the fastest plans are timed again, the references apart. */
enum { FASTEST = 4, FINALISTS_MAX = FASTEST + 3 };

/* An interval needs 6 samples; verifying and warming up take about as long as another few. */
enum { SAMPLES_LEAST = 6, SAMPLES_BEFORE = 8 };

int additive_best(const struct tuner *t, const struct segment_times *times)
{
    int best = -1;
    double best_ms = INFINITY;
    for (int i = 0; i < t->space_count; i++) {
        double ms = additive_ms(times, plan_from_value(t->space[i]));
        if (ms < best_ms) {
            best = t->space[i];
            best_ms = ms;
        }
    }
    return best;
}

static bool has(const int *values, int count, int value)
{
    for (int i = 0; i < count; i++)
        if (values[i] == value)
            return true;
    return false;
}

/* NaN where it was not measured or did not run. */
static double known_ms(const struct history *h, int value)
{
    for (int i = 0; i < h->count; i++)
        if ((int)h->items[i].value == value && h->items[i].outcome.status == OUTCOME_OK)
            return h->items[i].outcome.ms;
    return NAN;
}

/* The index of the fastest plan that is not among values; -1 where none is left. */
static int fastest_but(const struct history *h, const int *values, int count)
{
    int best = -1;
    for (int i = 0; i < h->count; i++) {
        const struct observation *item = &h->items[i];
        if (item->outcome.status != OUTCOME_OK || has(values, count, (int)item->value))
            continue;
        if (best < 0 || item->outcome.ms < h->items[best].outcome.ms)
            best = i;
    }
    return best;
}

/* The `fastest` best plans and the references.  Only plans that ran before: a final adds certainty,
 * never a plan to the count. */
static int choose(const struct tuner *t, int fastest, int out[FINALISTS_MAX])
{
    int count = 0;
    for (int i; count < fastest && (i = fastest_but(&t->history, out, count)) >= 0;)
        out[count++] = (int)t->history.items[i].value;
    const int others[] = {VALUE_UNFUSED, VALUE_FIRST_VERSION, additive_best(t, &t->segments.times)};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (!isnan(known_ms(&t->history, others[i])) && !has(out, count, others[i]))
            out[count++] = others[i];
    return count;
}

/* Seconds of one sample of each. */
static double round_seconds(const struct tuner *t, const int *values, int count)
{
    double ms = 0;
    for (int i = 0; i < count; i++)
        ms += known_ms(&t->history, values[i]);
    return ms / 1000;
}

/* As many finalists as the time left allows, and the sampling that it allows them. */
static int choose_in_time(const struct tuner *t, double left, int out[FINALISTS_MAX],
                          struct sampling *how)
{
    int count = 0, fastest = FASTEST;
    double rounds = 0;
    for (; fastest > 0 && rounds < SAMPLES_LEAST; fastest--) {
        count = choose(t, fastest, out);
        rounds = left / round_seconds(t, out, count) - SAMPLES_BEFORE;
    }
    *how = sampling_final;
    if (rounds < how->min_samples)
        how->min_samples = rounds > SAMPLES_LEAST ? (int)rounds : SAMPLES_LEAST;
    how->max_seconds = fmin(how->max_seconds, left / (count > 0 ? count : 1));
    how->min_seconds = fmin(how->min_seconds, how->max_seconds);
    return count;
}

/* The finalists whose segments run, as far as is known now; returns how many. */
static int runnable(const struct tuner *t, const int *values, int count, struct candidate *out)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        struct status fails = STATUS_INIT;
        if (segment_table_candidate(&t->segments, plan_from_value((unsigned)values[i]), &out[kept],
                                    &fails) == 0)
            kept++;
        else
            tuner_say(t, "%d is left out of the finals: %s", values[i], fails.message);
    }
    return kept;
}

static int compare(struct tuner *t, const int *values, int count, const struct sampling *how,
                   struct status *st)
{
    struct candidate *candidates = mem_alloc((size_t)count, sizeof(*candidates));
    struct trial trials[FINALISTS_MAX] = {0};
    int kept = runnable(t, values, count, candidates);
    int rc = kept > 0 ? bench_compare(t->bench, candidates, kept, how, trials, st) : 0;
    if (rc == 0)
        rc = trials_store(t->db, t->study, DB_TRIAL_FINAL, candidates, trials, kept, t->search_id,
                          st);
    for (int i = 0; i < kept; i++)
        trial_release(&trials[i]);
    free(candidates);
    return rc;
}

int measure_finals(struct tuner *t, struct status *st)
{
    int values[FINALISTS_MAX];
    bool known;
    if (db_compared(t->db, t->study, &known, st) < 0)
        return -1;
    double left = t->end - clock_seconds();
    if (known || left <= 0)
        return 0;
    struct sampling how;
    int count = choose_in_time(t, left, values, &how);
    if (count == 0)
        return 0;
    tuner_say(t, "timing %d finalists side by side", count);
    return compare(t, values, count, &how, st);
}
