/* Checksums of pages. */
#include "tests/db/fixture.h"

enum { FLIPS = 300, NOTICED_LEAST = 297 };

/* A database whose pages are all in the file. */
static void make_database(void)
{
    int64_t study;
    char search[HASH_TEXT_SIZE], comparison[16];
    SCOPED_BY(db_close_at) struct db *db = open_fresh(&study);
    OK(db_search_start(db, study, "random", "{}", search, &st));
    for (int i = 0; i < 100; i++) {
        snprintf(comparison, sizeof(comparison), "c%d", i);
        struct db_trial trials[] = {plan_trial(i, 2), final_trial(i, 2, comparison)};
        OK(db_trials_add(db, study, trials, ARRAY_LEN(trials), &st));
    }
}

static struct buf read_database(const char *path)
{
    struct buf bytes = BUF_INIT;
    OK(file_read(path, 64 << 20, &bytes, &st));
    return bytes;
}

static void ignore_problem(void *ctx, const char *problem)
{
    ck_assert_str_ne(problem, "");
}

/* Whether db_open() or db_check() say that something is wrong. */
static bool is_noticed(void)
{
    struct db *db;
    struct status said = STATUS_INIT;
    int problems = 0;
    int result = db_open(test_path("t.db"), DB_READ, &db, &said);
    if (result == 0) {
        result = db_check(db, ignore_problem, NULL, &problems, &said);
        db_close(db);
    }
    return result != 0 || problems > 0;
}

/* Half of the pages are free then, as after 'db forget'. */
static void free_pages(void)
{
    SCOPED_BY(db_close_at) struct db *db;
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    exec_sql(db->handle, "CREATE TABLE x AS SELECT randomblob(4096) FROM sample LIMIT 100;"
                         "DROP TABLE x");
    ck_assert_int_ge(count_sql(db->handle, "PRAGMA freelist_count"), 90);
}

/* How many of FLIPS bits that are flipped one by one are noticed. */
static int flip_bits(void)
{
    struct rng rng = {.state = 1};
    int noticed = 0;
    SCOPED_BUF bytes = read_database(test_path("t.db"));
    ck_assert(!is_noticed());
    for (int i = 0; i < FLIPS; i++) {
        size_t at = rng_below(&rng, (uint32_t)bytes.len);
        char bit = (char)(1 << rng_below(&rng, 8));
        bytes.ptr[at] ^= bit;
        OK(file_write(test_path("t.db"), bytes.ptr, bytes.len, &st));
        bytes.ptr[at] ^= bit;
        noticed += is_noticed();
    }
    return noticed;
}

/* _i: half of the pages are free. */
TEST_LOOP(flipped_bit_is_noticed, 0, 2)
{
    make_database();
    if (_i == 1)
        free_pages();
    ck_assert_int_ge(flip_bits(), NOTICED_LEAST);
}

/* Of free pages the checksum alone tells. */
TEST(page_in_anothers_place_is_noticed)
{
    make_database();
    free_pages();
    SCOPED_BUF bytes = read_database(test_path("t.db"));
    char *last = bytes.ptr + bytes.len - 4096;
    ck_assert_mem_ne(last - 4096, last, 4096);
    memcpy(last - 4096, last, 4096);
    OK(file_write(test_path("t.db"), bytes.ptr, bytes.len, &st));
    ck_assert(is_noticed());
}

static void write_plainly(const char *path, const char *sql)
{
    sqlite3 *plain;
    ck_assert_int_eq(sqlite3_open(path, &plain), SQLITE_OK);
    exec_sql(plain, sql);
    sqlite3_close(plain);
}

/* By a program that knows nothing of the checksums, while the WAL holds pages. */
TEST(copy_of_a_database_in_use_is_whole)
{
    struct db *db;
    int64_t study;
    make_database();
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    OK(db_study(db, &a_workload, &a_target, "2", &study, &st));
    struct db_trial trial = plan_trial(7, 2);
    OK(db_trial_add(db, study, &trial, &st));

    sqlite3 *from, *to;
    ck_assert_int_eq(sqlite3_open(test_path("t.db"), &from), SQLITE_OK);
    ck_assert_int_eq(sqlite3_open(test_path("copy.db"), &to), SQLITE_OK);
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    ck_assert_int_eq(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    ck_assert_int_eq(sqlite3_backup_finish(backup), SQLITE_OK);
    sqlite3_close(from);
    sqlite3_close(to);
    db_close(db);

    OK(db_open(test_path("copy.db"), DB_READ, &db, &st));
    assert_whole(db);
    db_close(db);
}

TEST(change_by_another_program_is_told_and_vacuum_mends_it)
{
    struct db *db;
    int problems = 0;
    make_database();
    write_plainly(test_path("t.db"), "UPDATE trial SET build_s = 7");
    OK(db_open(test_path("t.db"), DB_READ, &db, &st));
    OK(db_check(db, ignore_problem, NULL, &problems, &st));
    ck_assert_int_ge(problems, 1);
    FAILS(db_trials(db, 1, DB_TRIAL_PLAN, NULL, NULL, &st), STATUS_DATABASE, "VACUUM");
    db_close(db);

    write_plainly(test_path("t.db"), "VACUUM");
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    assert_whole(db);
    db_close(db);
}

TEST(database_without_checksums_gets_them)
{
    struct db *db;
    sqlite3 *plain;
    ck_assert_int_eq(sqlite3_open(test_path("t.db"), &plain), SQLITE_OK);
    OK(schema_migrate(plain, "t.db", schema_migrations, SCHEMA_FIRST, schema_version, &st));
    exec_sql(plain, "INSERT INTO plan VALUES (43690, '0 1')");
    sqlite3_close(plain);
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    expect_sql(db->handle, 43690, "SELECT value FROM plan");
    assert_whole(db);
    db_close(db);
    ck_assert_int_ge(flip_bits(), NOTICED_LEAST);
}

SUITE("db/pages", memory_dir_setup, test_dir_teardown)
