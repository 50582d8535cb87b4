#include "base/base.h"
#include "tests/suite.h"

#include <sys/wait.h>

/* Each test runs in its directory. */
static void setup(void)
{
    test_dir_setup();
    ck_assert_int_eq(chdir(test_dir), 0);
}

static void write_in(const char *dir, const char *name)
{
    SCOPED_BUF path = BUF_INIT;
    buf_addf(&path, "%s/%s", dir, name);
    write_text(path.ptr, name);
}

/* The entries of a directory as one text. */
static void check_entries(const char *dir, const char *expected)
{
    SCOPED_BY(names_release) struct names found;
    SCOPED_BUF text = BUF_INIT;
    OK(directory_list(dir, &found, &st));
    names_text(&found, &text);
    ck_assert_str_eq(text.ptr, expected);
}

static int write_whole(const char *dir, bool replace)
{
    struct fresh_dir s;
    if (fresh_dir_open(dir, &s, &st) != 0)
        return -1;
    write_in(s.staging.dir, "a");
    write_in(s.staging.dir, "b");
    int result = fresh_dir_commit(&s, replace, &st);
    fresh_dir_release(&s);
    return result;
}

/* Names of a directory `d`, and what the test's directory then holds. */
static const struct {
    const char *name, *beside;
} places[] = {
    {"d", "'d'"},
    {"d/", "'d'"},
    {"./d//", "'d'"},
    {"d/.", "'d'"},
    {"d/../d", "'d'"},
    {"link", "'d', 'link'"}, /* from here on links, which must lead to a directory */
    {"link/", "'d', 'link'"},
    {"absolute", "'absolute', 'd'"},
};
enum { FIRST_LINK = 5 };

static void make_links(int place)
{
    if (strncmp(places[place].name, "link", 4) == 0)
        ck_assert_int_eq(symlink("d", "link"), 0);
    if (strcmp(places[place].name, "absolute") == 0)
        ck_assert_int_eq(symlink(test_path("d"), "absolute"), 0);
}

/* _i: a place twice, where there is no directory `d` and where there is an empty one. */
TEST_LOOP(a_directory_gets_any_name_but_a_dangling_links, 0, 2 * ARRAY_LEN(places))
{
    const char *name = places[_i / 2].name;
    const bool exists = _i % 2 == 1;
    struct stat before = {0}, after;
    ck_assert(!exists || (mkdir("d", 0700) == 0 && stat("d", &before) == 0));
    make_links(_i / 2);
    if (!exists && _i / 2 >= FIRST_LINK) {
        FAILS(write_whole(name, false), STATUS_ENVIRONMENT, FILE_DANGLES);
        ck_assert(!file_exists("d"));
        return;
    }
    OK(write_whole(name, false));
    check_entries("d", "'a', 'b'");
    check_entries(".", places[_i / 2].beside);
    ck_assert_int_eq(stat("d", &after), 0);
    ck_assert(!exists || before.st_ino == after.st_ino); /* it may be a mount point */
}

TEST(the_working_directory_stays_one)
{
    OK(file_make_dirs("d", &st));
    ck_assert_int_eq(chdir("d"), 0);
    OK(write_whole(".", false));
    check_entries(".", "'a', 'b'");
    check_entries(test_dir, "'d'");
}

TEST(new_directories_have_the_mode_that_umask_leaves)
{
    struct stat info;
    umask(027);
    OK(write_whole("e/d", false));
    ck_assert_int_eq(stat("e/d", &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0750);
}

TEST(what_is_there_stays)
{
    OK(file_make_dirs("d", &st));
    write_in("d", "mine");
    FAILS(write_whole("d", false), STATUS_ENVIRONMENT, "it holds 'mine'");
    check_entries("d", "'mine'");
    OK(write_whole("d", true));
    OK(write_whole("d", true));
    check_entries("d", "'a', 'b', 'mine'");
}

/* Two that begin where no directory is. */
TEST(the_second_of_two_finds_what_the_first_wrote)
{
    for (int replace = 0; replace < 2; replace++) {
        struct fresh_dir s;
        SCOPED char *name = buf_text("d%d", replace);
        OK(fresh_dir_open(name, &s, &st));
        write_in(s.staging.dir, "b");
        write_in(s.staging.dir, "c");
        OK(write_whole(name, false));
        ck_assert_int_eq(fresh_dir_commit(&s, replace, &st), replace - 1);
        ck_assert_str_eq(st.message + strcspn(st.message, ":"),
                         replace ? "" : ": it holds 'a', 'b'");
        fresh_dir_release(&s);
        check_entries(name, replace ? "'a', 'b', 'c'" : "'a', 'b'");
    }
    check_entries(".", "'d0', 'd1'");
}

TEST(directories_are_not_replaced_by_files)
{
    OK(file_make_dirs("d/b", &st));
    write_in("d/b", "mine");
    FAILS(write_whole("d", true), STATUS_ENVIRONMENT, "it holds 'b'");
    check_entries("d", "'b'");
    check_entries("d/b", "'mine'");
}

TEST(files_are_no_directories)
{
    write_in(".", "f");
    static const char *const names[] = {"f", "f/d", "f/.", "self", "self/d"};
    ck_assert_int_eq(symlink("self", "self"), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        FAILS(write_whole(names[i], true), STATUS_ENVIRONMENT, names[i]);
    check_entries(".", "'f', 'self'");
}

/* What is staged goes where it was not committed. */
TEST(nothing_is_left_behind)
{
    struct fresh_dir s;
    OK(fresh_dir_open("d", &s, &st));
    write_in(s.staging.dir, "a");
    fresh_dir_release(&s);
    check_entries(".", "");
    FAILS(fresh_dir_open("/proc/d", &s, &st), STATUS_ENVIRONMENT, "'/proc/d'");
}

/* A process that stages a directory until it is killed. */
static pid_t stage_elsewhere(const char *dir)
{
    int ends[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct fresh_dir s;
        if (fresh_dir_open(dir, &s, &st) != 0)
            _exit(1);
        write_in(s.staging.dir, "theirs");
        if (write(ends[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

/* What another process stages stays, until that is killed. */
TEST(what_a_killed_process_staged_is_removed)
{
    pid_t other = stage_elsewhere("d");
    SCOPED_BY(names_release) struct names staged;
    OK(directory_list("d", &staged, &st));
    ck_assert_int_eq(staged.count, 1);
    SCOPED char *path = buf_text("d/%s", staged.items[0]);
    scratch_sweep("d");
    check_entries(path, "'theirs'");
    ck_assert_int_eq(kill(other, SIGKILL), 0);
    ck_assert_int_eq(waitpid(other, NULL, 0), other);
    ck_assert_int_eq(symlink("..", "d/" FILE_TEMPORARY_MARK "1"), 0);
    OK(write_whole("d", true));
    check_entries("d", "'" FILE_TEMPORARY_MARK "1', 'a', 'b'");
}

/* A user's own directory may begin with the program's name. */
TEST(what_is_named_alike_is_no_ones_leftover)
{
    OK(file_make_dirs("d/.fuseplan-models", &st));
    write_in("d/.fuseplan-models", "mine");
    OK(write_whole("d", true));
    check_entries("d", "'.fuseplan-models', 'a', 'b'");
    check_entries("d/.fuseplan-models", "'mine'");
}

TEST(many_names_are_cut)
{
    SCOPED_BY(names_release) struct names n = {.count = 0};
    SCOPED_BUF text = BUF_INIT;
    for (int i = 0; i < 6; i++)
        names_add(&n, "x");
    names_text(&n, &text);
    ck_assert_str_eq(text.ptr, "'x', 'x', 'x', 'x', 'x', 'x'");
    names_add(&n, "y");
    buf_reset(&text);
    names_text(&n, &text);
    ck_assert_str_eq(text.ptr, "'x', 'x', 'x', 'x', 'x' and 2 more");
}

SUITE("directory", setup, test_dir_teardown)
