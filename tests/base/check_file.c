#include "base/base.h"
#include "tests/suite.h"

#include <limits.h>
#include <pwd.h>
#include <unistd.h>

static struct status st; /* of the call that a test is about */

START_TEST(refuses_more_than_the_limit)
{
    struct buf text;
    buf_init(&text);
    OK(file_write(test_path("f"), "12345", 5, &st));
    OK(file_read(test_path("f"), 5, &text, &st));
    ck_assert_int_eq(file_read(test_path("f"), 4, &text, &st), -1);
    ck_assert_ptr_nonnull(strstr(st.message, "larger than"));
    buf_release(&text);
}
END_TEST

START_TEST(missing_file_is_named)
{
    struct buf text;
    buf_init(&text);
    FAILS(file_read(test_path("none"), 0, &text, &st), STATUS_ENVIRONMENT, "none");
    buf_release(&text);
}
END_TEST

START_TEST(makes_and_removes_trees)
{
    OK(file_make_dirs(test_path("a/b/c"), &st));
    OK(file_make_dirs(test_path("a/b/c"), &st));
    OK(file_write(test_path("a/b/f"), "", 0, &st));
    ck_assert_int_eq(file_make_dirs(test_path("a/b/f/d"), &st), -1);
    ck_assert_ptr_nonnull(strstr(st.message, "a/b/f/d"));
    OK(file_remove_all(test_path("a"), &st));
    OK(file_remove_all(test_path("a"), &st));
}
END_TEST

START_TEST(user_dirs_follow_the_order)
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
        char *path = file_user_dir(NULL, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache");
        ck_assert_str_eq(path, steps[i].expected);
        free(path);
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
END_TEST

SUITE("file", test_dir_setup, test_dir_teardown, ONCE(refuses_more_than_the_limit),
      ONCE(missing_file_is_named), ONCE(makes_and_removes_trees), ONCE(user_dirs_follow_the_order))
