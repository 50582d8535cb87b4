#include "tests/db/fixture.h"

/* Each row breaks one rule of a database that is whole: what to plant, what must be said. */
static const struct {
    const char *plant, *problem;
} planted[] = {
    {"UPDATE trial SET median_ms = NULL WHERE id = 1", "trial 1 is ok but has no median"},
    {"UPDATE trial SET ci_high_ms = 1 WHERE id = 1", "outside its interval"},
    {"UPDATE trial SET reason_code = '' WHERE id = 3", "trial 3 failed without a reason"},
    {"UPDATE trial SET kind = 'guess' WHERE id = 1",
     "trial 1: 'kind' is 'guess', expected segment, plan or final"},
    {"UPDATE trial SET plan = NULL WHERE id = 1", "names no plan and no schedule"},
    {"UPDATE trial SET search = (SELECT id FROM search WHERE study = 2) WHERE id = 1",
     "another study than its search"},
    {"DROP INDEX trial_of_plan; UPDATE trial SET plan = 50 WHERE id = 3",
     "study 1 has 2 trials of kind plan of plan 50"},
    {"DROP INDEX trial_of_schedule; CREATE TEMP TABLE twin AS SELECT * FROM trial WHERE id = 4;"
     "UPDATE twin SET id = 9; INSERT INTO trial SELECT * FROM twin",
     "study 1 has 2 trials of kind segment of schedule 1"},
    {"UPDATE study SET plans = 1 WHERE id = 1",
     "study 1 counts 4 trials and 1 plans, 4 and 2 are stored"},
    {"UPDATE trial SET sample_count = 7 WHERE id = 2", "trial 2 has 6 samples stored, 7 expected"},
    {"UPDATE trial SET median_ms = 2.0625 WHERE id = 2",
     "trial 2 has a median of 2.0625 ms, its samples one of 2"},
    {"UPDATE sample SET round = 9 WHERE trial = 2 AND round = 3", "rounds 0..9, not 0..5"},
    {"DELETE FROM choice WHERE trial = 1 AND schedule = 2", "do not cover"},
    {"UPDATE segment SET last_op = 7 WHERE first_op = 2", "do not cover"},
    {"INSERT INTO choice VALUES (4, 1)", "trial 4 has choices"},
    {"UPDATE plan SET segments = '0-14' WHERE value = 50",
     "the choices of trial 1 are the segments 0-1 2-6 7-14, its plan 50 has 0-14"},
    {"INSERT INTO plan VALUES (65536, '0-14')",
     "table 'plan', 'value' is '65536', expected 0 to 65535"},
    {"DELETE FROM plan WHERE value = 50", "row of plan that is missing"},
    {"INSERT INTO model (study, name, features, seed, quantile, rows, report, trained_utc)"
     " VALUES (9, 'm', 1, 0, 0.1, '', '', '')",
     "row of study that is missing"},
    /* An index that lost rows: only SQLite's own check sees it. */
    {"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '<> ''ok''',"
     " '= ''ok''') WHERE name = 'trial_by_status'",
     "trial_by_status"},
};

static struct db *open_whole(void)
{
    int64_t study, other;
    char search[HASH_TEXT_SIZE];
    struct db *db = open_fresh(&study);
    OK(db_study(db, &a_workload, &a_target, "2", &other, &st));
    OK(db_search_start(db, other, "random", "{}", search, &st));
    OK(db_search_start(db, study, "random", "{}", search, &st));
    struct db_trial trials[] = {plan_trial(50, 2), final_trial(50, 2, "a"),
                                failed_trial(51, "wrong"), segment_trial(&some_choices[0], 1)};
    trials[0].search = search;
    for (size_t i = 0; i < ARRAY_LEN(trials); i++)
        OK(db_trial_add(db, study, &trials[i], &st));
    return db;
}

static void keep_problem(void *ctx, const char *problem)
{
    buf_addf(ctx, "%s\n", problem);
}

TEST(whole_database_has_no_problem)
{
    struct db *db = open_whole();
    assert_whole(db);
    db_close(db);
    OK(db_open(test_path("t.db"), DB_READ, &db, &st));
    assert_whole(db);
    db_close(db);
}

static void keep_step(void *ctx, const struct step *step)
{
    int64_t *told = ctx;
    ck_assert_str_eq(step->phase, "rules");
    ck_assert_int_eq(step->done, *told);
    ck_assert_int_gt(step->total, step->done);
    ++*told;
}

TEST(each_rule_is_told)
{
    int problems;
    int64_t told = 0;
    SCOPED_BY(db_close_at) struct db *db = open_whole();
    db_listen(db, (struct listener){.report = keep_step, .ctx = &told});
    OK(db_check(db, NULL, NULL, &problems, &st));
    ck_assert_int_ge(told, 20);
}

TEST_LOOP(planted_problem_is_found, 0, ARRAY_LEN(planted))
{
    SCOPED_BUF found = BUF_INIT;
    int problems;
    db_close(open_whole());
    sqlite3 *raw = open_raw(test_path("t.db"));
    exec_sql(raw, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
    exec_sql(raw, planted[_i].plant);
    ck_assert_int_ge(sqlite3_changes(raw), 1);
    sqlite3_close(raw);

    SCOPED_BY(db_close_at) struct db *db;
    OK(db_open(test_path("t.db"), DB_READ, &db, &st));
    OK(db_check(db, keep_problem, &found, &problems, &st));
    ck_assert_int_ge(problems, 1);
    ck_assert_msg(strstr(found.ptr, planted[_i].problem) != NULL, "%s", found.ptr);
}

TEST(info_counts_and_measures)
{
    struct db_info info;
    SCOPED_BY(db_close_at) struct db *db = open_whole();
    OK(db_info(db, &info, &st));
    ck_assert_int_eq(info.schema_version, schema_version);
    ck_assert_int_ge(info.bytes, 4096);
    ck_assert_int_eq(info.studies, 2);
    ck_assert_int_eq(info.workloads, 1);
    ck_assert_int_eq(info.targets, 1);
    ck_assert_int_eq(info.trials, 4);
    ck_assert_int_eq(info.samples, ARRAY_LEN(some_samples));
    ck_assert_int_eq(info.models, 0);
    ck_assert_int_eq(info.searches, 2);
}

SUITE("db/check", memory_dir_setup, test_dir_teardown)
