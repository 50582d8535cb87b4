#include "base/base.h"
#include "tests/suite.h"

#include <limits.h>
#include <pwd.h>
#include <sys/wait.h>

TEST(refuses_more_than_the_limit)
{
    SCOPED_BUF text = BUF_INIT;
    OK(file_write(test_path("f"), "12345", 5, &st));
    OK(file_read(test_path("f"), 5, &text, &st));
    FAILS(file_read(test_path("f"), 4, &text, &st), STATUS_USAGE, "larger than");
}

/* Reading these would wait for a writer, or never end. */
TEST_LOOP(only_regular_files_are_read, 0, 4)
{
    static const struct {
        const char *path, *is;
    } others[] = {
        {"fifo", "a pipe"}, {"link", "a pipe"}, {"dir", "a directory"}, {NULL, "a device"}};
    SCOPED_BUF text = BUF_INIT;
    ck_assert_int_eq(mkfifo(test_path("fifo"), 0600), 0);
    ck_assert_int_eq(symlink("fifo", test_path("link")), 0);
    ck_assert_int_eq(mkdir(test_path("dir"), 0700), 0);
    const char *path = others[_i].path != NULL ? test_path(others[_i].path) : "/dev/zero";
    FAILS(file_read(path, 1000, &text, &st), STATUS_ENVIRONMENT, others[_i].is);
    ck_assert_uint_eq(text.len, 0);
}

/* 3 GB that are all holes. */
TEST(no_file_is_read_without_a_bound)
{
    SCOPED_BUF text = BUF_INIT;
    OK(file_write(test_path("f"), "", 0, &st));
    ck_assert_int_eq(truncate(test_path("f"), (off_t)3 << 30), 0);
    FAILS(file_read(test_path("f"), 0, &text, &st), STATUS_USAGE, "larger than");
    ck_assert_uint_le(text.len, FILE_MAX_BYTES);
}

TEST(makes_and_removes_trees)
{
    OK(file_make_dirs(test_path("a/b/c"), &st));
    OK(file_make_dirs(test_path("a/b/c"), &st));
    OK(file_write(test_path("a/b/f"), "", 0, &st));
    FAILS(file_make_dirs(test_path("a/b/f/d"), &st), STATUS_ENVIRONMENT, "a/b/f/d");
    OK(file_remove_all(test_path("a"), &st));
    OK(file_remove_all(test_path("a"), &st));
}

TEST(user_dirs_follow_the_order)
{
    setenv("HOME", "/h", 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("FUSEPLAN_CACHE");
    static const struct {
        const char *name, *value, *expected;
    } steps[] = {{"HOME", "/h", "/h/.cache/fuseplan"},
                 {"XDG_CACHE_HOME", "relative", "/h/.cache/fuseplan"},
                 {"XDG_CACHE_HOME", "/x", "/x/fuseplan"},
                 {"FUSEPLAN_CACHE", "", "/x/fuseplan"},
                 {"FUSEPLAN_CACHE", "/c", "/c"}};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        setenv(steps[i].name, steps[i].value, 1);
        SCOPED char *path = file_user_dir(NULL, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache");
        ck_assert_str_eq(path, steps[i].expected);
    }
    char *path = file_user_dir("/o", "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache");
    ck_assert_str_eq(path, "/o");
    free(path);

    const struct passwd *user = getpwuid(getuid());
    char expected[PATH_MAX];
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("FUSEPLAN_CACHE");
    path = file_user_dir(NULL, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache");
    snprintf(expected, sizeof(expected), "%s/.cache/fuseplan", user != NULL ? user->pw_dir : "");
    ck_assert_str_eq(path, expected);
    free(path);
}

/* What is closed at the start gets a file that can neither be read from as input nor written to as
 * output, so that no database comes to lie there. */
TEST(standard_descriptors_are_held)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            close(fd);
        bool held = file_hold_standard();
        _exit(held && read(0, &byte, 1) < 0 && write(1, "x", 1) < 0 && write(2, "x", 1) < 0 ? 0
                                                                                            : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

TEST(only_a_directory_is_trusted_as_one)
{
    OK(file_write(test_path("f"), "x", 1, &st));
    ck_assert_ptr_null(file_trust(test_path("none"), TRUST_WAY, &st));
    ck_assert_msg(strstr(st.message, "none' cannot be looked at") != NULL, "%s", st.message);
    st = STATUS_INIT;
    ck_assert_ptr_null(file_trust(test_path("f"), TRUST_MADE, &st));
    ck_assert_msg(strstr(st.message, "f' cannot be looked at: Not a directory") != NULL, "%s",
                  st.message);
}

SUITE("file", test_dir_setup, test_dir_teardown)
