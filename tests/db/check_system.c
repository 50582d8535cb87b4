/* What the system refuses: permissions, locks, a full disk. */
#include "tests/db/fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>

/* ---- permissions ----------------------------------------------------------------------------- */

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
TEST_LOOP(read_only_file_can_be_read, 0, 3)
{
    int64_t study;
    db_close(open_fresh(&study));
    ck_assert_int_eq(chmod(test_path("t.db"), _i == 2 ? 0666 : 0444), 0);
    ck_assert_int_eq(chmod(test_dir, _i == 1 ? 0777 : 0555), 0);
    as_nobody(read_works_write_does_not);
    ck_assert_int_eq(chmod(test_dir, 0777), 0);
}

static void require_denied(const char *name, enum db_mode mode, enum status_code code)
{
    struct db *db;
    st = STATUS_INIT;
    REQUIRE(db_open(test_path(name), mode, &db, &st) == -1);
    REQUIRE(st.code == code && db == NULL);
    REQUIRE(strstr(st.message, "Permission denied") != NULL);
}

static void cannot_create(void)
{
    require_denied("t.db", DB_WRITE, STATUS_DATABASE);
    require_denied("sub/t.db", DB_WRITE, STATUS_ENVIRONMENT);
}

TEST(path_that_cannot_be_written_is_refused)
{
    ck_assert_int_eq(chmod(test_dir, 0555), 0);
    as_nobody(cannot_create);
    ck_assert_int_eq(chmod(test_dir, 0777), 0);
}

static void cannot_read(void)
{
    require_denied("t.db", DB_READ, STATUS_DATABASE);
}

TEST(file_that_cannot_be_read_is_refused)
{
    int64_t study;
    db_close(open_fresh(&study));
    ck_assert_int_eq(chmod(test_path("t.db"), 0), 0);
    ck_assert_int_eq(chmod(test_dir, 0777), 0);
    as_nobody(cannot_read);
}

/* ---- locks and space ------------------------------------------------------------------------- */

TEST(lock_of_another_is_waited_for_then_told)
{
    int64_t study;
    SCOPED_BY(db_close_at) struct db *db = open_fresh(&study);
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
}

/* A disk that fills up, made of the limit on a file's size; the old limit, which takes it away. */
static struct rlimit limit_files(rlim_t bytes)
{
    struct rlimit old, small;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = bytes, .rlim_max = old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    return old;
}

/* Until a trial is refused with a message that holds this text; how many were taken. */
static int store_until_full(struct db *db, int64_t study, const char *says)
{
    struct db_trial t = final_trial(43690, 2, "a");
    int stored = 0;
    while (stored < 10000 && db_trial_add(db, study, &t, &st) == 0)
        stored++;
    ck_assert_int_lt(stored, 10000);
    ck_assert_int_eq(st.code, STATUS_DATABASE);
    ck_assert_msg(strstr(st.message, says) != NULL, "%s", st.message);
    return stored;
}

static void check_holds(struct db *db, int64_t trials)
{
    struct db_info info;
    OK(db_info(db, &info, &st));
    ck_assert_int_eq(info.trials, trials);
    assert_whole(db);
}

TEST(full_disk_is_told_and_loses_nothing)
{
    int64_t study;
    struct db *db = open_fresh(&study);
    struct db_trial t = final_trial(43690, 2, "a");
    OK(db_trial_add(db, study, &t, &st));

    struct rlimit old = limit_files(300000);
    int stored = 1 + store_until_full(db, study, "free space");
    db_close(db);

    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    check_holds(db, stored);
    db_close(db);
}

SUITE("db/system", memory_dir_setup, test_dir_teardown)
