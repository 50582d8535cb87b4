/* Trials: stored, read back, refused. */
#include "tests/db/one_fixture.h"

static void same_double(double a, double b)
{
    ck_assert(a == b || (isnan(a) && isnan(b)));
}

struct expected {
    const struct db_trial *trials;
    int count, seen;
};

static int compare_trial(void *ctx, const struct db_trial *got)
{
    struct expected *e = ctx;
    ck_assert_int_lt(e->seen, e->count);
    const struct db_trial *t = &e->trials[e->seen++];
    ck_assert_int_eq(got->kind, t->kind);
    ck_assert_int_eq(got->value, t->value);
    ck_assert_int_eq(got->status, t->status);
    ck_assert_str_eq(got->reason_code, t->reason_code);
    ck_assert_str_eq(got->reason, t->reason);
    same_double(got->median_ms, t->median_ms);
    same_double(got->ci_low_ms, t->ci_low_ms);
    same_double(got->ci_high_ms, t->ci_high_ms);
    same_double(got->build_s, t->build_s);
    same_double(got->verify_s, t->verify_s);
    same_double(got->time_s, t->time_s);
    same_double(got->error, t->error);
    ck_assert_int_eq(got->layers_timed, t->layers_timed);
    ck_assert_int_eq(got->sample_count, t->sample_count);
    ck_assert_str_eq(got->comparison, t->comparison);
    ck_assert_str_eq(got->resources, t->resources);
    ck_assert_str_eq(got->conditions, t->conditions);
    ck_assert_str_eq(got->search, t->search);
    ck_assert_uint_eq(strlen(got->stored_utc), CLOCK_UTC_SIZE - 1);
    ck_assert_int_eq(got->choice_count, t->choice_count);
    for (int i = 0; i < t->choice_count; i++) {
        ck_assert_int_eq(got->choices[i].segment.first, t->choices[i].segment.first);
        ck_assert_int_eq(got->choices[i].segment.last, t->choices[i].segment.last);
        ck_assert_str_eq(got->choices[i].impl, t->choices[i].impl);
        ck_assert_str_eq(got->choices[i].schedule, t->choices[i].schedule);
    }
    return 0;
}

START_TEST(trials_come_back_as_stored)
{
    char search[HASH_TEXT_SIZE];
    OK(db_search_start(db, study, "guided", "{}", search, &st));
    struct db_trial kinds[][2] = {
        [DB_TRIAL_SEGMENT] = {segment_trial(&some_choices[0], 0.5),
                              segment_trial(&some_choices[1], 0.25)},
        [DB_TRIAL_PLAN] = {failed_trial(43690, "wrong"), plan_trial(65535, 3)},
        [DB_TRIAL_FINAL] = {final_trial(0, 4, "first"), final_trial(43690, 5, "first")},
    };
    kinds[DB_TRIAL_SEGMENT][0].resources = "{\"registers\":12}";
    kinds[DB_TRIAL_SEGMENT][0].conditions = "{\"sm_mhz\":1410}";
    kinds[DB_TRIAL_PLAN][1].status = TRIAL_CENSORED;
    kinds[DB_TRIAL_PLAN][1].reason_code = "timeout";
    kinds[DB_TRIAL_PLAN][1].search = search;

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (size_t i = 0; i < ARRAY_LEN(kinds[k]); i++)
            OK(db_trial_add(db, study, &kinds[k][i], &st));
    for (int k = 0; k < (int)ARRAY_LEN(kinds); k++) {
        struct expected e = {kinds[k], ARRAY_LEN(kinds[k]), 0};
        OK(db_trials(db, study, (enum db_trial_kind)k, compare_trial, &e, &st));
        ck_assert_int_eq(e.seen, e.count);
    }
    expect_sql(db->handle, 2 * (int)ARRAY_LEN(some_samples), "SELECT count(*) FROM sample");
    expect_sql(db->handle, 1,
               "SELECT count(*) FROM sample WHERE trial = 5 AND round = 1 AND ms = 1.5");
    expect_sql(db->handle, 1,
               "SELECT count(*) FROM plan WHERE value = 43690 AND segments = '0-1 2-6 7-14'");
    assert_whole(db);
}
END_TEST

/* What two processes do that search one study: neither stops, and the first result stays. */
START_TEST(second_trial_yields_to_the_first)
{
    struct db *other;
    OK(db_open(test_path("t.db"), DB_WRITE, &other, &st));
    struct db_trial plans[] = {plan_trial(50, 3), plan_trial(50, 2)};
    struct db_trial segments[] = {segment_trial(some_choices, 3), segment_trial(some_choices, 2)};
    struct db_trial finals[] = {final_trial(50, 3, "a"), final_trial(50, 2, "b")};
    for (int i = 0; i < 2; i++) {
        OK(db_trial_add(i == 0 ? db : other, study, &plans[i], &st));
        OK(db_trial_add(i == 0 ? db : other, study, &segments[i], &st));
        OK(db_trial_add(i == 0 ? db : other, study, &finals[i], &st));
    }
    expect_sql(db->handle, 4, "SELECT count(*) FROM trial");
    expect_sql(db->handle, 9, "SELECT count(*) FROM choice");
    expect_sql(db->handle, 2, "SELECT count(*) FROM trial WHERE kind <> 'final' AND median_ms = 3");
    assert_whole(db);
    db_close(other);
}
END_TEST

/* A stored failure may have been the machine's: it gives way, and its reason is kept.  A failure
 * does not displace a time. */
START_TEST(failure_yields_and_is_kept)
{
    struct db_trial plan[] = {failed_trial(50, "compile"), failed_trial(50, "launch"),
                              plan_trial(50, 3), failed_trial(50, "wrong")};
    struct db_trial segment[] = {failed_trial(-1, "compile"), segment_trial(some_choices, 2)};
    segment[0].kind = DB_TRIAL_SEGMENT;
    segment[0].choice_count = 1;
    for (size_t i = 0; i < ARRAY_LEN(plan); i++)
        OK(db_trial_add(db, study, &plan[i], &st));
    for (size_t i = 0; i < ARRAY_LEN(segment); i++)
        OK(db_trial_add(db, study, &segment[i], &st));
    expect_sql(db->handle, 2, "SELECT count(*) FROM trial");
    expect_sql(db->handle, 2, "SELECT count(*) FROM trial WHERE status = 'ok'");
    expect_sql(db->handle, 21, "SELECT trials * 10 + plans FROM study");
    expect_sql(db->handle, 3, "SELECT count(*) FROM choice");
    expect_sql(db->handle, 2,
               "SELECT count(*) FROM failure WHERE plan = 50 AND reason = 'because' AND stored_utc "
               "<> '' AND reason_code = iif(id = 1, 'compile', 'launch')");
    expect_sql(db->handle, 1,
               "SELECT count(*) FROM failure WHERE schedule IS NOT NULL AND kind = 'segment'");
    assert_whole(db);
}
END_TEST

START_TEST(comparison_is_stored_whole_or_not_at_all)
{
    struct db_trial finals[] = {final_trial(50, 3, "a"), final_trial(51, NAN, "a")};
    FAILS(db_trials_add(db, study, finals, 2, &st), STATUS_DATABASE, "");
    expect_sql(db->handle, 0, "SELECT count(*) FROM trial");
    finals[1].median_ms = finals[1].ci_low_ms = finals[1].ci_high_ms = 4;
    OK(db_trials_add(db, study, finals, 2, &st));
    expect_sql(db->handle, 2, "SELECT count(*) FROM trial");
    assert_whole(db);
}
END_TEST

static int stop_at_second(void *ctx, const struct db_trial *t)
{
    (void)t;
    return ++*(int *)ctx == 2;
}

START_TEST(walk_stops_when_told)
{
    int seen = 0;
    for (int i = 0; i < 4; i++) {
        struct db_trial t = plan_trial(i, 1);
        OK(db_trial_add(db, study, &t, &st));
    }
    OK(db_trials(db, study, DB_TRIAL_PLAN, stop_at_second, &seen, &st));
    ck_assert_int_eq(seen, 2);
}
END_TEST

static int expect_no_choices(void *ctx, const struct db_trial *t)
{
    ck_assert_int_eq(t->value, 7);
    ck_assert_double_eq(t->median_ms, 1);
    ck_assert_int_eq(t->choice_count, 0);
    ++*(int *)ctx;
    return 0;
}

START_TEST(times_come_without_choices)
{
    int seen = 0;
    struct db_trial t = plan_trial(7, 1);
    OK(db_trial_add(db, study, &t, &st));
    OK(db_trial_times(db, study, DB_TRIAL_PLAN, expect_no_choices, &seen, &st));
    ck_assert_int_eq(seen, 1);
}
END_TEST

static const struct db_choice with_gap[] = {{{0, 1}, "generated", ""}, {{3, 14}, "generated", ""}};
static const struct db_choice overlapping[] = {{{0, 7}, "generated", ""},
                                               {{7, 14}, "generated", ""}};
static const struct db_choice too_short[] = {{{0, 13}, "generated", ""}};
static const struct db_choice too_long[] = {{{0, 15}, "generated", ""}};
static const struct db_choice too_many[] = {{{0, 14}, "generated", ""}, {{3, 4}, "generated", ""}};
static const struct db_choice backwards[] = {{{0, -1}, "generated", ""},
                                             {{0, 14}, "generated", ""}};

static const struct {
    const struct db_choice *choices;
    int count;
} wrong_choices[] = {{with_gap, 2}, {overlapping, 2}, {too_short, 1},   {too_long, 1},
                     {too_many, 2}, {backwards, 2},   {some_choices, 0}};

/* Refused, leaving nothing of it behind. */
static void expect_refusal(const struct db_trial *nonsense)
{
    FAILS(db_trial_add(db, study, nonsense, &st), STATUS_DATABASE, "");
    expect_sql(db->handle, 0, "SELECT count(*) FROM trial");
    expect_sql(db->handle, 0, "SELECT count(*) FROM schedule");
    expect_sql(db->handle, 0, "SELECT count(*) FROM segment");
    struct db_trial good = plan_trial(43690, 2);
    OK(db_trial_add(db, study, &good, &st));
    assert_whole(db);
}

START_TEST(wrong_choices_are_refused)
{
    struct db_trial t = plan_trial(43690, 2);
    t.choices = wrong_choices[_i].choices;
    t.choice_count = wrong_choices[_i].count;
    expect_refusal(&t);
}
END_TEST

enum { WRONG_TRIALS = 6 };

START_TEST(wrong_trials_are_refused)
{
    struct db_trial wrong[WRONG_TRIALS] = {plan_trial(65536, 2),           plan_trial(-1, 2),
                                           plan_trial(43690, NAN),         failed_trial(43690, ""),
                                           segment_trial(some_choices, 1), plan_trial(43690, 2)};
    wrong[4].choice_count = 2;
    wrong[5].search = "nobody's";
    expect_refusal(&wrong[_i]);
}
END_TEST

/* In a database that was just made, and in one that is opened again. */
START_TEST(trial_of_no_study_is_refused)
{
    struct db_trial t = plan_trial(43690, 2);
    FAILS(db_trial_add(db, study + 1, &t, &st), STATUS_DATABASE, "FOREIGN KEY");
    db_close(db);
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    FAILS(db_trial_add(db, study + 1, &t, &st), STATUS_DATABASE, "FOREIGN KEY");
}
END_TEST

START_TEST(names_of_ends_go_both_ways)
{
    for (int end = TRIAL_OK; end <= TRIAL_FAILED; end++)
        ck_assert_int_eq(trial_status_from_name(trial_status_name((enum trial_status)end)), end);
    ck_assert_int_eq(trial_status_from_name("nonsense"), TRIAL_FAILED);
}
END_TEST

SUITE("db/trial", setup, teardown, ONCE(trials_come_back_as_stored),
      ONCE(second_trial_yields_to_the_first), ONCE(failure_yields_and_is_kept),
      ONCE(comparison_is_stored_whole_or_not_at_all), ONCE(walk_stops_when_told),
      ONCE(times_come_without_choices),
      LOOP(wrong_choices_are_refused, 0, ARRAY_LEN(wrong_choices)),
      LOOP(wrong_trials_are_refused, 0, WRONG_TRIALS), ONCE(trial_of_no_study_is_refused),
      ONCE(names_of_ends_go_both_ways))
