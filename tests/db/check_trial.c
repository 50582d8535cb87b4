/* Trials: stored, read back, refused. */
#include "tests/db/one_fixture.h"

/* What two processes do that search one study: neither stops, and the first result stays. */
TEST(second_trial_yields_to_the_first)
{
    SCOPED_BY(db_close_at) struct db *other;
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
}

/* A stored failure may have been the machine's: it gives way, and its reason is kept.  A failure
 * does not displace a time. */
TEST(failure_yields_and_is_kept)
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

TEST(comparison_is_stored_whole_or_not_at_all)
{
    struct db_trial finals[] = {final_trial(50, 3, "a"), final_trial(51, NAN, "a")};
    FAILS(db_trials_add(db, study, finals, 2, &st), STATUS_DATABASE, "");
    expect_sql(db->handle, 0, "SELECT count(*) FROM trial");
    finals[1].median_ms = finals[1].ci_low_ms = finals[1].ci_high_ms = 1;
    OK(db_trials_add(db, study, finals, 2, &st));
    expect_sql(db->handle, 2, "SELECT count(*) FROM trial");
    assert_whole(db);
}

static int expect_no_choices(void *ctx, const struct db_trial *t)
{
    ck_assert_int_eq(t->value, 7);
    ck_assert_double_eq(t->median_ms, 1);
    ck_assert_int_eq(t->choice_count, 0);
    ++*(int *)ctx;
    return 0;
}

TEST(times_come_without_choices)
{
    int seen = 0;
    struct db_trial t = plan_trial(7, 1);
    OK(db_trial_add(db, study, &t, &st));
    OK(db_trial_times(db, study, DB_TRIAL_PLAN, expect_no_choices, &seen, &st));
    ck_assert_int_eq(seen, 1);
}

static const struct {
    struct db_choice choices[2];
    int count;
} wrong_choices[] = {
    {{{{0, 1}, "generated", ""}, {{3, 14}, "generated", ""}}, 2}, /* a gap */
    {{{{0, 7}, "generated", ""}, {{7, 14}, "generated", ""}}, 2},
    {{{{0, 13}, "generated", ""}}, 1},
    {{{{0, 15}, "generated", ""}}, 1},
    {{{{0, -1}, "generated", ""}, {{0, 14}, "generated", ""}}, 2},
    {{{{0, 14}, "generated", ""}}, 0},
};

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

TEST_LOOP(wrong_choices_are_refused, 0, ARRAY_LEN(wrong_choices))
{
    struct db_trial t = plan_trial(43690, 2);
    t.choices = wrong_choices[_i].choices;
    t.choice_count = wrong_choices[_i].count;
    expect_refusal(&t);
}

enum { WRONG_TRIALS = 6 };

TEST_LOOP(wrong_trials_are_refused, 0, WRONG_TRIALS)
{
    struct db_trial wrong[WRONG_TRIALS] = {plan_trial(65536, 2),           plan_trial(-1, 2),
                                           plan_trial(43690, NAN),         failed_trial(43690, ""),
                                           segment_trial(some_choices, 1), plan_trial(43690, 2)};
    wrong[4].choice_count = 2;
    wrong[5].search = "nobody's";
    expect_refusal(&wrong[_i]);
}

/* In a database that was just made, and in one that is opened again. */
TEST(trial_of_no_study_is_refused)
{
    struct db_trial t = plan_trial(43690, 2);
    FAILS(db_trial_add(db, study + 1, &t, &st), STATUS_DATABASE, "FOREIGN KEY");
    db_close(db);
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    FAILS(db_trial_add(db, study + 1, &t, &st), STATUS_DATABASE, "FOREIGN KEY");
}

SUITE("db/trial", setup, teardown)
