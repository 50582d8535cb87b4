#include "bench/worker/worker_int.h"

/* A time or a ratio is precise when half its interval's width is below this share of its median. */
#define ENOUGH 0.005

/* One that takes more than this many times the fastest one's time, for certain, needs no more than
 * the least samples.  A GPU's clock changes while the others go on, by less than this, so the order
 * of the medians is that of the ratios. */
#define FAR_SLOWER 1.25

/* A contender is given up when all its samples, at least this many, lie above the bound. */
enum { HOPELESS_SAMPLES = 2 };

static void drop(struct contender *c, enum trial_status status, struct status reason)
{
    c->out = true;
    c->trial->status = status;
    c->trial->reason = reason;
}

static int sample(struct contender *c, int ahead, double *seconds, double *ms)
{
    struct status st = STATUS_INIT;
    int result = c->sample(c->ctx, ahead, seconds, ms, &st);
    if (result != 0)
        drop(c, TRIAL_FAILED, st);
    return result;
}

/* Runs a contender for at least least_s seconds; returns how long it ran. */
static double warm_up(struct contender *c, double least_s)
{
    double seconds, ms, total = 0;
    while (total < least_s && sample(c, 1, &seconds, &ms) == 0)
        total += seconds;
    return total;
}

static void race(struct contender *c, double bound_ms)
{
    if (bound_ms <= 0 || c->trial->sample_count < HOPELESS_SAMPLES)
        return;
    double best = c->trial->samples_ms[0];
    for (int i = 1; i < c->trial->sample_count; i++)
        if (c->trial->samples_ms[i] < best)
            best = c->trial->samples_ms[i];
    if (best <= bound_ms)
        return;
    struct status st = STATUS_INIT;
    status_set(&st, STATUS_TIMEOUT, "stopped early: %.3f ms is above the bound of %.3f ms", best,
               bound_ms);
    drop(c, TRIAL_CENSORED, st);
}

/* The number of samples that an only contender will certainly take next. */
static int sure_samples(const struct trial *t, const struct sampling *how)
{
    int wanted = how->min_samples;
    if (how->censor_above_ms > 0 && t->sample_count < HOPELESS_SAMPLES && wanted > HOPELESS_SAMPLES)
        wanted = HOPELESS_SAMPLES;
    return wanted > t->sample_count ? wanted - t->sample_count : 1;
}

static void take_sample(struct contender *c, const struct sampling *how, bool only)
{
    double seconds, ms;
    struct trial *t = c->trial;
    if (sample(c, only ? sure_samples(t, how) : 1, &seconds, &ms) != 0)
        return;
    c->elapsed_s += seconds;
    t->samples_ms[t->sample_count++] = ms;
    race(c, how->censor_above_ms);
}

static bool narrow(struct interval i)
{
    return (i.high - i.low) / 2 < ENOUGH * i.median;
}

static struct interval time_of(const struct contender *c)
{
    return stats_median(c->trial->samples_ms, (size_t)c->trial->sample_count);
}

/* The one of the least median time, of several that go on; null if fewer than two do. */
static const struct contender *fastest_of(const struct contender *contenders, int n)
{
    const struct contender *fastest = NULL;
    double least_ms = INFINITY;
    int going_on = 0;
    for (int i = 0; i < n; i++) {
        const struct contender *c = &contenders[i];
        if (c->out || c->trial->sample_count == 0)
            continue;
        going_on++;
        double ms = time_of(c).median;
        if (ms < least_ms) {
            least_ms = ms;
            fastest = c;
        }
    }
    return going_on > 1 ? fastest : NULL;
}

/* The contender's times over another contender's times in the same rounds. */
static struct interval ratio_of(const struct contender *c, const struct contender *other)
{
    const struct trial *t = c->trial, *u = other->trial;
    int rounds = t->sample_count < u->sample_count ? t->sample_count : u->sample_count;
    return stats_median_ratio(t->samples_ms, u->samples_ms, (size_t)rounds);
}

/* Whether a contender is known to be slower than the fastest one, or how close they are.  A clock
 * that changes slows all samples of a round alike. */
static bool compared(const struct contender *c, const struct contender *fastest)
{
    struct interval ratio = ratio_of(c, fastest);
    return ratio.low > 1 || narrow(ratio);
}

static bool has_least(const struct contender *c, const struct sampling *how)
{
    return c->trial->sample_count >= how->min_samples && c->elapsed_s >= how->min_seconds;
}

static bool slower_than(const struct contender *c, const struct contender *first)
{
    return c != first && !first->out && c->trial->sample_count >= SAMPLES_OF_AN_INTERVAL &&
           ratio_of(c, first).low > 1;
}

/* Before a round: a contender that is far slower than the fastest, or slower than the first one
 * that the others run beside, rests from now on, even if that one fails or slows down.  Else sample
 * k would not be of round k. */
static void lay_to_rest(struct contender *contenders, int n, const struct sampling *how)
{
    const struct contender *fastest = fastest_of(contenders, n);
    for (int i = 0; i < n && fastest != NULL; i++) {
        struct contender *c = &contenders[i];
        c->rests = c->rests ||
                   (!c->out && has_least(c, how) && ratio_of(c, fastest).low > FAR_SLOWER) ||
                   (how->beside_first && !c->out && slower_than(c, &contenders[0]));
    }
}

/* Whether a contender takes no more samples, though others do. */
static bool done(const struct contender *c, const struct sampling *how)
{
    return c->out || c->rests || c->trial->sample_count >= how->max_samples;
}

/* Whether enough is known: of a contender's time, or of how it compares with the fastest one beside
 * it (null: none). */
static bool satisfied(const struct contender *c, const struct contender *fastest,
                      const struct sampling *how)
{
    if (done(c, how))
        return true;
    if (!has_least(c, how))
        return false;
    return c->elapsed_s >= how->max_seconds || narrow(time_of(c)) ||
           (fastest != NULL && compared(c, fastest));
}

/* Whether nothing is left that could run beside the first one. */
static bool stands_alone(const struct contender *contenders, int n, const struct sampling *how)
{
    for (int i = 1; i < n; i++)
        if (!done(&contenders[i], how))
            return false;
    return n > 1 && contenders[0].trial->sample_count >= SAMPLES_OF_AN_INTERVAL;
}

static bool all_satisfied(const struct contender *contenders, int n, const struct sampling *how)
{
    const struct contender *fastest = fastest_of(contenders, n);
    if (how->beside_first && stands_alone(contenders, n, how))
        return true;
    for (int i = 0; i < n; i++)
        if (!satisfied(&contenders[i], fastest, how))
            return false;
    return true;
}

/* How long a contender's next sample will take; 0 if it takes none, or had none yet. */
static double next_seconds(const struct contender *c)
{
    int taken = c->trial->sample_count;
    return taken == 0 || c->out || c->rests ? 0 : c->elapsed_s / taken;
}

struct sampling_progress sampling_progress(const struct contender *contenders, int n,
                                           const struct sampling *how)
{
    struct sampling_progress p = {.rounds = 0};
    const struct contender *fastest = fastest_of(contenders, n);
    double round_s = 0, left = 0;
    for (int i = 0; i < n; i++) {
        const struct contender *c = &contenders[i];
        int taken = c->trial->sample_count;
        if (taken > p.rounds && !c->out)
            p.rounds = taken;
        if (taken == 0 || c->out || c->rests)
            continue;
        double each_s = next_seconds(c);
        double in_time = each_s > 0 ? (how->max_seconds - c->elapsed_s) / each_s : 0;
        round_s += each_s;
        left = fmax(left, how->min_samples - taken);
        if (!satisfied(c, fastest, how))
            left = fmax(left, fmin(how->max_samples - taken, ceil(in_time)));
    }
    p.most = p.rounds + (int)left;
    p.left_s = left * round_s;
    return p;
}

/* Whether every contender has an interval, and another round would end too late. */
static bool out_of_time(const struct contender *contenders, int n, const struct sampling *how,
                        double warm_up_s)
{
    double spent_s = warm_up_s, round_s = 0;
    bool intervals = true;
    for (int i = 0; i < n; i++) {
        const struct contender *c = &contenders[i];
        spent_s += c->elapsed_s + c->verify_s;
        round_s += next_seconds(c);
        intervals &= c->out || c->trial->sample_count >= SAMPLES_OF_AN_INTERVAL;
    }
    return how->limit_s > 0 && intervals && spent_s + round_s > how->limit_s;
}

static void shuffle_order(int *order, int n, struct rng *rng)
{
    for (int i = n - 1; i > 0; i--) {
        int k = (int)rng_below(rng, (uint32_t)i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

void measure(struct contender *contenders, int n, const struct sampling *how,
             const struct warm_up *warm, uint64_t shuffle, void (*beat)(void *ctx, int contender),
             void *ctx)
{
    struct rng rng = {shuffle};
    double device_s = warm->device_s, warm_up_s = 0;
    SCOPED int *order = mem_alloc((size_t)n, sizeof(*order));
    for (int i = 0; i < n; i++) {
        struct contender *c = &contenders[i];
        c->trial->samples_ms = mem_alloc((size_t)how->max_samples, sizeof(*c->trial->samples_ms));
        order[i] = i;
        beat(ctx, i);
        double warmed_s = warm_up(c, fmax(device_s, warm->each_s));
        device_s -= warmed_s;
        warm_up_s += warmed_s;
    }
    while (!all_satisfied(contenders, n, how) && !out_of_time(contenders, n, how, warm_up_s)) {
        lay_to_rest(contenders, n, how);
        shuffle_order(order, n, &rng);
        for (int i = 0; i < n; i++) {
            if (done(&contenders[order[i]], how))
                continue;
            beat(ctx, order[i]);
            take_sample(&contenders[order[i]], how, n == 1);
        }
    }
}
