#include "tests/db/fixture.h"

/* A shipped migration is never edited: what it made exists on disks.  One hash a version; a new
 * migration adds a row. */
static const char *const shipped[] = {"9364e730cc05dd66ca563c0b45c2fb91",
                                      "de414c73df251f9a7fe239a38a1eaa53",
                                      "101f8be8b5a051cf2ecaaef531eb097a"};

TEST_LOOP(shipped_migrations_are_unchanged, 0, ARRAY_LEN(shipped))
{
    char hash[HASH_TEXT_SIZE];
    ck_assert_int_eq(schema_version, SCHEMA_FIRST + (int)ARRAY_LEN(shipped) - 1);
    const char *sql = schema_migrations[_i];
    ck_assert_str_eq(hash_text(sql, strlen(sql), hash), shipped[_i]);
}

TEST(page_describes_todays_version)
{
    SCOPED_BUF path = BUF_INIT, page = BUF_INIT;
    char says[64];
    buf_addf(&path, "%s/../docs/database.md", getenv("FUSEPLAN_TEST_DATA"));
    OK(file_read(path.ptr, 0, &page, &st));
    snprintf(says, sizeof(says), "This page describes version %d.", schema_version);
    ck_assert_msg(strstr(page.ptr, says) != NULL, "docs/database.md lacks '%s'", says);
}

/* From version 10, as fuseplan 0.2.0 left it, to today's.  What it stored stays. */
TEST(version_of_the_release_becomes_todays)
{
    SCOPED_BY(db_close_at) struct db *db;
    sqlite3 *raw = open_raw(test_path("t.db"));
    OK(schema_migrate(raw, "t.db", schema_migrations, SCHEMA_FIRST, SCHEMA_OLDEST, &st));
    expect_sql(raw, SCHEMA_OLDEST, "PRAGMA user_version");
    exec_sql(raw,
             "INSERT INTO workload VALUES (1,'w',1,8,1,8,32,1,1e-5,'fp32','full','full','bert');"
             "INSERT INTO target VALUES (1,'cuda','d','u','c',1,'d','c','l');"
             "INSERT INTO study VALUES (1,1,1,'6',0,'uniform','2026-11-28T00:00:00.000Z',0,0);"
             "INSERT INTO plan VALUES (43690,'');"
             "INSERT INTO trial VALUES (1,1,NULL,'plan',43690,NULL,'ok','','',2.5,2,3,0,0,0,0,"
             "1,6,'','','2026-11-28T00:00:00.000Z','',0)");
    sqlite3_close(raw);

    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    struct db_info info;
    OK(db_info(db, &info, &st));
    ck_assert_int_eq(info.schema_version, schema_version);
    expect_sql(db->handle, 1, "SELECT count(*) FROM trial WHERE median_ms = 2.5 AND precision = 0");
    expect_sql(db->handle, 11, "SELECT trials * 10 + plans FROM study WHERE id = 1");
}

/* ---- the machinery, on a made-up history ----------------------------------------------------- */

static const char *const history[] = {
    "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);"
    "CREATE TABLE pet (id INTEGER PRIMARY KEY, owner INTEGER REFERENCES person (id));"
    "INSERT INTO person VALUES (1, 'ann'), (2, 'bob'); INSERT INTO pet VALUES (1, 2)",
    "ALTER TABLE person ADD COLUMN age_years INTEGER",
    /* Rebuilds a table that another refers to. */
    "CREATE TABLE new (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;"
    "INSERT INTO new SELECT id, upper(name) FROM person;"
    "DROP TABLE person; ALTER TABLE new RENAME TO person",
};

static const struct {
    const char *migration, *message;
} broken[] = {
    {"DELETE FROM pet; INSERT INTO nowhere VALUES (1)", "to schema version 4"},
    {"DELETE FROM person WHERE id = 2", "1 rows point to rows that are missing"},
};

TEST_LOOP(failed_migration_leaves_the_old_version, 0, ARRAY_LEN(broken))
{
    const char *const steps[] = {history[0], history[1], history[2], broken[_i].migration};
    sqlite3 *raw = open_raw(test_path("m.db"));
    OK(schema_migrate(raw, "m.db", history, 1, 1, &st));
    FAILS(schema_migrate(raw, "m.db", steps, 1, ARRAY_LEN(steps), &st), STATUS_DATABASE,
          broken[_i].message);
    expect_sql(raw, 1, "PRAGMA user_version");
    expect_sql(raw, 2, "SELECT count(*) FROM person WHERE name IN ('ann', 'bob')");
    expect_sql(raw, 1, "SELECT count(*) FROM pet");
    ck_assert_int_eq(sqlite3_get_autocommit(raw), 1);
    sqlite3_close(raw);
}

/* ---- the statements -------------------------------------------------------------------------- */

static int find_scan(void *ctx, int columns, char **values, char **names)
{
    static const char *const big[] = {"SCAN trial", "SCAN choice", "SCAN sample"};
    for (size_t i = 0; i < ARRAY_LEN(big); i++)
        ck_assert_msg(strstr(values[3], big[i]) == NULL, "%s: %s", (const char *)ctx, values[3]);
    return 0;
}

TEST_LOOP(statements_use_indexes, 0, SQL_COUNT)
{
    static const char *names[] = {
#define X(id, sql) #id,
#include "db/statements_int.h"
#undef X
    };
    if (_i == SQL_INFO ||          /* counts what is there: a walk by nature */
        _i == SQL_FORGET_SEARCHES) /* looks for trials of each search */
        return;
    int64_t study;
    SCOPED_BY(db_close_at) struct db *db = open_fresh(&study);
    struct query q = query_start(db, _i);
    ck_assert_int_eq(q.result, SQLITE_OK);
    char sql[2000];
    snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", sqlite3_sql(q.stmt));
    ck_assert_int_eq(sqlite3_exec(db->handle, sql, find_scan, (void *)names[_i], NULL), SQLITE_OK);
}

SUITE("db/schema", memory_dir_setup, test_dir_teardown)
