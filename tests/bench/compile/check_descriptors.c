/* The cache where there is no further file to open or to make. */
#include "bench/compile/compile.h"
#include "tests/suite.h"

#include <sys/resource.h>

static struct status st; /* of the call that a test is about */

static void bound_descriptors(bool bound)
{
    static rlim_t usual;
    struct rlimit files;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    usual = bound ? files.rlim_cur : usual;
    files.rlim_cur = bound ? 0 : usual;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
}

/* Other processes use the entry meanwhile. */
START_TEST(entry_stays)
{
    struct cache c;
    OK(cache_open(test_path("cache"), &c, &st));
    OK(cache_put(&c, CACHE_BINARY, "k", "abc", 3, &st));
    bound_descriptors(true);
    bool found = cache_get(&c, CACHE_BINARY, "k", NULL, NULL);
    bound_descriptors(false);
    ck_assert(!found);
    ck_assert(cache_get(&c, CACHE_BINARY, "k", NULL, NULL));
    cache_release(&c);
}
END_TEST

START_TEST(no_directory_is_left)
{
    struct cache c;
    struct scratch s;
    struct names left;
    OK(cache_open(test_path("cache"), &c, &st));
    bound_descriptors(true);
    st = STATUS_INIT;
    int result = scratch_make(&c, &s, &st);
    bound_descriptors(false);
    ck_assert_int_eq(result, -1);
    ck_assert_ptr_nonnull(strstr(st.message, "Too many open files"));
    OK(directory_list(test_path("cache/temporary"), &left, &st));
    ck_assert_int_eq(left.count, 0);
    names_release(&left);
    cache_release(&c);
}
END_TEST

START_TEST(lack_of_inodes_is_told)
{
    enum { DIRECTORIES = 7 }; /* the disk's, the cache's and one for each kind of entry */
    struct cache c;
    struct scratch s;
    if (!test_small_disk("disk", DIRECTORIES))
        return; /* only root can */
    OK(cache_open(test_path("disk/cache"), &c, &st));
    FAILS(scratch_make(&c, &s, &st), STATUS_ENVIRONMENT, "short of inodes?); FUSEPLAN_CACHE");
    FAILS(cache_put(&c, CACHE_BINARY, "k", "abc", 3, &st), STATUS_ENVIRONMENT,
          "short of inodes?); FUSEPLAN_CACHE");
    cache_release(&c);
    FAILS(cache_open(test_path("disk/other"), &c, &st), STATUS_ENVIRONMENT,
          "No space left on device");
    ck_assert_int_eq(umount(test_path("disk")), 0);
}
END_TEST

SUITE("descriptors", test_dir_setup, test_dir_teardown, ONCE(entry_stays),
      ONCE(no_directory_is_left), ONCE(lack_of_inodes_is_told))
