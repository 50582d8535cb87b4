/* Strategies on a recorded space.  Searches are shared out to threads; each has its own history and
 * draws, so the rows do not depend on how many threads there are. */
#include "search/space.h"
#include "search/strategy_int.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum { FIRST_BUDGET = 8 };

static_assert(PLAN_SPACE < FIRST_BUDGET << (REPLAY_ROWS - 1), "room for each budget");

/* What one search gave. */
struct run {
    double regret[REPLAY_ROWS]; /* of the plan that it would choose after so many plans */
    double plans_to_1pct;       /* infinite if the budget is too small */
};

struct replay {
    const struct recorded_space *space;
    const struct replay_options *o;
    double best_ms;
    int budgets[REPLAY_ROWS], budget_count;
    struct run *runs; /* (strategies x seeds) */
    pthread_t caller;
    atomic_int next, done; /* of the runs */
    atomic_bool failed;
    struct status failure; /* of the first run that failed */
};

/* ---- the space, with noise ------------------------------------------------------------------- */

struct noisy {
    struct replay *r;
    struct evaluator exact; /* the space as it was recorded */
    uint64_t seed;
    struct segment_times segments;
    struct history true_times; /* of the plans measured, without noise */
};

/* A factor of noise: the same for the same thing and seed, whatever was measured before. */
static double factor(double noise, uint64_t seed, uint64_t what)
{
    struct rng r = {splitmix64(seed * 0x10001 + what)};
    return noise > 0 ? fmax(0.05, 1 + noise * rng_normal(&r)) : 1;
}

static int measure(void *ctx, struct plan p, struct outcome *out, struct status *st)
{
    struct noisy *n = ctx;
    if (n->exact.measure(n->exact.ctx, p, out, st) != 0)
        return -1;
    history_add(&n->true_times, p, *out);
    out->ms *= factor(n->r->o->plan_noise, n->seed, SLOT_COUNT + plan_key(p));
    out->noise = hypot(out->noise, n->r->o->plan_noise);
    return 0;
}

static const struct segment_times *segments(void *ctx)
{
    const struct noisy *n = ctx;
    return n->r->o->no_segment_times ? NULL : &n->segments;
}

static bool fails(void *ctx, struct plan p)
{
    const struct noisy *n = ctx;
    return n->exact.fails(n->exact.ctx, p);
}

/* ---- one search ------------------------------------------------------------------------------ */

static int search(struct noisy *n, const struct strategy *strategy, struct history *h,
                  struct status *st)
{
    const struct replay_options *o = n->r->o;
    const struct evaluator e = {
        .measure = measure, .segments = segments, .fails = fails, .now = n->exact.now, .ctx = n};
    struct search_result found;
    struct search_options s = {.strategy = strategy,
                               .budget = o->budget,
                               .endless = true,
                               .seed = n->seed,
                               .quantile = 0.1};
    for (int i = 0; i < o->baselines.count; i++) {
        s.space_lo = s.space_hi = plan_value(o->baselines.plans[i]);
        if (n->r->space->at[plan_key(o->baselines.plans[i])] >= 0 &&
            search_loop(&s, &e, h, NULL, NULL, &found, st) != 0)
            return -1;
    }
    s.space_lo = n->r->space->lo;
    s.space_hi = n->r->space->hi;
    return search_loop(&s, &e, h, NULL, NULL, &found, st);
}

/* The recorded time of the fastest of the finalists after so many plans; infinite if none ran. */
static double chosen_ms(struct noisy *n, const struct history *h, int count)
{
    const struct history part = {.items = h->items, .count = count < h->count ? count : h->count};
    struct finalist finalists[FINALISTS_MOST];
    double ms = INFINITY;
    int ran = finalists_of(&part, segments(n), finalists);
    for (int i = 0; i < ran; i++)
        ms = fmin(ms, n->true_times.items[finalists[i].index].outcome.ms);
    return ms;
}

static void judge(struct noisy *n, const struct history *h, struct run *out)
{
    const struct replay *r = n->r;
    double fastest = INFINITY;
    out->plans_to_1pct = INFINITY;
    for (int count = 1, row = 0; row < r->budget_count; count++) {
        if (count <= h->count && n->true_times.items[count - 1].outcome.status == TRIAL_OK)
            fastest = fmin(fastest, n->true_times.items[count - 1].outcome.ms);
        if (fastest <= 1.01 * r->best_ms)
            out->plans_to_1pct = fmin(out->plans_to_1pct, count);
        if (count == r->budgets[row]) {
            double chosen = r->o->plan_noise > 0 ? chosen_ms(n, h, count) : fastest;
            out->regret[row++] = fmax(0, chosen / r->best_ms - 1);
        }
    }
}

static int run(struct replay *r, int index, struct status *st)
{
    struct noisy n = {.r = r,
                      .exact = recorded_space_evaluator(r->space),
                      .seed = (uint64_t)(index % r->o->seeds) + 1};
    SCOPED_BY(history_release) struct history h = {.count = 0};
    for (int i = 0; i < SLOT_COUNT; i++)
        n.segments.ms[i] =
            r->space->segments.ms[i] * factor(r->o->segment_noise, n.seed, (uint64_t)i);
    int result = search(&n, r->o->strategies[index / r->o->seeds], &h, st);
    if (result == 0)
        judge(&n, &h, &r->runs[index]);
    history_release(&n.true_times);
    return result;
}

/* ---- all searches ---------------------------------------------------------------------------- */

/* Runs searches until none is left or one failed. */
static void *work(void *ctx)
{
    struct replay *r = ctx;
    int total = r->o->strategy_count * r->o->seeds, index;
    while (!r->failed && (index = r->next++) < total) {
        struct status st = STATUS_INIT;
        if (r->o->stop != NULL && *r->o->stop != 0)
            status_set(&st, STATUS_INTERRUPTED, "interrupted");
        else
            run(r, index, &st);
        if (st.code != STATUS_OK && !atomic_exchange(&r->failed, true))
            r->failure = st;
        int done = ++r->done;
        if (r->o->step != NULL && pthread_equal(pthread_self(), r->caller) != 0)
            r->o->step(r->o->ctx, done, total);
    }
    return NULL;
}

/* On each core a thread, of which this is one. */
static void run_all(struct replay *r)
{
    int others = cpu_threads() - 1, started = 0;
    SCOPED pthread_t *thread = mem_alloc((size_t)others + 1, sizeof(*thread));
    r->caller = pthread_self();
    while (started < others && pthread_create(&thread[started], NULL, work, r) == 0)
        started++;
    work(r);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}

/* ---- the rows -------------------------------------------------------------------------------- */

static double *column(const struct run *runs, int seeds, size_t offset)
{
    double *out = mem_alloc((size_t)seeds, sizeof(*out));
    for (int i = 0; i < seeds; i++)
        memcpy(&out[i], (const char *)&runs[i] + offset, sizeof(*out));
    return out;
}

static double mean(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum / n;
}

/* The median over the seeds, the larger of two; NaN if it is beyond the budget. */
static double median_to_1pct(const struct run *runs, int seeds, int budget)
{
    SCOPED double *x = column(runs, seeds, offsetof(struct run, plans_to_1pct));
    qsort(x, (size_t)seeds, sizeof(*x), stats_order);
    return x[seeds / 2] <= budget ? x[seeds / 2] : NAN;
}

static struct replay_row row_of(const struct replay *r, int strategy, int at)
{
    int seeds = r->o->seeds, budget = r->budgets[at];
    const struct run *runs = r->runs + (size_t)strategy * (size_t)seeds;
    size_t skip = (size_t)at * sizeof(double);
    SCOPED double *regret = column(runs, seeds, offsetof(struct run, regret) + skip);
    struct replay_row out = {.strategy = r->o->strategies[strategy],
                             .budget = budget,
                             .seeds = seeds,
                             .regret_mean = mean(regret, seeds),
                             .regret_median = stats_quantile(regret, (size_t)seeds, 0.5),
                             .regret_p95 = stats_quantile(regret, (size_t)seeds, 0.95),
                             .plans_to_1pct = median_to_1pct(runs, seeds, budget)};
    return out;
}

int replay_check(const struct recorded_space *s, const struct replay_options *o, struct status *st)
{
    int ran = 0;
    for (int i = 0; i < s->count; i++)
        ran += !recorded_space_fails(s, s->plans[i]);
    if (o->budget > ran)
        return status_set(st, STATUS_USAGE,
                          "a budget of %d plans is more than the %d plans recorded that can run; "
                          "give at most %d",
                          o->budget, ran, ran);
    return 0;
}

int replay(const struct recorded_space *s, const struct replay_options *o, struct replay_row *rows,
           int *count, struct status *st)
{
    struct replay r = {
        .space = s, .o = o, .best_ms = s->outcomes[s->best].ms, .failure = STATUS_INIT};
    *count = 0;
    for (int budget = FIRST_BUDGET; budget < o->budget; budget *= 2)
        r.budgets[r.budget_count++] = budget;
    r.budgets[r.budget_count++] = o->budget;
    r.runs = mem_alloc((size_t)o->strategy_count * (size_t)o->seeds, sizeof(*r.runs));
    run_all(&r);
    *st = r.failure;
    for (int k = 0; k < o->strategy_count && st->code == STATUS_OK; k++)
        for (int at = 0; at < r.budget_count; at++)
            rows[(*count)++] = row_of(&r, k, at);
    free(r.runs);
    return st->code == STATUS_OK ? 0 : -1;
}
