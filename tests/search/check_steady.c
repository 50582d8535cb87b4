/* Whether a plan's time can be relied on, and times taken anew: tune() on a fake bench. */
#include "tune_guided.h"

/* ---- what makes a time unstable -------------------------------------------------------------- */

enum { SAMPLES = 20 };

static const struct {
    double high_ms; /* of a third of the samples; the others take 1 ms */
    struct interval in_search;
    struct conditions conditions;
    const char *why; /* part of the text; "": stable */
} times[] = {
    {1.001, {1, 0.99, 1.01}, {.cpu = true, .waited_share = 0.02}, ""},
    {1.001, {NAN, NAN, NAN}, {.known = true}, ""},
    {7.5,
     {1, 0.99, 1.01},
     {.known = true},
     "its samples fall into two groups, 1 ms and 7.5 ms (30 %)"},
    {1.001, {2, 1.5, 2.5}, {.known = true}, "it took 2 ms in its search and 1 ms side by side"},
    {1.001, {1.2, 1.1, 1.3}, {.known = true}, ""}, /* an eighth more is what caches may do */
    {1.001, {0.5, 0.5, 0.6}, {.known = true}, "it took 0.5 ms in its search and 1 ms side by side"},
    {1.001,
     {1, 0.99, 1.01},
     {.cpu = true, .waited_share = 0.4},
     "its threads waited 40 % of their time"},
    {7.5, {1, 0.99, 1.01}, {.cpu = true, .waited_share = 0.4}, "(30 %); its threads waited 40 %"},
};

TEST_LOOP(instability_is_told, 0, ARRAY_LEN(times))
{
    double samples[SAMPLES];
    SCOPED_BUF text = BUF_INIT;
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = i % 3 == 2 ? times[_i].high_ms : 1;
    struct trial t = {.ms = stats_median(samples, SAMPLES),
                      .sample_count = SAMPLES,
                      .samples_ms = samples,
                      .conditions = times[_i].conditions};
    unstable_text(&t, NULL, times[_i].in_search, &text);
    const char *why = text.len > 0 ? text.ptr : "";
    ck_assert_msg(strstr(why, times[_i].why) != NULL, "%s", why);
    ck_assert_int_eq(why[0] == '\0', times[_i].why[0] == '\0');
    t.status = TRIAL_FAILED;
    buf_reset(&text);
    unstable_text(&t, NULL, times[_i].in_search, &text);
    ck_assert_uint_eq(text.len, 0);
}

/* The clock falls in the middle of the finals, for all plans. */
TEST(a_change_of_pace_makes_no_plan_unstable)
{
    double samples[SAMPLES], others[SAMPLES];
    SCOPED_BUF text = BUF_INIT;
    for (int i = 0; i < SAMPLES; i++) {
        samples[i] = i < 7 ? 5.6 : 6.4;
        others[i] = 1.02 * samples[i] + 0.01 * (i % 3);
    }
    struct trial t = {.ms = stats_median(samples, SAMPLES),
                      .sample_count = SAMPLES,
                      .samples_ms = samples},
                 beside = t;
    beside.samples_ms = others;
    unstable_text(&t, &beside, t.ms, &text);
    ck_assert_str_eq(text.len > 0 ? text.ptr : "", "");
    for (int i = 0; i < SAMPLES; i++)
        others[i] = 6 + 0.01 * (i % 3);
    unstable_text(&t, &beside, t.ms, &text);
    ck_assert_ptr_nonnull(strstr(text.ptr, "two groups, 5.6 ms and 6.4 ms (65 %)"));
    buf_reset(&text);
    for (int i = 0; i < SAMPLES; i++)
        others[i] = samples[i];
    beside.sample_count = SAMPLES - 1; /* it rested */
    unstable_text(&t, &beside, t.ms, &text);
    ck_assert_ptr_nonnull(strstr(text.ptr, "two groups"));
    buf_reset(&text);
    beside.sample_count = SAMPLES;
    t.sample_count = SAMPLES - 1; /* this one rested */
    unstable_text(&t, &beside, t.ms, &text);
    ck_assert_uint_eq(text.len, 0);
}

/* Its search found a tenth of what it takes side by side. */
TEST(report_names_an_unstable_plan)
{
    run();
    ck_assert_str_eq(report.unstable, "");
    fake.lucky_value = (unsigned)report.best.value;
    fake.inputs.seed = 1;
    run();
    ck_assert_int_eq(report.best.value, (int)fake.lucky_value);
    ck_assert_ptr_nonnull(strstr(report.unstable, " in its search and "));
    ck_assert_str_eq(report.baselines[0].unstable, "");
}

/* ---- times taken anew ------------------------------------------------------------------------ */

static void keep_again(void *ctx, const struct db_search *s)
{
    if (strcmp(s->strategy, "again") == 0)
        snprintf(ctx, 16, "%s", s->stopped_by);
}

TEST(best_and_baselines_are_timed_anew)
{
    run();
    int value = report.best.value, plans = fake.plans, segments = fake.segments;
    double ms = report.best.ms.median;
    fake.speed = 2;
    run_by(tune_again);
    ck_assert_int_eq(report.best.value, value);
    ck_assert_double_eq(report.best.ms.median, ms / 2);
    ck_assert_int_eq(fake.plans, plans);
    ck_assert_int_eq(fake.segments, segments);
    ck_assert_int_eq(fake.compares, 2);
    ck_assert_int_eq(fake.compared[1].plans, 3); /* the best plan and two baselines */
    ck_assert_int_eq(report.new_trials, 0);
    ck_assert(isfinite(report.baselines[0].speedup.low));
    ck_assert_ptr_null(report.stopped_by);
    ck_assert(!report.certainty.known); /* a budget ended the search */
    char ended[16] = "";
    int64_t study;
    OK(study_open(bench, db, &study, &st));
    OK(db_searches(db, study, keep_again, ended, &st));
    ck_assert_str_eq(ended, "done");
    int calls = fake.calls;
    run(); /* nothing is owed */
    ck_assert_int_eq(fake.calls, calls);
}

SUITE("search/steady", setup, teardown)
