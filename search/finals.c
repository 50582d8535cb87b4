#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An interval needs 6 samples; verifying and warming up take about as long as another few. */
enum { SAMPLES_LEAST = 6, SAMPLES_BEFORE = 8 };

/* The unfused plan, 41115 and the plan of the smallest sum stand beside the fastest. */
enum { REFERENCES = 3 };

/* A comparison side by side. */
struct contest {
    const char *name;
    int fastest; /* how many of the fastest plans, the references apart */
    struct sampling how;
    double share;     /* of the time left */
    const char *mark; /* tells its rows from those of the search's other comparisons */
};

/* Of a whole space the 256 fastest: far more than noise and the layers left out of the search can
 * have put before the best one.  Of 9 samples the 95 % interval leaves out one on each side. */
static const struct contest refining = {
    "plans", 256, {.min_samples = 9, .max_samples = 9, .all_layers = true}, 0.7, " refined"};

static struct contest finals(void)
{
    return (struct contest){"finalists", 4, sampling_final, 1, ""};
}

void expect_verification(struct tuner *t, const struct trial *trial)
{
    int others = bench_workload(t->bench)->layers - 1;
    if (trial->status != TRIAL_FAILED)
        t->verify_s = fmax(t->verify_s, others * trial->verify_s);
}

static int by_ms(const void *a, const void *b)
{
    const struct observation *x = a, *y = b;
    double xs = x->outcome.ms, ys = y->outcome.ms;
    return xs != ys ? (xs > ys) - (xs < ys) : (x->value > y->value) - (x->value < y->value);
}

/* The plans that ran, fastest first; returns how many.  out holds h->count. */
static int rank(const struct history *h, struct observation *out)
{
    int count = 0;
    for (int i = 0; i < h->count; i++)
        if (h->items[i].outcome.status == OUTCOME_OK)
            out[count++] = h->items[i];
    qsort(out, (size_t)count, sizeof(*out), by_ms);
    return count;
}

static const struct observation *find(const struct observation *items, int count, int value)
{
    for (int i = 0; i < count; i++)
        if ((int)items[i].value == value && items[i].outcome.status == OUTCOME_OK)
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
    const int others[REFERENCES] = {VALUE_UNFUSED, VALUE_FIRST_VERSION,
                                    additive_best(t->space, t->space_count, &t->segments.times)};
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

/* As many of the fastest as the time left allows, and the sampling that it allows them; 0 where it
 * allows none. */
static int choose_in_time(const struct tuner *t, const struct history *from,
                          const struct contest *contest, double left, struct observation *out,
                          struct sampling *how)
{
    struct observation *ranked = mem_alloc((size_t)from->count + 1, sizeof(*ranked));
    int ran = rank(from, ranked), count = 0;
    int fastest = ran < contest->fastest ? ran : contest->fastest;
    double rounds = 0, round_s = 0;
    for (; fastest > 0 && rounds < SAMPLES_LEAST; fastest--) {
        count = choose(t, ranked, fastest, out);
        round_s = round_seconds(out, count);
        rounds = left / round_s - SAMPLES_BEFORE;
    }
    free(ranked);
    if (rounds < SAMPLES_LEAST)
        return 0;
    *how = contest->how;
    if (rounds < how->min_samples)
        how->min_samples = (int)rounds;
    how->max_seconds = fmin(how->max_seconds, rounds * round_s / count);
    how->min_seconds = fmin(how->min_seconds, how->max_seconds);
    return count;
}

/* The candidates whose segments run, as far as is known now; returns how many. */
static int runnable(const struct tuner *t, const struct observation *items, int count,
                    struct candidate *out)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        struct status fails = STATUS_INIT;
        if (segment_table_candidate(&t->segments, plan_from_value(items[i].value), &out[kept],
                                    &fails) == 0)
            kept++;
        else
            tuner_say(t, "%u is left out of the finals: %s", items[i].value, fails.message);
    }
    return kept;
}

static int store(struct tuner *t, const struct contest *contest, const struct candidate *candidates,
                 const struct trial *trials, int count, struct status *st)
{
    struct buf comparison;
    buf_init(&comparison);
    buf_addf(&comparison, "%s%s", t->search_id, contest->mark);
    int rc = comparison_store(t->db, t->study, candidates, trials, count, comparison.ptr,
                              t->search_id, st);
    buf_release(&comparison);
    return rc;
}

/* Times them interleaved and stores the trials; what ran is added to out, which may be null. */
static int compare(struct tuner *t, const struct contest *contest, const struct observation *items,
                   int count, const struct sampling *how, struct history *out, struct status *st)
{
    struct candidate *candidates = mem_alloc((size_t)count + 1, sizeof(*candidates));
    struct trial *trials = mem_alloc((size_t)count + 1, sizeof(*trials));
    int kept = runnable(t, items, count, candidates);
    int rc = kept > 0 ? bench_compare(t->bench, candidates, kept, how, trials, st) : 0;
    if (rc == 0)
        rc = store(t, contest, candidates, trials, kept, st);
    for (int i = 0; i < kept; i++) {
        if (rc == 0 && out && trials[i].status == TRIAL_OK)
            history_add(out, plan_value(candidates[i].plan),
                        (struct outcome){OUTCOME_OK, trials[i].ms.median});
        trial_release(&trials[i]);
    }
    free(trials);
    free(candidates);
    return rc;
}

static int hold(struct tuner *t, const struct contest *contest, const struct history *from,
                struct history *out, struct status *st)
{
    struct sampling how;
    double end = t->end - learn_seconds(t);
    double left = contest->share * (end - clock_seconds() - t->verify_s);
    if (history_best(from) < 0)
        return 0;
    struct observation *items = mem_alloc((size_t)contest->fastest + REFERENCES, sizeof(*items));
    int count = choose_in_time(t, from, contest, left, items, &how), rc = 0;
    if (count > 0) {
        tuner_say(t, "timing %d %s side by side", count, contest->name);
        rc = compare(t, contest, items, count, &how, out, st);
        t->verify_s = 0; /* the oracle's layers stay */
    } else {
        tuner_say(t, "no time is left to compare %s; a later search makes up for it",
                  contest->name);
    }
    free(items);
    return rc;
}

struct refined {
    const char *comparison;
    struct history *out;
};

static int refined_row(void *ctx, const struct db_trial *row)
{
    const struct refined *r = ctx;
    if (strcmp(row->comparison, r->comparison) == 0 && strcmp(row->status, "ok") == 0)
        history_add(r->out, (unsigned)row->value, (struct outcome){OUTCOME_OK, row->median_ms});
    return 0;
}

static bool refines(const char *comparison)
{
    size_t len = strlen(comparison), mark = strlen(refining.mark);
    return len > mark && strcmp(comparison + len - mark, refining.mark) == 0;
}

/* Adds what is needed before the finals: what an interrupted search compared last, or what is
 * compared now. */
static int refine(struct tuner *t, const char *compared, struct history *out, struct status *st)
{
    struct refined r = {compared, out};
    if (refines(compared))
        return db_trial_times(t->db, t->study, DB_TRIAL_FINAL, refined_row, &r, st);
    if (t->o->rigor == RIGOR_EXHAUSTIVE)
        return hold(t, &refining, &t->history, out, st);
    return 0;
}

/* The comparison since which nothing was measured, empty where there is none; *held: it was that of
 * the finalists. */
static int read_compared(struct tuner *t, struct buf *out, bool *held, struct status *st)
{
    int rc = db_compared(t->db, t->study, out, st);
    *held = out->len > 0 && !refines(out->ptr);
    return rc;
}

int finals_held(struct tuner *t, bool *out, struct status *st)
{
    struct buf compared;
    buf_init(&compared);
    int rc = read_compared(t, &compared, out, st);
    buf_release(&compared);
    return rc;
}

int measure_finals(struct tuner *t, struct status *st)
{
    struct history refined = {.count = 0};
    struct contest last = finals();
    struct buf compared;
    bool held;
    buf_init(&compared);
    int rc = read_compared(t, &compared, &held, st);
    if (rc < 0 || held)
        goto out;
    rc = refine(t, compared.ptr, &refined, st);
    bool refining_left_out = t->o->rigor == RIGOR_EXHAUSTIVE && refined.count == 0;
    if (rc == 0 && !refining_left_out) /* else both are made up for */
        rc = hold(t, &last, refined.count > 0 ? &refined : &t->history, NULL, st);
out:
    history_release(&refined);
    buf_release(&compared);
    return rc;
}
