/* Merging. */
#include "tests/db/move_fixture.h"

static struct db_moved merge(const char *into, const char *from)
{
    SCOPED_BY(db_close_at) struct db *db;
    struct db_moved moved;
    const char *path = test_path(from);
    OK(db_open(test_path(into), DB_WRITE, &db, &st));
    OK(db_merge(db, &path, 1, &moved, &st));
    assert_whole(db);
    return moved;
}

static void make_three(void)
{
    static const char *const names[] = {"a.db", "b.db", "c.db"};
    int64_t study;
    for (int i = 0; i < (int)ARRAY_LEN(names); i++) {
        SCOPED_BY(db_close_at) struct db *db = open_named(names[i], &study);
        char utc[] = "2026-01-01T00:00:00.000Z";
        utc[18] = (char)('0' + (i == 1 ? 9 : i)); /* b measured last */
        add_plan_at(db, study, 41115, 2 + i, utc);
        add_plan_at(db, study, 43690, 2 + i, "2026-01-01T00:00:00.000Z"); /* at once */
        fill(db, study);
    }
}

TEST(merging_in_any_order_gives_one_outcome)
{
    static const char *const orders[][3] = {
        {"a.db", "b.db", "c.db"}, {"c.db", "b.db", "a.db"}, {"b.db", "c.db", "a.db"}};
    char *texts[3];
    make_three();
    for (int i = 0; i < 3; i++) {
        char name[] = "m0.db";
        name[1] = (char)('0' + i);
        int64_t conflicts = 0;
        for (int k = 0; k < 3; k++)
            conflicts += merge(name, orders[i][k]).conflicts;
        ck_assert_int_eq(conflicts, 8); /* two plans, a segment and a final, twice */
        struct db_moved again = merge(name, orders[i][0]);
        ck_assert_int_eq(again.added + again.replaced, 0);
        texts[i] = text_at(name);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    ck_assert_str_eq(texts[0], texts[2]);
    ck_assert_ptr_nonnull(strstr(texts[0], "\"stored_utc\":\"2026-01-01T00:00:09.000Z\","
                                           "\"median_ms\":3,"));
    for (int i = 0; i < 3; i++)
        free(texts[i]);
}

static const struct {
    const char *sql, *message;
} damage[] = {
    {"DELETE FROM choice WHERE trial = 1", "the choices of a trial in "},
    {"UPDATE trial SET search = '00ff' WHERE id = 1", "has the search '00ff'"},
    {"UPDATE trial SET plan = 36864 WHERE id = 1", "8 choices are there; expected 3;"},
    {"UPDATE trial SET plan = 0 WHERE id = 1", "a plan has a canonical value"},
    {"UPDATE trial SET reason_code = '' WHERE status = 'failed'", "has no reason, but it failed"},
    {"DELETE FROM sample WHERE round = 1", "5 samples are there; expected 6"},
};

static void count_files(void *ctx, const struct step *step)
{
    int *files = ctx;
    if (strcmp(step->phase, "files") != 0)
        return;
    ck_assert_int_eq(step->done, *files);
    ck_assert_int_eq(step->total, 2);
    ++*files;
}

TEST(merge_tells_its_files)
{
    struct db *a;
    struct db_moved moved[2];
    int files = 0;
    const char *paths[2];
    paths[0] = paths[1] = mem_strdup(test_path("b.db"));
    int64_t study;
    db_close(open_named("b.db", &study));
    a = open_named("a.db", &study);
    db_listen(a, (struct listener){count_files, &files});
    OK(db_merge(a, paths, 2, moved, &st));
    ck_assert_int_eq(files, 2);
    db_close(a);
    free((char *)paths[0]);
}

TEST_LOOP(merge_is_all_or_nothing, 0, ARRAY_LEN(damage))
{
    int64_t study;
    struct db_moved moved[2];
    make_three();
    const char *paths[] = {test_path("a.db"), test_path("b.db")};
    sqlite3 *raw = open_raw(test_path("b.db"));
    exec_sql(raw, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
    exec_sql(raw, damage[_i].sql);
    sqlite3_close(raw);
    SCOPED_BY(db_close_at) struct db *db = open_named("m.db", &study);
    FAILS(db_merge(db, paths, 2, moved, &st), STATUS_DATABASE, damage[_i].message);
    paths[1] = test_path("none.db");
    FAILS(db_merge(db, paths, 2, moved, &st), STATUS_NOT_FOUND, "there is no database");
    expect_sql(db->handle, 0, "SELECT count(*) FROM trial");
}

/* Neither database is damaged. */
TEST(search_of_another_study_is_refused)
{
    int64_t study;
    struct db_moved moved;
    char id[HASH_TEXT_SIZE];
    const char *path = test_path("b.db");
    SCOPED_BY(db_close_at) struct db *a = open_named("a.db", &study);
    SCOPED_BY(db_close_at) struct db *b = open_named("b.db", &study);
    OK(db_search_start(a, study, "guided", "{}", id, &st));
    OK(db_study(b, &a_workload, &a_target, "2", &study, &st));
    OK(db_search_start(b, study, "guided", "{}", id, &st));
    SCOPED_BUF sql = BUF_INIT;
    buf_addf(&sql, "UPDATE search SET id = '%s'", id);
    exec_sql(a->handle, sql.ptr);
    FAILS(db_merge(a, &path, 1, &moved, &st), STATUS_DATABASE, "belongs to another study in '");
}

TEST(merge_keeps_failures_that_it_replaces)
{
    int64_t study;
    SCOPED_BY(db_close_at) struct db *a = open_named("a.db", &study);
    SCOPED_BY(db_close_at) struct db *b = open_named("b.db", &study);
    struct db_choice choices[OP_COUNT];
    struct db_trial failed = trial_of_plan(41115, choices);
    failed.status = TRIAL_FAILED;
    failed.reason_code = "compile";
    failed.reason = "no";
    failed.median_ms = failed.ci_low_ms = failed.ci_high_ms = NAN;
    failed.sample_count = 0;
    failed.stored_utc = "2026-01-01T00:00:00.000Z";
    OK(db_trial_add(a, study, &failed, &st));
    add_plan_at(b, study, 41115, 2, "2026-01-01T00:00:09.000Z");
    ck_assert_int_eq(merge("a.db", "b.db").replaced, 1);
    expect_sql(a->handle, 1, "SELECT count(*) FROM failure WHERE reason = 'no'");
    expect_sql(a->handle, 1, "SELECT count(*) FROM trial WHERE status = 'ok'");
}

SUITE("db/merge", memory_dir_setup, test_dir_teardown)
