/* The measuring loop on made-up samples. */
#include "bench/worker/worker_int.h"
#include "tests/suite.h"

enum { CONTENDERS = 4, LOG_MAX = 4096 };

static int log_of[LOG_MAX], log_len; /* which contender was sampled, in order */
static int beats;

struct fake {
    int id;
    double ms;        /* of the next sample */
    double step_ms;   /* added after each */
    int fails_after;  /* samples; 0: never */
    double verify_ms; /* what verifying it again will take */
    int samples;
};

static int take(void *ctx, int ahead, double *seconds, double *ms, struct status *lost)
{
    struct fake *f = ctx;
    if (f->fails_after > 0 && f->samples == f->fails_after)
        return status_set(lost, STATUS_LAUNCH, "lost");
    f->samples++;
    if (log_len < LOG_MAX)
        log_of[log_len++] = f->id;
    *ms = f->ms;
    *seconds = f->ms / 1e3;
    f->ms += f->step_ms;
    return 0;
}

static void beat(void *ctx, int contender)
{
    beats++;
}

static const struct warm_up no_warm_up = {0};
static const struct sampling ten = {.min_samples = 10, .max_samples = 10};

static void run(struct fake *fakes, int n, const struct sampling *how, uint64_t shuffle,
                struct trial *trials)
{
    struct contender contenders[CONTENDERS] = {0};
    log_len = 0;
    for (int i = 0; i < n; i++) {
        fakes[i].id = i;
        trials[i] = (struct trial){0};
        contenders[i] = (struct contender){.sample = take,
                                           .ctx = &fakes[i],
                                           .trial = &trials[i],
                                           .verify_s = fakes[i].verify_ms / 1e3};
    }
    measure(contenders, n, how, &no_warm_up, shuffle, beat, NULL);
}

static void release(struct trial *trials, int n)
{
    for (int i = 0; i < n; i++)
        trial_release(&trials[i]);
}

TEST(rounds_hold_each_once_in_changing_order)
{
    struct fake fakes[CONTENDERS] = {{.ms = 1}, {.ms = 2}, {.ms = 3}, {.ms = 4}};
    struct trial trials[CONTENDERS];
    run(fakes, CONTENDERS, &ten, 7, trials);
    ck_assert_int_eq(log_len, CONTENDERS * 10);
    int same_as_first = 0;
    for (int round = 0; round < 10; round++) {
        int seen = 0, equal = 1;
        for (int i = 0; i < CONTENDERS; i++) {
            seen |= 1 << log_of[round * CONTENDERS + i];
            equal &= log_of[round * CONTENDERS + i] == log_of[i];
        }
        ck_assert_int_eq(seen, (1 << CONTENDERS) - 1);
        same_as_first += equal;
    }
    ck_assert_int_lt(same_as_first, 5);
    for (int i = 0; i < CONTENDERS; i++)
        ck_assert_int_eq(trials[i].sample_count, 10);
    release(trials, CONTENDERS);
}

TEST(warm_up_is_by_time_and_not_kept)
{
    struct fake fake = {.ms = 10, .step_ms = 1};
    SCOPED_BY(trial_release) struct trial t = {0};
    struct contender c = {.sample = take, .ctx = &fake, .trial = &t};
    const struct warm_up warm = {.each_s = 0.025};
    measure(&c, 1, &ten, &warm, 0, beat, NULL);
    ck_assert_int_eq(fake.samples, 13); /* 10 + 11 + 12 ms pass 25 ms */
    ck_assert_double_eq(t.samples_ms[0], 13);
}

/* 256 plans side by side do not each wait for a cold device. */
TEST(a_device_warms_up_once)
{
    struct fake fakes[] = {{.ms = 10}, {.ms = 10}, {.ms = 10}};
    struct trial trials[3] = {{0}};
    struct contender c[3];
    for (int i = 0; i < 3; i++)
        c[i] = (struct contender){.sample = take, .ctx = &fakes[i], .trial = &trials[i]};
    const struct warm_up warm = {.device_s = 0.045, .each_s = 0.015};
    measure(c, 3, &ten, &warm, 0, beat, NULL);
    ck_assert_int_eq(fakes[0].samples, 15);
    ck_assert_int_eq(fakes[1].samples, 12);
    ck_assert_int_eq(fakes[2].samples, 12);
    release(trials, 3);
}

/* When one that is measured alone has enough samples. */
static const struct {
    double ms, step_ms;
    struct sampling how;
    int samples;
} stops[] = {
    /* 0.2 s of steady times */
    {10, 0, {.min_samples = 6, .max_samples = 100, .min_seconds = 0.2, .max_seconds = 1}, 20},
    /* 10 + 11 + ... + 22 ms pass 0.2 s */
    {10, 1, {.min_samples = 6, .max_samples = 100, .max_seconds = 0.2}, 13},
    {10, 1, {.min_samples = 6, .max_samples = 9, .max_seconds = 0.2}, 9},
    /* the limit is over after 5 samples, and an interval needs 6 */
    {10, 0, {.min_samples = 20, .max_samples = 100, .min_seconds = 1, .limit_s = 0.05}, 6},
    {10, 0, {.min_samples = 20, .max_samples = 100, .min_seconds = 1, .limit_s = 0.105}, 10},
    /* 25, 20, 15, 10 ms: one slow sample is noise, not a reason */
    {25, -5, {.min_samples = 4, .max_samples = 4, .censor_above_ms = 20}, 4},
};

TEST_LOOP(enough_samples_stop_it, 0, ARRAY_LEN(stops))
{
    struct fake fake = {.ms = stops[_i].ms, .step_ms = stops[_i].step_ms};
    SCOPED_BY(trial_release) struct trial t;
    run(&fake, 1, &stops[_i].how, 0, &t);
    ck_assert_int_eq(t.status, TRIAL_OK);
    ck_assert_int_eq(t.sample_count, stops[_i].samples);
}

/* A round takes 30 ms, and verifying both 65 ms: 7 rounds leave time for that, and 8 do not. */
TEST(a_limit_leaves_time_to_verify)
{
    struct fake fakes[] = {{.ms = 10, .verify_ms = 40}, {.ms = 20, .verify_ms = 25}};
    const struct sampling how = {
        .min_samples = 20, .max_samples = 100, .min_seconds = 1, .limit_s = 0.295};
    struct trial trials[2];
    run(fakes, 2, &how, 0, trials);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(trials[i].sample_count, 7);
    release(trials, 2);
}

/* Times that rise from round to round have wide intervals, but can be compared. */
static const struct {
    struct fake fakes[2];
    bool at_once;
} pairs[] = {
    {{{.ms = 10, .step_ms = 1}, {.ms = 10, .step_ms = 1}}, true},    /* as fast as each other */
    {{{.ms = 10, .step_ms = 1}, {.ms = 11, .step_ms = 3}}, true},    /* slower for certain */
    {{{.ms = 10, .step_ms = 1}, {.ms = 12, .step_ms = 0.5}}, false}, /* first slower, then faster */
};

TEST_LOOP(known_ratios_stop_several, 0, ARRAY_LEN(pairs))
{
    struct fake fakes[2];
    const struct sampling how = {.min_samples = 8, .max_samples = 40, .max_seconds = 100};
    struct trial trials[2];
    memcpy(fakes, pairs[_i].fakes, sizeof(fakes));
    run(fakes, 1, &how, 0, trials);
    ck_assert_int_eq(trials[0].sample_count, 40);
    trial_release(&trials[0]);
    memcpy(fakes, pairs[_i].fakes, sizeof(fakes));
    run(fakes, 2, &how, 0, trials);
    ck_assert((trials[1].sample_count == 8) == pairs[_i].at_once);
    ck_assert_int_eq(trials[0].sample_count, trials[1].sample_count);
    release(trials, 2);
}

/* Those far slower for certain take the least samples; the others go on until they are compared. */
TEST(far_slower_ones_rest)
{
    struct fake fakes[] = {{.ms = 10, .step_ms = 1},
                           {.ms = 12, .step_ms = 0.5},
                           {.ms = 30, .step_ms = 3},
                           {.ms = 12, .step_ms = 1.2}};
    const struct sampling how = {.min_samples = 8, .max_samples = 40, .max_seconds = 100};
    struct trial trials[CONTENDERS];
    run(fakes, CONTENDERS, &how, 0, trials);
    ck_assert_int_eq(trials[2].sample_count, 8);
    ck_assert_int_eq(trials[2].status, TRIAL_OK);
    ck_assert_int_gt(trials[0].sample_count, 8);
    ck_assert_int_eq(trials[1].sample_count, trials[0].sample_count);
    ck_assert_int_eq(trials[3].sample_count, trials[0].sample_count); /* 1.2 times: not far */
    release(trials, CONTENDERS);
}

/* The first one is the fastest at first.  Once it has slowed down, or has failed (_i 1), the last
 * one is no longer far slower than the fastest; but its next sample would be of another round than
 * theirs. */
TEST_LOOP(who_rests_does_not_come_back, 0, 2)
{
    struct fake fakes[] = {{.ms = 10, .step_ms = 1, .fails_after = _i == 1 ? 12 : 0},
                           {.ms = 12, .step_ms = 0.5},
                           {.ms = 14, .step_ms = 1.1}};
    const struct sampling how = {.min_samples = 8, .max_samples = 40, .max_seconds = 100};
    struct trial trials[3];
    run(fakes, 3, &how, 0, trials);
    ck_assert_int_eq(trials[0].status, _i == 1 ? TRIAL_FAILED : TRIAL_OK);
    ck_assert_int_ge(trials[1].sample_count, 12);
    ck_assert_int_le(trials[1].sample_count, 40);
    ck_assert_int_eq(trials[2].sample_count, 8);
    release(trials, 3);
}

/* Beside the first one: a way that is slower for certain takes an interval's samples, one that is
 * faster or like it all of them, and the first one as many as any. */
TEST(slower_ways_rest)
{
    struct fake fakes[] = {{.ms = 10}, {.ms = 10.2}, {.ms = 10}, {.ms = 9.9}};
    struct sampling how = {.min_samples = 30, .max_samples = 30, .beside_first = true};
    struct trial trials[CONTENDERS];
    run(fakes, CONTENDERS, &how, 0, trials);
    ck_assert_int_eq(trials[1].sample_count, SAMPLES_OF_AN_INTERVAL);
    ck_assert_int_eq(trials[1].status, TRIAL_OK);
    for (int i = 0; i < CONTENDERS; i += i == 0 ? 2 : 1)
        ck_assert_int_eq(trials[i].sample_count, 30);
    release(trials, CONTENDERS);
    run(fakes, 2, &how, 0, trials); /* nothing is left beside it */
    ck_assert_int_eq(trials[0].sample_count, SAMPLES_OF_AN_INTERVAL + 1); /* one round more */
    ck_assert_int_eq(trials[1].sample_count, SAMPLES_OF_AN_INTERVAL);
    release(trials, 2);
    how.beside_first = false;
    run(fakes, 2, &how, 0, trials);
    ck_assert_int_eq(trials[0].sample_count, 30);
    ck_assert_int_eq(trials[1].sample_count, 30);
    release(trials, 2);
}

TEST(hopeless_ones_are_censored)
{
    struct fake fakes[] = {{.ms = 10}, {.ms = 30}};
    struct sampling how = ten;
    struct trial trials[2];
    how.censor_above_ms = 20;
    run(fakes, 2, &how, 0, trials);
    ck_assert_int_eq(trials[0].status, TRIAL_OK);
    ck_assert_int_eq(trials[1].status, TRIAL_CENSORED);
    ck_assert_int_eq(trials[1].sample_count, 2);
    ck_assert_ptr_nonnull(strstr(trials[1].reason.message, "30.000 ms"));
    release(trials, 2);
}

TEST(one_that_fails_leaves_the_others_alone)
{
    struct fake fakes[] = {{.ms = 10}, {.ms = 10, .fails_after = 4}, {.ms = 10, .fails_after = -1}};
    struct trial trials[3];
    run(fakes, 3, &ten, 0, trials);
    ck_assert_int_eq(trials[0].sample_count, 10);
    ck_assert_int_eq(trials[1].status, TRIAL_FAILED);
    ck_assert_str_eq(trials[1].reason.message, "lost");
    ck_assert_int_eq(trials[2].sample_count, 10);
    release(trials, 3);
}

SUITE("sampling", NULL, NULL)
