#include "bench/compile/compile.h"
#include "tests/suite.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct cache c;             /* below the test's directory */
static struct buf path, dir, data; /* room for a test */

static void setup(void)
{
    test_dir_setup();
    OK(cache_open(test_path("cache"), &c, &st));
    buf_init(&path);
    buf_init(&dir);
    buf_init(&data);
}

static void teardown(void)
{
    buf_release(&data);
    buf_release(&dir);
    buf_release(&path);
    cache_release(&c);
    test_dir_teardown();
}

static void put(const char *key, const char *text)
{
    OK(cache_put(&c, CACHE_BINARY, key, text, strlen(text), &st));
}

static bool has(const char *key)
{
    return cache_get(&c, CACHE_BINARY, key, NULL, NULL);
}

TEST(gives_back_what_was_put)
{
    char hash[HASH_TEXT_SIZE], expected[HASH_TEXT_SIZE];
    ck_assert(!has("k"));
    put("k", "some bytes");
    ck_assert(cache_get(&c, CACHE_BINARY, "k", &data, hash));
    ck_assert_str_eq(data.ptr, "some bytes");
    ck_assert_str_eq(hash, hash_text("some bytes", 10, expected));
    ck_assert(!cache_get(&c, CACHE_VERDICT, "k", NULL, NULL)); /* kinds are apart */
}

/* A pipe in the place of an entry would block whoever reads or writes it. */
TEST(pipe_is_replaced)
{
    cache_path(&c, CACHE_BINARY, "k", &path);
    ck_assert_int_eq(mkfifo(path.ptr, 0600), 0);
    ck_assert(!has("k"));
    put("k", "some bytes");
    ck_assert(has("k"));
}

/* A byte changed, a byte lost, all lost: each is noticed, and the entry makes room for a
 * new one. */
TEST_LOOP(damage_is_noticed, 0, 3)
{
    put("k", "some bytes");
    cache_path(&c, CACHE_BINARY, "k", &path);
    int fd = open(path.ptr, O_RDWR);
    if (_i == 0)
        ck_assert_int_eq(pwrite(fd, "X", 1, 3), 1);
    else
        ck_assert_int_eq(ftruncate(fd, _i == 1 ? 41 : 0), 0);
    close(fd);
    ck_assert(!has("k"));
    ck_assert(!file_exists(path.ptr));
    put("k", "some bytes");
    ck_assert(has("k"));
}

static void set_age(const char *key, int seconds)
{
    const struct timespec times[2] = {{.tv_sec = 2000 - seconds}, {.tv_sec = 2000 - seconds}};
    buf_reset(&path);
    cache_path(&c, CACHE_BINARY, key, &path);
    ck_assert_int_eq(utimensat(AT_FDCWD, path.ptr, times, 0), 0);
}

/* A name such as entries have: one digit of a hash, again and again. */
static char *key_of(char digit)
{
    static char key[HASH_TEXT_SIZE];
    memset(key, digit, sizeof(key) - 1);
    return key;
}

TEST(least_recently_used_goes_first)
{
    char text[1001];
    memset(text, 'x', sizeof(text));
    text[1000] = '\0';
    for (char digit = 'a'; digit <= 'e'; digit++) {
        put(key_of(digit), text);
        set_age(key_of(digit), 1000 - digit); /* a is the oldest */
    }
    ck_assert(has(key_of('a'))); /* and is used again */
    c.max_bytes = 4000;
    cache_trim(&c);
    ck_assert(has(key_of('a')));
    ck_assert(!has(key_of('b')));
    ck_assert(!has(key_of('c')));
    ck_assert(has(key_of('d')));
    ck_assert(has(key_of('e')));
    ck_assert_uint_le(cache_bytes(&c), 4000);
    c.max_bytes = 0; /* what was used just now is spared: somebody may be about to load it */
    cache_trim(&c);
    ck_assert(has(key_of('a')));
}

/* As where two containers share a cache: processes have the same number in each. */
static pid_t pretended;

pid_t getpid(void)
{
    return pretended != 0 ? pretended : (pid_t)syscall(SYS_getpid);
}

/* A child with a scratch directory; it has a file there, and ends once ends[1] is closed. */
static pid_t start_with_scratch(int ends[2])
{
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct scratch_dir s;
        char file[512];
        close(ends[1]);
        pretended = 7; /* as in containers that share a cache, each with numbers of its own */
        bool made = cache_scratch(&c, &s, &st) == 0;
        snprintf(file, sizeof(file), "%s/f.s", made ? s.dir : "");
        made = made && file_write(file, "x", 1, &st) == 0 && write(ready[1], "x", 1) == 1;
        _exit(made ? (int)read(ends[0], &byte, 1) : 1);
    }
    close(ends[0]);
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static int leftovers(void)
{
    SCOPED_BY(names_release) struct names names;
    OK(directory_list(test_path("cache/temporary"), &names, &st));
    return names.count;
}

static int flock_error; /* 0: flock() works */

/* Takes the place of the library's. */
int flock(int fd, int how)
{
    errno = flock_error;
    return flock_error != 0 ? -1 : (int)syscall(SYS_flock, fd, how);
}

TEST(file_system_without_locks_is_told)
{
    SCOPED_BY(scratch_release) struct scratch_dir own;
    flock_error = ENOSYS;
    FAILS(cache_scratch(&c, &own, &st), STATUS_ENVIRONMENT, "file system with flock()");
    flock_error = 0;
    OK(cache_scratch(&c, &own, &st));
}

/* What a process still writes stays, what a killed one left goes. */
TEST(scratch_goes_with_its_process)
{
    struct scratch_dir own;
    int ends[2][2];
    pid_t children[2];
    OK(cache_scratch(&c, &own, &st));
    for (int i = 0; i < 2; i++)
        children[i] = start_with_scratch(ends[i]);
    cache_trim(&c);
    ck_assert_int_eq(leftovers(), 3);
    for (int i = 0; i < 2; i++) {
        kill(children[i], SIGKILL);
        ck_assert_int_eq(waitpid(children[i], NULL, 0), children[i]);
    }
    cache_trim(&c);
    ck_assert_int_eq(leftovers(), 1);
    ck_assert(file_exists(own.dir));
    scratch_release(&own);
    ck_assert_int_eq(leftovers(), 0);
}

/* The user's own files may lie around and between the cache's: old or new, they are left alone, and
 * take nothing from its bound. */
TEST_LOOP(foreign_files_are_left_alone, 0, 2)
{
    static const char *const names[] = {
        "own.txt",
        "binaries/own.bin",
        "binaries/0123456789abcdef0123456789abcdef.bin.old",
        "binaries/own/0123456789abcdef0123456789abcdef.bin",
        "verdicts/0123456789abcdef0123456789abcdef0.txt",
        "temporary/own.c",
        "temporary/own/fuseplan-1-1.c",
        "headers/own/own.h",
        "headers/own/0123456789abcdef0123456789abcdef/own.h",
        "own/temporary/fuseplan-1-1.c",
    };
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char file[512];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(file, sizeof(file), "%s/%s", c.dir, names[i]);
        *strrchr(file, '/') = '\0';
        OK(file_make_dirs(file, &st));
        snprintf(file, sizeof(file), "%s/%s", c.dir, names[i]);
        OK(file_write(file, "mine", 4, &st));
        if (_i == 1)
            ck_assert_int_eq(utimensat(AT_FDCWD, file, old, 0), 0);
    }
    ck_assert_uint_eq(cache_bytes(&c), 0);
    c.max_bytes = 0;
    cache_trim(&c);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(file, sizeof(file), "%s/%s", c.dir, names[i]);
        ck_assert_msg(file_exists(file), "%s", names[i]);
    }
}

/* What was killed while it wrote an entry leaves its unfinished form. */
TEST(unfinished_entry_counts_and_goes)
{
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    buf_reset(&path);
    buf_addf(&path, "%s/verdicts/" FILE_TEMPORARY_MARK "0", c.dir);
    OK(file_write(path.ptr, "x", 1, &st));
    ck_assert_uint_eq(cache_bytes(&c), 1);
    ck_assert_int_eq(utimensat(AT_FDCWD, path.ptr, old, 0), 0);
    c.max_bytes = 0;
    cache_trim(&c);
    ck_assert(!file_exists(path.ptr));
}

TEST(headers_are_written_once_and_mended)
{
    const struct kernel_file files[] = {{"a.h", "one", 3}, {"b.h", "two", 3}};
    const struct kernel_file others[] = {{"a.h", "one", 3}, {"b.h", "three", 5}};
    OK(cache_headers(&c, files, 2, &dir, &st));
    OK(cache_headers(&c, others, 2, &data, &st));
    ck_assert_str_ne(dir.ptr, data.ptr);
    buf_addf(&path, "%s/b.h", dir.ptr);
    OK(file_write(path.ptr, "damaged", 7, &st));
    OK(cache_headers(&c, files, 2, &dir, &st));
    buf_reset(&data);
    OK(file_read(path.ptr, 0, &data, &st));
    ck_assert_str_eq(data.ptr, "two");
}

TEST(place_and_bound_come_from_the_environment)
{
    struct cache other;
    setenv("FUSEPLAN_CACHE", test_path("mine"), 1);
    setenv("FUSEPLAN_CACHE_MAX_BYTES", "12345", 1);
    OK(cache_open(NULL, &other, &st));
    ck_assert_str_eq(other.dir, test_path("mine"));
    ck_assert_uint_eq(other.max_bytes, 12345);
    cache_release(&other);
    setenv("FUSEPLAN_CACHE_MAX_BYTES", "12 GB", 1);
    FAILS(cache_open(NULL, &other, &st), STATUS_USAGE, "");
}

SUITE("cache", setup, teardown)
