#include "fake_bench.h"
#include "tests/candidate.h"

struct fake fake;

struct bench {
    int unused;
};

const struct sampling sampling_search = {.min_samples = 6};
const struct sampling sampling_exhaustive = {.min_samples = 6};
const struct sampling sampling_final = {
    .min_samples = 20, .min_seconds = 1, .max_seconds = 5, .all_layers = true};

/* What the cache holds. */
static struct choice cached[20000];
static int cached_count;

/* What a compiler goes on with while the device works, and the seconds of its work on the next. */
static struct choice ahead[2000];
static int ahead_count;
static double worked_s;

struct bench *fake_open(void)
{
    static struct bench bench;
    struct status st = STATUS_INIT;
    memset(&fake, 0, sizeof(fake));
    cached_count = ahead_count = 0;
    worked_s = 0;
    fake.broken = (struct segment){-1, -1};
    fake.speed = 1;
    fake.by_knob = 0.02;
    made_up_init(&fake.space, 2, 32768, 49152);
    workload_init(&fake.workload);
    fake.workload.batch = 1;
    fake.workload.seq_len = 8;
    if (workload_check(&fake.workload, &st) != 0)
        return NULL;
    return &bench;
}

void fake_close(void)
{
    workload_release(&fake.workload);
}

double fake_clock(void)
{
    return fake.clock_s += 1e-6; /* whoever reads it does something meanwhile */
}

static int call(struct status *st)
{
    fake.calls++;
    if (fake.calls == fake.stop_at_call)
        fake.stop = 1;
    if (fake.stop != 0)
        return status_set(st, STATUS_INTERRUPTED, "stopped");
    if (fake.calls == fake.no_turn_at_call) {
        fake.clock_s += fake.limit_s;
        return status_set(st, STATUS_TIMEOUT, "no turn");
    }
    return 0;
}

static bool is_broken(const struct choice *c)
{
    return c->segment.first == fake.broken.first && c->segment.last == fake.broken.last;
}

/* The noise of a sample does not follow that of the other plan's sample of the round. */
static void fill(struct trial *out, double ms)
{
    static int fills;
    fills++;
    *out = (struct trial){.status = TRIAL_OK,
                          .ms = {ms, 0.99 * ms, 1.01 * ms},
                          .sample_count = 6,
                          .verify_s = fake.verify_s};
    out->samples_ms = mem_alloc(6, sizeof(*out->samples_ms));
    for (int i = 0; i < 6; i++)
        out->samples_ms[i] = ms * (0.99 + 0.004 * ((i + fills) % 6));
}

static void fail(struct trial *out, const char *message)
{
    *out = (struct trial){.status = TRIAL_FAILED, .reason = STATUS_INIT};
    status_set(&out->reason, STATUS_WRONG, "%s", message);
}

static bool cache_has(const struct choice *c)
{
    for (int i = 0; i < cached_count; i++)
        if (choice_equal(&cached[i], c))
            return true;
    return false;
}

static void build(const struct choice *c)
{
    fake.built++;
    if (cached_count < (int)ARRAY_LEN(cached))
        cached[cached_count++] = *c;
}

bool bench_builds_beside(const struct bench *b)
{
    return fake.beside;
}

static const struct choice *next_ahead(void)
{
    for (int i = 0; i < ahead_count; i++)
        if (!cache_has(&ahead[i]))
            return &ahead[i];
    return NULL;
}

/* The device works. */
static void pass(double seconds)
{
    const struct choice *next = fake.beside ? next_ahead() : NULL;
    fake.clock_s += seconds;
    for (worked_s += seconds; next != NULL && worked_s >= fake.seconds_per_build;
         next = next_ahead()) {
        worked_s -= fake.seconds_per_build;
        build(next);
    }
    if (next == NULL)
        worked_s = 0;
}

bool bench_waits(const struct bench *b)
{
    (void)b;
    return fake.waits;
}

int bench_take_turn(struct bench *b, const struct choice *choices, int count, struct status *st)
{
    (void)b;
    for (int i = 0; i < count; i++)
        build(&choices[i]);
    fake.clock_s += fake.turn_after_s;
    fake.waits = false;
    return fake.stop == 0 ? 0 : status_set(st, STATUS_INTERRUPTED, "stopped");
}

void bench_end_turn(struct bench *b)
{
    (void)b;
    fake.ended = true;
}

/* One compiler at a time. */
int bench_build_some(struct bench *b, const struct choice *choices, int count, int behind,
                     double seconds, struct built *out, struct status *st)
{
    double until = fake.clock_s + seconds;
    int done = 0, all = count + behind;
    if (count > 0 && call(st) != 0)
        return -1;
    ahead_count = fake.beside && all < (int)ARRAY_LEN(ahead) ? all : 0;
    if (count > 0)
        memcpy(ahead, choices, (size_t)ahead_count * sizeof(*ahead));
    for (int i = 0; i < count; i++)
        done += cache_has(&choices[i]);
    for (int i = 0; i < all; i++) {
        bool waits = !cache_has(&choices[i]) && (!fake.beside || done == 0);
        double left_s = waits ? fake.seconds_per_build - worked_s : 0;
        if (waits && fake.clock_s + left_s <= until) {
            fake.clock_s += left_s;
            worked_s = 0;
            build(&choices[i]);
            done++;
        } else if (waits) {
            fake.clock_s = until;
        }
        out[i] = (struct built){.done = cache_has(&choices[i])};
        if (fake.broken_at_build && is_broken(&choices[i]))
            status_set(&out[i].status, STATUS_COMPILE, "syntax error");
    }
    return 0;
}

double bench_oracle_left_seconds(const struct bench *b)
{
    return fake.compares > 0 ? 0 : fake.verify_s * (fake.workload.layers - 1);
}

double bench_build_seconds(struct bench *b, const struct choice *c)
{
    return fake.seconds_per_build;
}

static int knobs_off(const struct choice *c)
{
    int off = 0;
    for (int k = 0; k < c->impl->knob_count; k++)
        off += c->schedule.pick[k] != 0;
    return off;
}

/* Each knob off its first value makes a choice faster: a climb has something to find. */
static double choice_ms(const struct choice *c)
{
    int off = knobs_off(c);
    double ms = fake.space.times.ms[slot_of(c->segment, c->impl->handwritten)];
    return ms * (1 - fake.by_knob * off) / fake.speed;
}

int bench_segment(struct bench *b, const struct choice *c, bool packed, const struct sampling *how,
                  struct trial *out, struct status *st)
{
    if (call(st) != 0)
        return -1;
    fake.segments++;
    fake.bounded += how->censor_above_ms > 0;
    pass(fake.seconds_per_segment);
    if (is_broken(c))
        fail(out, "row 3 is wrong");
    else
        fill(out, choice_ms(c) * (packed ? fake.packing : 1) * (fake.slow_segments > 0 ? 1.1 : 1));
    fake.slow_segments -= fake.slow_segments > 0;
    out->build_s = fake.seconds_per_build;
    out->time_s = fake.seconds_per_segment;
    return 0;
}

static int knobs_apart(const struct choice *a, const struct choice *b)
{
    int apart = 0;
    for (int k = 0; k < a->impl->knob_count && a->impl == b->impl; k++)
        apart += a->schedule.pick[k] != b->schedule.pick[k];
    return apart;
}

static bool has_off_default(const struct candidate *c)
{
    struct candidate usual;
    bool off = false;
    candidate_default(bench_target(NULL), c->plan, &usual);
    for (int i = 0; i < c->count; i++)
        off |= knobs_apart(&c->choices[i], &usual.choices[i]) > 0;
    return off;
}

static void run_plan(const struct candidate *c, const struct sampling *how, struct trial *out)
{
    unsigned value = plan_value(c->plan);
    double ms = made_up_ms(&fake.space, value) / fake.speed;
    if (value == fake.slow_value)
        ms *= 5;
    if (fake.slow_from_plan > 0 && fake.plans >= fake.slow_from_plan &&
        (fake.slow_plans == 0 || fake.plans < fake.slow_from_plan + fake.slow_plans))
        ms *= 3;
    ms *= 1 + fake.jitter * sin(fake.plans);
    if (c->packed)
        ms *= fake.packing;
    ms *= 1 - fake.e4m3 * __builtin_popcount(c->precision);
    bool broken = false;
    struct candidate usual;
    candidate_default(bench_target(NULL), c->plan, &usual);
    for (int i = 0; i < c->count; i++) {
        broken |= is_broken(&c->choices[i]);
        ms *= 1 + fake.off_in_plan * knobs_apart(&c->choices[i], &usual.choices[i]);
    }
    fake.broken_in_plan += broken;
    if (broken || value == fake.broken_value)
        fail(out, "layer 0 is wrong");
    else
        fill(out, ms);
    if (out->status == TRIAL_OK && how->censor_above_ms > 0 && ms > how->censor_above_ms)
        out->status = TRIAL_CENSORED;
}

/* Until the limit. */
static int build_lacking(const struct candidate *c, struct status *st)
{
    for (int i = 0; i < c->count; i++) {
        if (cache_has(&c->choices[i]))
            continue;
        build(&c->choices[i]);
        fake.clock_s += fake.seconds_per_build;
        if (fake.limit_end_s > 0 && fake.clock_s > fake.limit_end_s) {
            fake.clock_s = fake.limit_end_s;
            return status_set(st, STATUS_TIMEOUT, "the time limit is over");
        }
    }
    return 0;
}

int bench_plan(struct bench *b, const struct candidate *c, const struct sampling *how,
               struct trial *out, struct status *st)
{
    if (call(st) != 0)
        return -1;
    if (build_lacking(c, st) != 0)
        return -1;
    fake.plans++;
    pass(fake.seconds_per_plan);
    run_plan(c, how, out);
    if (out->status == TRIAL_OK && plan_value(c->plan) == fake.lucky_value) {
        double ms = out->ms.median / 10;
        trial_release(out);
        fill(out, ms);
    }
    out->time_s = fake.seconds_per_plan;
    return 0;
}

/* It is slower than the first one, so it rests before the clock falls to half. */
static void rest_early(struct trial *t)
{
    for (int i = 0; i < t->sample_count; i++)
        t->samples_ms[i] *= 1.03;
    t->sample_count--;
    t->ms.median /= 2;
}

/* The first one is the present way. */
static void note_tries(const struct candidate *candidates, int n, const struct trial *trials)
{
    for (int i = 1; i < n; i++) {
        int k = 0;
        while (choice_equal(&candidates[i].choices[k], &candidates[0].choices[k]))
            k++;
        const struct choice *c = &candidates[i].choices[k];
        for (int other = 0; other < fake.tries.lost_count; other++)
            fake.tries.again += choice_equal(&fake.tries.lost[other], c);
        fake.tries.furthest =
            fmax(fake.tries.furthest, choice_ms(c) / choice_ms(&candidates[0].choices[k]));
        if (trials[0].status == TRIAL_OK && trials[i].ms.median > 1.03 * trials[0].ms.median &&
            fake.tries.lost_count < (int)ARRAY_LEN(fake.tries.lost))
            fake.tries.lost[fake.tries.lost_count++] = *c;
    }
}

int bench_compare(struct bench *b, const struct candidate *candidates, int n,
                  const struct sampling *how, struct trial *trials, struct status *st)
{
    if (call(st) != 0)
        return -1;
    if (!how->all_layers) {
        fake.fits++;
    } else if (fake.compares++ < (int)ARRAY_LEN(fake.compared)) {
        fake.compared[fake.compares - 1].plans = n;
        fake.compared[fake.compares - 1].how = *how;
    }
    pass(how->all_layers ? n * how->max_seconds : n * fake.seconds_per_plan);
    for (int i = 0; i < n; i++) {
        fake.unlike |= !how->all_layers && candidates[i].packed != candidates[0].packed;
        run_plan(&candidates[i], how, &trials[i]);
        if (fake.first_gives_up && i == 0 && how->censor_above_ms > 0)
            trials[i].status = TRIAL_CENSORED;
        if (fake.fails_compared[candidates[i].packed] ||
            (fake.off_fails && has_off_default(&candidates[i]))) {
            trial_release(&trials[i]);
            fail(&trials[i], "layer 1 is wrong");
        }
    }
    if (how->beside_first)
        note_tries(candidates, n, trials);
    if (fake.clock_falls && how->beside_first)
        rest_early(&trials[1]);
    return 0;
}

void trial_release(struct trial *t)
{
    free(t->samples_ms);
    t->samples_ms = NULL;
}
