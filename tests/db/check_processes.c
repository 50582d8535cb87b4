/* Several processes on one database. */
#include "tests/db/fixture.h"

#include <sys/wait.h>

/* A writer's life: opens the database, stores `count` finals and says so one byte each. */
static void write_finals(int count, int first_value, int report)
{
    struct db *db;
    int64_t study;
    bool failed = db_open(test_path("t.db"), DB_WRITE, &db, &st) != 0 ||
                  db_study(db, &a_workload, &a_target, "1", &study, &st) != 0;
    for (int i = 0; i < count && !failed; i++) {
        struct db_trial t = final_trial(first_value + i, 2, "a");
        failed = db_trial_add(db, study, &t, &st) != 0 || write(report, "+", 1) != 1;
    }
    if (failed)
        fprintf(stderr, "%s\n", st.message);
    _exit(failed ? 1 : 0); /* without closing: as any process that dies */
}

static pid_t start_writer(int count, int first_value, int report[2])
{
    ck_assert_int_eq(pipe(report), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(report[0]);
        write_finals(count, first_value, report[1]);
    }
    close(report[1]);
    return pid;
}

static int stored_finals(void)
{
    SCOPED_BY(db_close_at) struct db *db;
    struct db_info info;
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    OK(db_info(db, &info, &st));
    assert_whole(db);
    return (int)info.trials;
}

static int waiting[2] = {-1, -1}; /* a pipe, in which who waits for a lock says so */

/* In the place of SQLite's. */
int sqlite3_sleep(int ms)
{
    bool said = write(waiting[1], "+", 1) == 1;
    usleep(1000 * (useconds_t)ms);
    return said ? ms : 0;
}

/* Holds the write lock of a file that is no database yet, until somebody waits for it. */
static void hold_lock(int report)
{
    char mark;
    sqlite3 *raw;
    bool failed = sqlite3_open(test_path("t.db"), &raw) != SQLITE_OK ||
                  sqlite3_exec(raw, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
                  write(report, "+", 1) != 1 || read(waiting[0], &mark, 1) != 1;
    _exit(failed ? 1 : 0);
}

/* SQLite itself would not wait here: the change to WAL fails at once. */
TEST(creator_waits_for_another)
{
    int report[2];
    char mark;
    ck_assert_int_eq(pipe(report), 0);
    ck_assert_int_eq(pipe(waiting), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        hold_lock(report[1]);
    ck_assert_int_eq((int)read(report[0], &mark, 1), 1);

    struct db *db;
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
    assert_whole(db);
    db_close(db);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* They create the database at once, too. */
TEST(writers_at_once_lose_nothing)
{
    enum { WRITERS = 4, EACH = 100 };
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        int report[2];
        pids[i] = start_writer(EACH, i * EACH, report);
        (void)report[0]; /* kept open: a closed one would end the writer */
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    }
    ck_assert_int_eq(stored_finals(), WRITERS * EACH);
    sqlite3 *raw = open_raw(test_path("t.db"));
    expect_sql(raw, WRITERS * EACH, "SELECT count(DISTINCT plan) FROM trial");
    expect_sql(raw, 1, "SELECT count(*) FROM study");
    sqlite3_close(raw);
}

SUITE("db/processes", memory_dir_setup, test_dir_teardown)
