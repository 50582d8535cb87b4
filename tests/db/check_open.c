/* Opening a database: where it is, what a reader leaves alone, files that are none of ours. */
#include "tests/db/fixture.h"

#include <fcntl.h>
#include <sys/vfs.h>

static long file_system; /* what statfs() answers; 0: ext4 */

/* Takes the place of the library's. */
int statfs(const char *path, struct statfs *out)
{
    ck_assert(file_exists(path));
    *out = (struct statfs){.f_type = file_system != 0 ? (__fsword_t)file_system : 0xef53};
    return 0;
}

TEST(network_file_systems_are_read_alone)
{
    struct db *db;
    OK(db_open(test_path("d.db"), DB_WRITE, &db, &st));
    db_close(db);
    file_system = (long)0xfe534d42;
    FAILS(db_open(test_path("d.db"), DB_WRITE, &db, &st), STATUS_DATABASE, "lies on SMB2");
    st = STATUS_INIT;
    FAILS(db_open(test_path("new.db"), DB_WRITE, &db, &st), STATUS_DATABASE, "disk of this");
    ck_assert(!file_exists(test_path("new.db")));
    OK(db_open(test_path("d.db"), DB_READ, &db, &st));
    ck_assert(!file_exists(test_path("d.db-shm")));
    db_close(db);
    file_system = 0;
}

TEST(creates_the_file_and_its_directory)
{
    struct db *db;
    OK(db_open(test_path("a/b/c.db"), DB_WRITE, &db, &st));
    ck_assert_str_eq(db_path(db), test_path("a/b/c.db"));
    db_close(db);
    ck_assert(file_exists(test_path("a/b/c.db")));
    ck_assert(!file_exists(test_path("a/b/c.db-wal")));
    ck_assert(!file_exists(test_path("a/b/c.db-shm")));
}

TEST(names_mean_nothing_to_sqlite)
{
    static const char *const names[] = {":memory:", "file:x?mode=memory", "a%41 b#c",
                                        "ä?immutable=1"};
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

TEST(default_place_follows_the_environment)
{
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

TEST(read_creates_nothing)
{
    struct db *db;
    FAILS(db_open(test_path("none.db"), DB_READ, &db, &st), STATUS_NOT_FOUND, "none.db");
    ck_assert_ptr_null(db);
    ck_assert(!file_exists(test_path("none.db")));

    write_text(test_path("empty"), "");
    FAILS(db_open(test_path("empty"), DB_READ, &db, &st), STATUS_NOT_FOUND, "empty");
    ck_assert(!file_exists(test_path("empty-wal")));
}

TEST(read_leaves_the_file_alone)
{
    SCOPED_BUF before = BUF_INIT, after = BUF_INIT;
    struct db *db;
    int64_t study;
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
}

/* ---- what is not a database of ours ---------------------------------------------------------- */

TEST(damaged_file_is_told)
{
    struct db *db;
    int64_t study;
    db_close(open_fresh(&study));
    int fd = open(test_path("t.db"), O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 6000), 0);
    close(fd);
    FAILS(db_open(test_path("t.db"), DB_READ, &db, &st), STATUS_DATABASE, "is damaged");
}

static const struct {
    const char *sql; /* what another program made of the file */
    bool ours;       /* it was a database of today's version before */
    const char *message;
} files[] = {
    {"CREATE TABLE t (x)", false, "another application"},
    {"PRAGMA application_id = 252006674; CREATE TABLE t (x)", false, "another application"},
    {"PRAGMA user_version = 1", false, "another application"},
    {"PRAGMA user_version = 99", true, "version 99, from a newer fuseplan"},
    {"PRAGMA user_version = 0", true, "version 0; expected 10 to"},
    {"PRAGMA user_version = 9", true, "version 9; expected 10 to"},
    {"PRAGMA user_version = -1", true, "version -1; expected 10 to"},
};

TEST_LOOP(file_of_another_kind_or_version_is_refused, 0, ARRAY_LEN(files))
{
    struct db *db;
    int64_t study;
    if (files[_i].ours)
        db_close(open_fresh(&study));
    sqlite3 *raw = open_raw(test_path("t.db"));
    exec_sql(raw, files[_i].sql);
    sqlite3_close(raw);
    FAILS(db_open(test_path("t.db"), DB_READ, &db, &st), STATUS_DATABASE, files[_i].message);
    FAILS(db_open(test_path("t.db"), DB_WRITE, &db, &st), STATUS_DATABASE, files[_i].message);

    raw = open_raw(test_path("t.db")); /* untouched: not even its journal mode changed */
    if (!files[_i].ours)
        expect_sql(raw, 1, "SELECT journal_mode = 'delete' FROM pragma_journal_mode");
    sqlite3_close(raw);
}

/* What a database in use holds is in its log. */
TEST(copy_without_its_log_is_told)
{
    struct db *held, *db;
    SCOPED_BUF bytes = BUF_INIT;
    OK(db_open(test_path("held.db"), DB_WRITE, &held, &st));
    OK(file_read(test_path("held.db"), 0, &bytes, &st));
    OK(file_write(test_path("copy.db"), bytes.ptr, bytes.len, &st));
    FAILS(db_open(test_path("copy.db"), DB_READ, &db, &st), STATUS_NOT_FOUND,
          "is empty: if it is a copy, what the original holds is in the file '-wal'");
    db_close(held);
    write_text(test_path("copy.db"), "");
    FAILS(db_open(test_path("copy.db"), DB_READ, &db, &st), STATUS_NOT_FOUND,
          "'fuseplan search' fills it");
}

/* A pipe in the place of the database or of one of SQLite's own files would keep whoever reads it
 * waiting.  _i counts the places, for who reads and for who writes. */
static const char *const piped[] = {"t.db", "t.db-journal", "t.db-wal", "t.db-shm"};

TEST_LOOP(pipe_is_not_read, 0, 2 * ARRAY_LEN(piped))
{
    struct db *db;
    int64_t study;
    if (_i / 2 > 0)
        db_close(open_fresh(&study));
    ck_assert_int_eq(mkfifo(test_path(piped[_i / 2]), 0600), 0);
    alarm(60); /* a hang ends here */
    FAILS(db_open(test_path("t.db"), _i % 2 == 0 ? DB_READ : DB_WRITE, &db, &st), STATUS_DATABASE,
          "is a pipe");
    ck_assert_ptr_nonnull(strstr(st.message, piped[_i / 2]));
}

TEST(link_leads_to_a_database_that_exists)
{
    SCOPED_BY(db_close_at) struct db *db;
    int64_t study;
    ck_assert_int_eq(symlink("t.db", test_path("link")), 0);
    FAILS(db_open(test_path("link"), DB_WRITE, &db, &st), STATUS_DATABASE, FILE_DANGLES);
    FAILS(db_open(test_path("link"), DB_READ, &db, &st), STATUS_DATABASE, FILE_DANGLES);
    ck_assert(!file_exists(test_path("t.db")));
    db_close(open_fresh(&study));
    OK(db_open(test_path("link"), DB_WRITE, &db, &st));
    ck_assert_str_eq(db_path(db), test_path("link"));
    ck_assert(file_exists(test_path("t.db-wal")));
}

/* _i inodes are left for the database (and its root directory), its WAL and its shared memory. */
TEST_LOOP(lack_of_inodes_is_told, 1, 4)
{
    struct db *db;
    if (test_small_disk("disk", _i)) {
        FAILS(db_open(test_path("disk/t.db"), DB_WRITE, &db, &st), STATUS_DATABASE,
              "free disk space and inodes");
        ck_assert_int_eq(umount(test_path("disk")), 0);
    }
}

SUITE("db/open", memory_dir_setup, test_dir_teardown)
