/* A database whose rows hold anything: every reader refuses them or reads them, and db_check()
 * names what they refuse. */
#include "tests/db/move_fixture.h"

/* What to plant, and what every reader that comes by says. */
static const struct {
    const char *plant, *said;
} planted[] = {
    {"UPDATE trial SET plan = 9999999 WHERE id = 1",
     "table 'trial', trial 1: 'plan' is '9999999', expected 0 to 65535"},
    {"UPDATE trial SET plan = -50000000 WHERE id = 2", "'plan' is '-50000000'"},
    {"UPDATE trial SET plan = NULL WHERE id = 1", "trial 1 has no plan"},
    {"UPDATE trial SET schedule = 2 WHERE id = 1", "trial 1 has a schedule, but it is of a plan"},
    {"UPDATE trial SET schedule = NULL WHERE kind = 'segment'", "has no schedule"},
    {"UPDATE trial SET median_ms = NULL WHERE id = 1", "trial 1 has no median, but it is ok"},
    {"UPDATE trial SET median_ms = 9e999 WHERE id = 1", "'median_ms' is 'Inf', expected a finite"},
    {"UPDATE trial SET ci_low_ms = 3 WHERE id = 1", "trial 1 has a median outside its interval"},
    {"UPDATE trial SET status = 'fine' WHERE id = 1", "expected ok, censored or failed"},
    {"UPDATE trial SET sample_count = -5000000000", "'sample_count' is '-5000000000', expected 0"},
    {"UPDATE trial SET sample_count = 2147483647", "'sample_count' is '2147483647', expected 0"},
    {"UPDATE trial SET stored_utc = 'yesterday'", "'stored_utc' is 'yesterday', expected a time"},
    {"UPDATE trial SET comparison = CAST(x'ff1b' AS TEXT)", "'comparison' is '?\\x1b', expected"},
    {"UPDATE sample SET ms = 0", "table 'sample', 'ms' is '0.0', expected a finite time above 0"},
    {"UPDATE segment SET last_op = 99", "table 'segment', "},
    {"UPDATE segment SET first_op = -100", "'first_op' is '-100', expected 0 to 14"},
    {"UPDATE schedule SET knobs = CAST(x'ff' AS TEXT)", "'knobs' is '?', expected a text in UTF-8"},
    {"UPDATE workload SET seq_len = -1", "table 'workload', study 1: 'seq_len' is '-1', expected"},
    {"UPDATE workload SET eps = 9e999", "'eps' is 'Inf'"},
    {"UPDATE workload SET eps = 1e-300", "'eps' is '1.0e-300', expected a number from 1e-37 to 1"},
    {"UPDATE workload SET eps = 0", "'eps' is '0.0'"},
    {"UPDATE target SET kind = 'abacus'", "'target_kind' is 'abacus', expected cpu or cuda"},
    {"UPDATE study SET created_utc = ''", "'created_utc' is '', expected a time"},
    {"UPDATE search SET id = hex(zeroblob(40))", "expected 1 to 32 characters"},
    {"DROP TABLE sample; CREATE TABLE sample (trial, round, ms);"
     "INSERT INTO sample VALUES (2, 0, x'00')",
     "'ms' is a blob"},
};

/* Plans that were searched, one compared, and a segment; a search that asked for them. */
static struct db *open_full(void)
{
    int64_t study;
    char search[HASH_TEXT_SIZE];
    struct db_choice choices[OP_COUNT];
    struct db *db = open_named("t.db", &study);
    OK(db_search_start(db, study, "random", "{}", search, &st));
    struct db_trial plan = trial_of_plan(41115, choices), final = plan;
    plan.search = final.search = search;
    final.kind = DB_TRIAL_FINAL;
    final.comparison = "a";
    struct db_trial segment = segment_trial(&choices[0], 1);
    OK(db_trial_add(db, study, &plan, &st));
    OK(db_trial_add(db, study, &final, &st));
    OK(db_trial_add(db, study, &segment, &st));
    OK(db_model_put(
        db, &(struct db_model){.name = "m", .quantile = 0.1, .rows = "0101010101010101 1.5\n"},
        "{}", &st));
    return db;
}

static int ignore_row(void *ctx, const struct db_trial *t)
{
    return 0;
}

/* Appends what readers say: of trials, of the best plan, of all results. */
static void read_all(struct db *db, struct buf *out)
{
    struct db_best best;
    SCOPED_BUF text = BUF_INIT;
    struct status said[5];
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        said[i] = STATUS_INIT;
    for (int kind = DB_TRIAL_SEGMENT; kind <= DB_TRIAL_FINAL; kind++)
        db_trials(db, 1, (enum db_trial_kind)kind, ignore_row, NULL, &said[kind]);
    if (db_best(db, 1, &best, &said[3]) == 0)
        db_best_release(&best);
    db_export(db, &text, &said[4]);
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        buf_addf(out, "%s\n", said[i].message);
}

static void plant(const char *sql)
{
    sqlite3 *raw = open_raw(test_path("t.db"));
    exec_sql(raw, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
    exec_sql(raw, sql);
    sqlite3_close(raw);
}

TEST_LOOP(planted_value_is_refused_and_found, 0, ARRAY_LEN(planted))
{
    SCOPED_BY(db_close_at) struct db *db;
    SCOPED_BUF said = BUF_INIT;
    int problems;
    db_close(open_full());
    plant(planted[_i].plant);
    OK(db_open(test_path("t.db"), DB_READ, &db, &st));
    read_all(db, &said);
    ck_assert_msg(strstr(said.ptr, planted[_i].said) != NULL, "%s", said.ptr);
    OK(db_check(db, print_problem, NULL, &problems, &st));
    ck_assert_int_ge(problems, 1);
}

/* A compiler may say anything: what is stored has no escape, and another program's is refused. */
TEST(control_characters_are_escaped)
{
    int64_t study;
    SCOPED_BUF found = BUF_INIT;
    struct db_study read;
    struct db_target target = a_target;
    target.device = "\x1b]0;a processor";
    SCOPED_BY(db_close_at) struct db *db = open_named("t.db", &study);
    OK(db_study(db, &a_workload, &target, "1", &study, &st));
    struct db_trial failed = failed_trial(50, "wrong");
    failed.reason = "\x1b[31mred\x9b\n";
    OK(db_trial_add(db, study, &failed, &st));
    expect_sql(db->handle, 1, "SELECT count(*) FROM trial WHERE reason = '\\x1b[31mred\\x9b\\n'");
    expect_sql(db->handle, 1, "SELECT count(*) FROM target WHERE device = '\\x1b]0;a processor'");
    plant("UPDATE trial SET reason = CAST(x'1b5b33316d7265649b0a' AS TEXT)");
    FAILS(db_trials(db, study, DB_TRIAL_PLAN, NULL, NULL, &st), STATUS_DATABASE,
          "control characters");
    plant("UPDATE target SET device = CAST(x'1b' AS TEXT) WHERE id = 2");
    FAILS(db_study_read(db, study, &found, &read, &st), STATUS_DATABASE, "control characters");
}

/* Every column that a statement names has a rule, but for ids that are not read. */
TEST(every_column_has_a_rule)
{
    SCOPED_BY(db_close_at) struct db *db = open_full();
    for (int id = 0; id < SQL_COUNT; id++) {
        struct query q = query_start(db, (enum db_statement)id);
        ck_assert_int_eq(q.result, SQLITE_OK);
        for (int i = 0; i < sqlite3_column_count(q.stmt); i++) {
            const char *name = sqlite3_column_name(q.stmt, i);
            size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyz_");
            bool expression = name[letters] != '\0';
            ck_assert_msg(expression || strcmp(name, "id") == 0 || q.rules[i] != NULL, "'%s' of %s",
                          name, sqlite3_sql(q.stmt));
        }
    }
}

SUITE("db/rows", memory_dir_setup, test_dir_teardown)
