/* What suites share: a main, and a directory of their own that a test may fill. */
#ifndef FUSEPLAN_TESTS_SUITE_H
#define FUSEPLAN_TESTS_SUITE_H

#include "base/base.h"

#include <check.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Check would send the place of each assertion that holds to the process that runs the suite, to
 * say where a test crashed.  Suites that assert something of every plan spent most of their time on
 * that; the sanitizers show the place, too. */
#define _mark_point(file, line) ((void)0)

static struct status st __attribute__((unused)); /* of the call that a test is about */

/* The tests of a suite: those above its SUITE.  TEST_LOOP runs one with each _i of from..to - 1.
 *
 *     TEST(text_grows)
 *     {
 *     }
 *
 *     TEST_LOOP(wrong_text_is_refused, 0, ARRAY_LEN(wrong))
 *     {
 *     }
 *
 *     SUITE("buf", setup, teardown)
 *
 * setup and teardown run before and after each test; either may be NULL. */
#define TEST(name) TEST_LOOP(name, 0, 1)
#define TEST_LOOP(name, from, to)                                                                  \
    static void name(int _i);                                                                      \
    static void __attribute__((constructor)) name##_is_a_test(void)                                \
    {                                                                                              \
        static const TTest test = {#name, name, __FILE__, __LINE__};                               \
        suite_add(&test, (int)(from), (int)(to));                                                  \
    }                                                                                              \
    static void name(int _i __attribute__((unused)))
#define SUITE(name, setup, teardown)                                                               \
    int main(void)                                                                                 \
    {                                                                                              \
        return suite_run(name, setup, teardown);                                                   \
    }

static inline TCase *suite_tests(void)
{
    static TCase *tests;
    if (tests == NULL) {
        /* For a test that hangs: under load everything takes long; seconds. */
        setenv("CK_DEFAULT_TIMEOUT", "1000", 0);
        tests = tcase_create("tests");
    }
    return tests;
}

/* Where the linker optimises, constructors run in any order: what sets a variable that is `from` or
 * `to` needs a priority. */
static inline void suite_add(const TTest *test, int from, int to)
{
    if (from >= to) {
        fprintf(stderr, "%s runs with no _i: from %d to %d\n", test->name, from, to);
        abort();
    }
    tcase_add_loop_test(suite_tests(), test, from, to);
}

static inline int suite_run(const char *name, SFun setup, SFun teardown)
{
    Suite *s = suite_create(name);
    suite_add_tcase(s, suite_tests());
    tcase_add_checked_fixture(suite_tests(), setup, teardown);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Fails the test where the call did, and shows why. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        st = STATUS_INIT;                                                                          \
        int ok_result = (call);                                                                    \
        ck_assert_msg(ok_result == 0, "%s: %s", #call, st.message);                                \
    } while (0)

/* Fails the test unless the call failed with this code and a message that holds this text. */
#define FAILS(call, expected_code, text)                                                           \
    do {                                                                                           \
        st = STATUS_INIT;                                                                          \
        ck_assert_int_eq((call), -1);                                                              \
        ck_assert_msg(st.code == (expected_code), "%d: %s", st.code, st.message);                  \
        ck_assert_msg(strstr(st.message, (text)) != NULL, "%s", st.message);                       \
    } while (0)

/* A fixture: test_dir_setup and test_dir_teardown. */
static char test_dir[64] __attribute__((unused));

static inline void test_dir_setup(void)
{
    strcpy(test_dir, "/tmp/fuseplan-check-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test_dir));
}

static inline void test_dir_teardown(void)
{
    OK(file_remove_all(test_dir, &st));
}

/* test_dir/name, in one of four buffers used in turn. */
static inline char *test_path(const char *name)
{
    static char paths[4][256];
    static int turn;
    char *path = paths[turn++ % 4];
    ck_assert_msg(test_dir[0] != '\0', "the test has no directory: see test_dir_setup");
    snprintf(path, sizeof(paths[0]), "%s/%s", test_dir, name);
    return path;
}

static inline void write_text(const char *path, const char *text)
{
    OK(file_write(path, text, strlen(text), &st));
}

/* Mounts a file system with few inodes at test_dir/name, for this process alone; false where the
 * system does not let it. */
static inline bool test_small_disk(const char *name, int inodes)
{
    char options[64];
    snprintf(options, sizeof(options), "size=4m,nr_inodes=%d", inodes);
    return mkdir(test_path(name), 0755) == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", test_path(name), "tmpfs", 0, options) == 0;
}

/* A cache below test_dir, empty but for the CPU's honest binaries: all suites share those, so that
 * each is compiled once.  Suites that are about compiling or the cache use test_path("cache"). */
static inline char *test_cache(void)
{
    const char *binaries = getenv("FUSEPLAN_TEST_BINARIES"); /* unset where no ctest runs it */
    static char cache[256];
    snprintf(cache, sizeof(cache), "%s/cache", test_dir);
    ck_assert_int_eq(file_make_dirs(cache, &st), 0);
    /* A checkout may be another user's. */
    SCOPED char *shared = binaries != NULL ? file_trust(binaries, TRUST_MADE, &st) : NULL;
    if (shared != NULL && access(shared, W_OK | X_OK) == 0)
        ck_assert(symlink(shared, test_path("cache/binaries")) == 0 || errno == EEXIST);
    return cache;
}

#endif
