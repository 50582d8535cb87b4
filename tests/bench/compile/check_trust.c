/* Who else could have written what lies in the cache. */
#include "bench/bench_int.h"
#include "tests/suite.h"

enum { EVE = 65533 }; /* another user; only root can act for her */

static struct cache c;
static struct buf path; /* room for a test */

static void teardown(void)
{
    buf_release(&path);
    cache_release(&c);
    test_dir_teardown();
}

static void setup(void)
{
    test_dir_setup();
    buf_init(&path);
    OK(cache_open(test_path("cache"), &c, &st));
}

/* A new cache, in the place of the one before. */
static int open_anew(const char *place)
{
    cache_release(&c);
    st = STATUS_INIT;
    return cache_open(place, &c, &st);
}

static void put(void)
{
    OK(cache_put(&c, CACHE_BINARY, "k", "some bytes", 10, &st));
    ck_assert(cache_get(&c, CACHE_BINARY, "k", NULL, NULL));
}

/* What lies in the cache is run: nobody else may put something there. */
TEST(place_that_others_can_write_to_is_refused)
{
    struct stat info;
    ck_assert_int_eq(stat(test_path("cache"), &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
    static const char *const dirs[] = {"cache", "cache/binaries", "."};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        ck_assert_int_eq(chmod(test_path(dirs[i]), 0770), 0);
        FAILS(open_anew(test_path("cache")), STATUS_ENVIRONMENT, "other users may write to '");
        ck_assert_ptr_nonnull(strstr(st.message, "set FUSEPLAN_CACHE"));
        ck_assert_int_eq(chmod(test_path(dirs[i]), 0700), 0);
    }
    ck_assert_int_eq(chmod(test_path("."), 01777), 0); /* as /tmp is */
    OK(open_anew(test_path("cache")));
}

/* _i: of another user, or for others to write. */
TEST_LOOP(entry_that_another_user_could_write_is_not_used, 0, 2)
{
    put();
    cache_path(&c, CACHE_BINARY, "k", &path);
    int result = _i == 0 ? chown(path.ptr, EVE, EVE) : chmod(path.ptr, 0620);
    ck_assert(result != 0 ||
              !cache_get(&c, CACHE_BINARY, "k", NULL, NULL)); /* only root can give a file away */
    put();
}

/* ---- links ----------------------------------------------------------------------------------- */

static void make_dir(const char *name, mode_t mode, bool eves)
{
    ck_assert_int_eq(mkdir(test_path(name), 0700), 0);
    ck_assert_int_eq(chmod(test_path(name), mode), 0);
    ck_assert(!eves || chown(test_path(name), EVE, EVE) == 0);
}

static void make_link(const char *target, const char *name, bool eves)
{
    ck_assert_int_eq(symlink(target, test_path(name)), 0);
    ck_assert(!eves || lchown(test_path(name), EVE, EVE) == 0);
}

/* Ways to the directory `good`, or to one that is made, beside what else the test makes.  eve: only
 * root can give her what is hers there. */
static const struct {
    const char *path, *refused; /* null: it is taken */
    bool eve;
} ways[] = {
    {"good", NULL, false},
    {"good/../good//.", NULL, false},
    {"link", NULL, false},
    {"sticky/link", NULL, false},
    {"sticky/../link/.", NULL, false},
    {"dangling", NULL, false}, /* what it names is made */
    {"open/link", "other users may write to '", false},
    {"link/../open/link", "other users may write to '", false},
    {"sticky", "other users may write to '", false},
    {"circle", "Too many levels of symbolic links", false},
    {"eves/link", "eves' belongs to user ", true},
    {"eves/good", "eves' belongs to user ", true},
    {"sticky/eves", "sticky/eves' belongs to user ", true},
    {"sticky/eves_link", "link '", true},
    {"eves_link", "link '", true},
    {"to_eves_link", "link '", true},
};

static void make_ways(void)
{
    bool root = geteuid() == 0;
    make_dir("good", 0700, false);
    make_dir("sticky", 01777, false);
    make_dir("open", 0777, false);
    make_link("good", "link", false);
    make_link("made", "dangling", false);
    make_link("circle", "circle", false);
    make_link("../good", "sticky/link", false);
    make_link("../good", "open/link", false);
    if (!root)
        return;
    make_dir("eves", 0755, true);
    make_dir("eves/good", 0700, false);
    make_dir("sticky/eves", 0755, true);
    make_link("../good", "eves/link", false);
    make_link("../good", "sticky/eves_link", true);
    make_link("good", "eves_link", true);
    make_link("eves_link", "to_eves_link", false);
}

TEST(way_is_followed_only_where_nobody_else_can_change_it)
{
    make_ways();
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        if (ways[i].eve && geteuid() != 0)
            continue;
        st = STATUS_INIT;
        SCOPED char *found = file_trust(test_path(ways[i].path), TRUST_MADE, &st);
        if (ways[i].refused != NULL) {
            ck_assert_msg(found == NULL, "%s", ways[i].path);
            ck_assert_msg(strstr(st.message, ways[i].refused) != NULL, "%s", st.message);
            continue;
        }
        SCOPED char *real = realpath(test_path(ways[i].path), NULL);
        ck_assert_msg(found != NULL, "%s: %s", ways[i].path, st.message);
        ck_assert_str_eq(found, real);
    }
}

/* A place that users share may be anybody's and open to all, but not the way there. */
TEST(shared_directory_needs_a_safe_way)
{
    static const struct {
        const char *path;
        bool safe, eve;
    } shared[] = {{"open", true, false},       {"sticky", true, false},
                  {"eves", true, true},        {"link/../eves/.", true, true},
                  {"eves/good", false, true},  {"eves_link", false, true},
                  {"sticky/eves", false, true}};
    make_ways();
    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        if (shared[i].eve && geteuid() != 0)
            continue;
        SCOPED char *found = file_trust(test_path(shared[i].path), TRUST_WAY, &st);
        ck_assert_msg((found != NULL) == shared[i].safe, "%s", shared[i].path);
    }
    ck_assert(geteuid() != 0 || strstr(st.message, "make this path lead elsewhere") != NULL);
}

/* Else another user could make a lock, which everybody may write, lie anywhere. */
TEST(lock_lies_where_the_way_is_safe)
{
    struct lock_wait wait = {.limit_s = 60};
    int lock;
    make_ways();
    setenv("FUSEPLAN_LOCK_DIR", test_path(geteuid() == 0 ? "eves_link" : "open/link"), 1);
    FAILS(
        lock_take((struct lock_device){{.kind = TARGET_CPU}, ""}, LOCK_TO_TIME, &wait, &lock, &st),
        STATUS_ENVIRONMENT, "make this path lead elsewhere");
    ck_assert_int_eq(rmdir(test_path("good")), 0); /* it is empty */
}

TEST(relative_path_begins_here)
{
    make_dir("good", 0700, false);
    ck_assert_int_eq(chdir(test_path("good")), 0);
    OK(open_anew("-cache")); /* a compiler would take its files for options */
    ck_assert_str_eq(c.dir, test_path("good/-cache"));
}

/* What a cache does after it was opened goes to what was checked, whatever becomes of the path. */
TEST(path_is_resolved_once)
{
    static const struct kernel_file header = {.name = "a.h", .text = "int a;\n", .len = 7};
    SCOPED_BY(scratch_release) struct scratch_dir scratch;
    make_dir("good", 0700, false);
    make_dir("evil", 0700, false);
    make_link("good", "link", false);
    OK(open_anew(test_path("link")));
    ck_assert_int_eq(unlink(test_path("link")), 0);
    make_link("evil", "link", false);
    OK(cache_make_dirs(&c, &st));
    OK(cache_headers(&c, &header, 1, &path, &st));
    OK(cache_scratch(&c, &scratch, &st));
    put();
    ck_assert_int_eq(strncmp(path.ptr, test_path("good/"), strlen(test_path("good/"))), 0);
    ck_assert_int_eq(strncmp(scratch.dir, test_path("good/"), strlen(test_path("good/"))), 0);
    ck_assert_int_eq(rmdir(test_path("evil")), 0); /* nothing was made there */
}

/* sudo may leave the user's HOME.  _i: its .cache is missing, or a link of hers to what is ours. */
TEST_LOOP(home_of_another_user_is_refused, 0, 2)
{
    if (geteuid() != 0)
        return;
    make_dir("home", 0755, true);
    make_dir("good", 0700, false);
    if (_i == 1)
        make_link("../good", "home/.cache", true);
    setenv("HOME", test_path("home"), 1);
    unsetenv("FUSEPLAN_CACHE");
    unsetenv("XDG_CACHE_HOME");
    FAILS(open_anew(NULL), STATUS_ENVIRONMENT, "set HOME ('sudo -H' does)");
    ck_assert_ptr_nonnull(strstr(st.message, "home' belongs to user "));
    ck_assert_int_eq(rmdir(test_path("good")), 0); /* nothing was made in either */
    ck_assert(_i == 1 || rmdir(test_path("home")) == 0);
    make_dir("homely", 0755, true); /* a neighbour of HOME */
    setenv("FUSEPLAN_CACHE", test_path("homely/cache"), 1);
    FAILS(open_anew(NULL), STATUS_ENVIRONMENT, "homely' belongs to user ");
    ck_assert_ptr_null(strstr(st.message, "set HOME"));
}

SUITE("trust", setup, teardown)
