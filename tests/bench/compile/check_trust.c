/* Who else could have written what lies in the cache. */
#include "bench/compile/compile.h"
#include "tests/suite.h"

#include <sys/stat.h>
#include <unistd.h>

static struct status st; /* of the call that a test is about */

static struct cache open_cache(void)
{
    struct cache c;
    OK(cache_open(test_path("cache"), &c, &st));
    return c;
}

static void put(const struct cache *c)
{
    OK(cache_put(c, CACHE_BINARY, "k", "some bytes", 10, &st));
    ck_assert(cache_get(c, CACHE_BINARY, "k", NULL, NULL));
}

/* What lies in the cache is run: nobody else may put something there. */
START_TEST(place_that_others_can_write_to_is_refused)
{
    struct cache c = open_cache();
    struct stat info;
    cache_release(&c);
    ck_assert_int_eq(stat(test_path("cache"), &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
    static const char *const dirs[] = {"cache", "cache/binaries", "."};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        st = STATUS_INIT;
        ck_assert_int_eq(chmod(test_path(dirs[i]), 0770), 0);
        FAILS(cache_open(test_path("cache"), &c, &st), STATUS_ENVIRONMENT,
              "other users may write to '");
        ck_assert_ptr_nonnull(strstr(st.message, "set FUSEPLAN_CACHE"));
        ck_assert_int_eq(chmod(test_path(dirs[i]), 0700), 0);
    }
    ck_assert_int_eq(chmod(test_path("."), 01777), 0); /* as /tmp is */
    st = STATUS_INIT;
    c = open_cache();
    cache_release(&c);
}
END_TEST

START_TEST(place_of_another_user_is_refused)
{
    enum { NOBODY = 65534 };
    struct cache c = open_cache();
    cache_release(&c);
    if (chown(test_path("cache/binaries"), NOBODY, NOBODY) != 0)
        return; /* only root can give a directory away */
    FAILS(cache_open(test_path("cache"), &c, &st), STATUS_ENVIRONMENT, "(65534), who could put");
}
END_TEST

/* _i: of another user, or for others to write. */
START_TEST(entry_that_another_user_could_write_is_not_used)
{
    struct cache c = open_cache();
    struct buf path;
    buf_init(&path);
    put(&c);
    cache_path(&c, CACHE_BINARY, "k", &path);
    int result = _i == 0 ? chown(path.ptr, 65534, 65534) : chmod(path.ptr, 0620);
    ck_assert(result != 0 ||
              !cache_get(&c, CACHE_BINARY, "k", NULL, NULL)); /* only root can give a file away */
    put(&c);
    buf_release(&path);
    cache_release(&c);
}
END_TEST

/* A umask of 002 lets the group write: not below the cache. */
START_TEST(headers_are_of_the_user_alone)
{
    static const struct kernel_file header = {.name = "a.h", .text = "int a;\n", .len = 7};
    struct buf dir;
    struct stat info;
    buf_init(&dir);
    umask(S_IWOTH);
    struct cache c = open_cache();
    OK(cache_headers(&c, &header, 1, &dir, &st));
    ck_assert_int_eq(stat(dir.ptr, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
    ck_assert_uint_eq(umask(0), S_IWOTH);
    buf_release(&dir);
    cache_release(&c);
}
END_TEST

SUITE("trust", test_dir_setup, test_dir_teardown, ONCE(place_that_others_can_write_to_is_refused),
      ONCE(place_of_another_user_is_refused),
      LOOP(entry_that_another_user_could_write_is_not_used, 0, 2),
      ONCE(headers_are_of_the_user_alone))
