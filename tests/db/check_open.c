#include "tests/db/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_text(const char *path, const void *data, size_t len)
{
    struct status st;
    OK(file_write(path, data, len, &st));
}

START_TEST(creates_the_file_and_its_directory)
{
    struct status st;
    struct db *db;
    OK(db_open(test_path("a/b/c.db"), DB_WRITE, &db, &st));
    ck_assert_str_eq(db_path(db), test_path("a/b/c.db"));
    db_close(db);
    ck_assert(file_exists(test_path("a/b/c.db")));
    ck_assert(!file_exists(test_path("a/b/c.db-wal")));
    ck_assert(!file_exists(test_path("a/b/c.db-shm")));
}
END_TEST

START_TEST(names_mean_nothing_to_sqlite)
{
    static const char *const names[] = {":memory:", "file:x?mode=memory", "a%41 b#c",
                                        "ä?immutable=1"};
    struct status st;
    struct db *db;
    ck_assert_int_eq(chdir(test_dir), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        OK(db_open(names[i], DB_WRITE, &db, &st));
        db_close(db);
        ck_assert_msg(file_exists(names[i]), "%s", names[i]);
        OK(db_open(names[i], DB_READ, &db, &st));
        db_close(db);
    }
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(default_place_follows_the_environment)
{
    struct status st;
    struct db *db;
    setenv("XDG_DATA_HOME", test_dir, 1);
    unsetenv("FUSEPLAN_DB");
    OK(db_open(NULL, DB_WRITE, &db, &st));
    ck_assert_str_eq(db_path(db), test_path("fuseplan/fuseplan.db"));
    db_close(db);
    setenv("FUSEPLAN_DB", test_path("mine"), 1);
    OK(db_open(NULL, DB_WRITE, &db, &st));
    ck_assert_str_eq(db_path(db), test_path("mine"));
    db_close(db);
}
END_TEST

START_TEST(read_creates_nothing)
{
    struct status st;
    struct db *db;
    FAILS(db_open(test_path("none.db"), DB_READ, &db, &st), STATUS_NOT_FOUND, "none.db");
    ck_assert_ptr_null(db);
    ck_assert(!file_exists(test_path("none.db")));

    write_text(test_path("empty"), "", 0);
    FAILS(db_open(test_path("empty"), DB_READ, &db, &st), STATUS_NOT_FOUND, "empty");
    ck_assert(!file_exists(test_path("empty-wal")));
}
END_TEST

START_TEST(read_leaves_the_file_alone)
{
    struct status st;
    struct buf before, after;
    struct db *db;
    int64_t study;
    buf_init(&before);
    buf_init(&after);
    db_close(open_fresh(&study));
    OK(file_read(test_path("t.db"), 0, &before, &st));

    OK(db_open(test_path("t.db"), DB_READ, &db, &st));
    OK(db_study_find(db, a_workload.text, "cpu", NULL, &study, &st));
    FAILS(db_study(db, &a_workload, &a_target, "2", &study, &st), STATUS_DATABASE, "written");
    db_close(db);

    ck_assert(!file_exists(test_path("t.db-wal")));
    ck_assert(!file_exists(test_path("t.db-shm")));
    OK(file_read(test_path("t.db"), 0, &after, &st));
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.ptr, after.ptr, after.len);
    buf_release(&before);
    buf_release(&after);
}
END_TEST

START_TEST(empty_file_becomes_a_database)
{
    struct status st;
    struct db *db;
    write_text(test_path("t.db"), "", 0);
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    assert_whole(db);
    db_close(db);
}
END_TEST

/* ---- what is not a database of ours
 * ------------------------------------------------------------*/

START_TEST(directory_is_refused)
{
    struct status st;
    struct db *db;
    FAILS(db_open(test_dir, _i == 0 ? DB_READ : DB_WRITE, &db, &st), STATUS_DATABASE,
          "is a directory");
    ck_assert_ptr_null(db);
}
END_TEST

START_TEST(file_as_a_directory_is_refused)
{
    struct status st;
    struct db *db;
    write_text(test_path("f"), "x", 1);
    FAILS(db_open(test_path("f/t.db"), _i == 0 ? DB_READ : DB_WRITE, &db, &st), STATUS_DATABASE,
          "Not a directory");
}
END_TEST

START_TEST(random_bytes_are_refused)
{
    struct status st;
    struct db *db;
    uint64_t noise[512];
    struct rng rng = {1};
    for (size_t i = 0; i < ARRAY_LEN(noise); i++)
        noise[i] = rng_next(&rng);
    write_text(test_path("noise"), noise, sizeof(noise));
    FAILS(db_open(test_path("noise"), _i == 0 ? DB_READ : DB_WRITE, &db, &st), STATUS_DATABASE,
          "is not a fuseplan database");
    struct buf after;
    buf_init(&after);
    OK(file_read(test_path("noise"), 0, &after, &st));
    ck_assert_uint_eq(after.len, sizeof(noise));
    ck_assert_mem_eq(after.ptr, noise, sizeof(noise));
    buf_release(&after);
}
END_TEST

START_TEST(damaged_file_is_told)
{
    struct status st;
    struct db *db;
    int64_t study;
    db_close(open_fresh(&study));
    int fd = open(test_path("t.db"), O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 6000), 0);
    close(fd);
    FAILS(db_open(test_path("t.db"), DB_READ, &db, &st), STATUS_DATABASE, "is damaged");
}
END_TEST

static const char *const foreign[] = {
    "CREATE TABLE t (x)",
    "PRAGMA application_id = 252006674; CREATE TABLE t (x)", /* a GeoPackage's, or anyone's */
    "PRAGMA user_version = 1",
};

START_TEST(other_applications_files_are_refused)
{
    struct status st;
    struct db *db;
    sqlite3 *raw = open_raw(test_path("other"));
    exec_sql(raw, foreign[_i]);
    sqlite3_close(raw);
    FAILS(db_open(test_path("other"), DB_READ, &db, &st), STATUS_DATABASE, "another application");
    FAILS(db_open(test_path("other"), DB_WRITE, &db, &st), STATUS_DATABASE, "another application");

    raw = open_raw(test_path("other")); /* untouched: not even its journal mode changed */
    ck_assert_int_eq(count_sql(raw, "SELECT journal_mode = 'delete' FROM pragma_journal_mode"), 1);
    sqlite3_close(raw);
}
END_TEST

START_TEST(newer_version_is_refused)
{
    struct status st;
    struct db *db;
    int64_t study;
    db_close(open_fresh(&study));
    sqlite3 *raw = open_raw(test_path("t.db"));
    exec_sql(raw, "PRAGMA user_version = 99");
    sqlite3_close(raw);
    FAILS(db_open(test_path("t.db"), DB_READ, &db, &st), STATUS_DATABASE, "version 99");
    FAILS(db_open(test_path("t.db"), DB_WRITE, &db, &st), STATUS_DATABASE, "newer fuseplan");
}
END_TEST

START_TEST(older_version_is_not_migrated_by_a_reader)
{
    struct status st;
    struct db *db;
    int64_t study;
    db_close(open_fresh(&study));
    sqlite3 *raw = open_raw(test_path("t.db"));
    exec_sql(raw, "PRAGMA user_version = 0");
    FAILS(db_open(test_path("t.db"), DB_READ, &db, &st), STATUS_DATABASE, "version 0");
    ck_assert_int_eq(count_sql(raw, "PRAGMA user_version"), 0);
    sqlite3_close(raw);
}
END_TEST

START_TEST(updating_creates_nothing)
{
    struct status st;
    struct db *db;
    int64_t study, found;
    FAILS(db_open(test_path("t.db"), DB_UPDATE, &db, &st), STATUS_NOT_FOUND, "no database");
    ck_assert(!file_exists(test_path("t.db")));
    db_close(open_fresh(&study));
    OK(db_open(test_path("t.db"), DB_UPDATE, &db, &st));
    OK(db_study(db, &a_workload, &a_target, "2", &found, &st));
    ck_assert_int_ne(found, study);
    db_close(db);
}
END_TEST

/* ---- what the system refuses ------------------------------------------------------------------
 */

/* Runs body in a process without root's rights, for which no mode is an obstacle. */
static void as_nobody(void (*body)(void))
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        enum { NOBODY = 65534 };
        if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
            _exit(2);
        body();
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* In the child no ck_assert: it would end the wrong process. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void read_works_write_does_not(void)
{
    struct status st = STATUS_INIT;
    struct db *db;
    int64_t study;
    REQUIRE(db_open(test_path("t.db"), DB_READ, &db, &st) == 0);
    REQUIRE(db_study_find(db, a_workload.text, "cpu", NULL, &study, &st) == 0);
    db_close(db);
    REQUIRE(!file_exists(test_path("t.db-wal")));

    REQUIRE(db_open(test_path("t.db"), DB_WRITE, &db, &st) == -1);
    REQUIRE(st.code == STATUS_DATABASE && db == NULL);
    REQUIRE(strstr(st.message, "cannot be written: Permission denied") != NULL);
}

/* 0: a file and a directory that are read-only; 1: the file; 2: the directory. */
START_TEST(read_only_file_can_be_read)
{
    int64_t study;
    db_close(open_fresh(&study));
    ck_assert_int_eq(chmod(test_path("t.db"), _i == 2 ? 0666 : 0444), 0);
    ck_assert_int_eq(chmod(test_dir, _i == 1 ? 0777 : 0555), 0);
    as_nobody(read_works_write_does_not);
    ck_assert_int_eq(chmod(test_dir, 0777), 0);
}
END_TEST

static void cannot_create(void)
{
    struct status st = STATUS_INIT;
    struct db *db;
    REQUIRE(db_open(test_path("t.db"), DB_WRITE, &db, &st) == -1);
    REQUIRE(strstr(st.message, "Permission denied") != NULL);
    st = STATUS_INIT;
    REQUIRE(db_open(test_path("sub/t.db"), DB_WRITE, &db, &st) == -1);
    REQUIRE(strstr(st.message, "Permission denied") != NULL);
}

START_TEST(path_that_cannot_be_written_is_refused)
{
    ck_assert_int_eq(chmod(test_dir, 0555), 0);
    as_nobody(cannot_create);
    ck_assert_int_eq(chmod(test_dir, 0777), 0);
}
END_TEST

static void cannot_read(void)
{
    struct status st = STATUS_INIT;
    struct db *db;
    REQUIRE(db_open(test_path("t.db"), DB_READ, &db, &st) == -1);
    REQUIRE(st.code == STATUS_DATABASE);
    REQUIRE(strstr(st.message, "Permission denied") != NULL);
}

START_TEST(file_that_cannot_be_read_is_refused)
{
    int64_t study;
    db_close(open_fresh(&study));
    ck_assert_int_eq(chmod(test_path("t.db"), 0), 0);
    ck_assert_int_eq(chmod(test_dir, 0777), 0);
    as_nobody(cannot_read);
}
END_TEST

START_TEST(lock_of_another_is_waited_for_then_told)
{
    struct status st;
    int64_t study;
    struct db *db = open_fresh(&study);
    sqlite3 *raw = open_raw(test_path("t.db"));
    exec_sql(raw, "BEGIN IMMEDIATE");
    struct db_trial t = plan_trial(43690, 2);
    double start = clock_seconds();
    FAILS(db_trial_add(db, study, &t, &st), STATUS_DATABASE, "is locked by another process");
    double waited = clock_seconds() - start;
    ck_assert_double_ge(waited, 0.9 * DB_BUSY_MS / 1000);
    ck_assert_double_le(waited, 4.0 * DB_BUSY_MS / 1000);

    exec_sql(raw, "COMMIT");
    sqlite3_close(raw);
    OK(db_trial_add(db, study, &t, &st));
    db_close(db);
}
END_TEST

/* A disk that fills up, made of the limit on a file's size. */
START_TEST(full_disk_is_told_and_loses_nothing)
{
    struct status st;
    int64_t study;
    struct db *db = open_fresh(&study);
    struct db_trial t = final_trial(43690, 2, "a");
    OK(db_trial_add(db, study, &t, &st));

    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 300000, .rlim_max = old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int stored = 1;
    st = STATUS_INIT;
    while (stored < 10000 && db_trial_add(db, study, &t, &st) == 0)
        stored++;
    ck_assert_int_lt(stored, 10000);
    ck_assert_int_eq(st.code, STATUS_DATABASE);
    ck_assert_msg(strstr(st.message, "free space") != NULL, "%s", st.message);
    db_close(db);

    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    struct db_info info;
    OK(db_info(db, &info, &st));
    ck_assert_int_eq(info.trials, stored);
    assert_whole(db);
    db_close(db);
}
END_TEST

/* SQLite's own report of a full disk. */
START_TEST(full_database_is_told)
{
    struct status st;
    int64_t study;
    struct db *db = open_fresh(&study);
    exec_sql(db->handle, "PRAGMA max_page_count = 1"); /* of what is there: no page more */
    struct db_trial t = final_trial(43690, 2, "a");
    st = STATUS_INIT;
    int stored = 0;
    while (stored < 10000 && db_trial_add(db, study, &t, &st) == 0)
        stored++;
    ck_assert_int_lt(stored, 10000);
    ck_assert_msg(strstr(st.message, "cannot grow") != NULL, "%s", st.message);
    struct db_info info;
    OK(db_info(db, &info, &st));
    ck_assert_int_eq(info.trials, stored);
    assert_whole(db);
    db_close(db);
}
END_TEST

START_TEST(disk_full_at_creation_is_told)
{
    struct status st;
    struct db *db;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 20000, .rlim_max = old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    FAILS(db_open(test_path("t.db"), DB_WRITE, &db, &st), STATUS_DATABASE, "free space");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    assert_whole(db);
    db_close(db);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("db/open");
    TCase *t = tcase_create("open");
    tcase_set_timeout(t, 60); /* one waits for the busy timeout */
    tcase_add_checked_fixture(t, test_dir_setup, test_dir_teardown);
    tcase_add_test(t, creates_the_file_and_its_directory);
    tcase_add_test(t, names_mean_nothing_to_sqlite);
    tcase_add_test(t, default_place_follows_the_environment);
    tcase_add_test(t, read_creates_nothing);
    tcase_add_test(t, read_leaves_the_file_alone);
    tcase_add_test(t, empty_file_becomes_a_database);
    tcase_add_loop_test(t, directory_is_refused, 0, 2);
    tcase_add_loop_test(t, file_as_a_directory_is_refused, 0, 2);
    tcase_add_loop_test(t, random_bytes_are_refused, 0, 2);
    tcase_add_test(t, damaged_file_is_told);
    tcase_add_loop_test(t, other_applications_files_are_refused, 0, ARRAY_LEN(foreign));
    tcase_add_test(t, newer_version_is_refused);
    tcase_add_test(t, older_version_is_not_migrated_by_a_reader);
    tcase_add_test(t, updating_creates_nothing);
    tcase_add_loop_test(t, read_only_file_can_be_read, 0, 3);
    tcase_add_test(t, path_that_cannot_be_written_is_refused);
    tcase_add_test(t, file_that_cannot_be_read_is_refused);
    tcase_add_test(t, lock_of_another_is_waited_for_then_told);
    tcase_add_test(t, full_disk_is_told_and_loses_nothing);
    tcase_add_test(t, full_database_is_told);
    tcase_add_test(t, disk_full_at_creation_is_told);
    suite_add_tcase(s, t);
    return suite_run(s);
}
