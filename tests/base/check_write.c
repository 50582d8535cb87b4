#include "base/base.h"
#include "tests/suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static void check_content(const char *name, const char *expected)
{
    SCOPED_BUF text = BUF_INIT;
    OK(file_read(test_path(name), 0, &text, &st));
    ck_assert_str_eq(text.ptr, expected);
}

/* How many entries the test's directory has: no temporary file is one of them. */
static int entries(void)
{
    DIR *d = opendir(test_dir);
    int count = -2; /* . and .. */
    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

TEST(replaces_a_regular_file)
{
    struct stat before, after;
    OK(file_write(test_path("f"), "one\0two", 7, &st));
    ck_assert_int_eq(chmod(test_path("f"), 0640), 0);
    ck_assert_int_eq(stat(test_path("f"), &before), 0);
    OK(file_write(test_path("f"), "three", 5, &st));
    check_content("f", "three");
    ck_assert_int_eq(stat(test_path("f"), &after), 0);
    ck_assert_uint_ne(before.st_ino, after.st_ino); /* readers of the old contents keep them */
    ck_assert_uint_eq(after.st_mode & 07777, 0640);
    ck_assert_int_eq(entries(), 1);
}

static int ends_by; /* the signal that ends a process whose file may not grow further */

static void end_now(int signal_number)
{
    raise(ends_by);
}

/* The signal comes while a process writes the file. */
static void write_until(int signal_number)
{
    int status;
    ends_by = signal_number;
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){10, 10});
        signal(SIGXFSZ, end_now);
        signal(SIGTERM, SIG_DFL);
        file_write(test_path("f"), "sixteen bytes...", 16, &st);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == signal_number);
}

TEST(a_signal_waits_until_no_temporary_file_is_left)
{
    write_until(SIGTERM);
    ck_assert_int_eq(entries(), 0);
}

TEST(new_file_has_the_mode_that_umask_leaves)
{
    struct stat info;
    umask(027);
    OK(file_write(test_path("f"), "", 0, &st));
    ck_assert_int_eq(stat(test_path("f"), &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0640);
}

/* Root has a device of its own, since a fault would replace it; others cannot replace /dev/full. */
TEST(devices_stay_what_they_are)
{
    enum { MEMORY_DEVICES = 1, FULL = 7 };
    struct stat info;
    const char *full = test_path("full");
    if (mknod(full, S_IFCHR | 0666, makedev(MEMORY_DEVICES, FULL)) != 0 ||
        access(full, W_OK) != 0 || open(full, O_WRONLY | O_CLOEXEC) < 0)
        full = "/dev/full";
    FAILS(file_write(full, "x", 1, &st), STATUS_ENVIRONMENT, "full': No space left");
    ck_assert_int_eq(stat(full, &info), 0);
    ck_assert(S_ISCHR(info.st_mode));
}

TEST(fifo_carries_the_contents)
{
    char read_back[4] = {0};
    ck_assert_int_eq(mkfifo(test_path("p"), 0600), 0);
    int fd = open(test_path("p"), O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(fd, 0);
    OK(file_write(test_path("p"), "abc", 3, &st));
    ck_assert_int_eq(read(fd, read_back, sizeof(read_back)), 3);
    ck_assert_str_eq(read_back, "abc");
    ck_assert_int_eq(entries(), 1);
}

/* A link to a file, and a link to that link.  One to a file that does not exist would let its
 * writer choose where a new file lies. */
TEST(links_are_followed_to_what_exists)
{
    struct stat info;
    ck_assert_int_eq(mkdir(test_path("d"), 0700), 0);
    ck_assert_int_eq(symlink("d/f", test_path("link")), 0);
    ck_assert_int_eq(symlink(test_path("link"), test_path("chain")), 0);
    FAILS(file_write(test_path("chain"), "new", 3, &st), STATUS_ENVIRONMENT, FILE_DANGLES);
    FAILS(file_write(test_path("link"), "new", 3, &st), STATUS_ENVIRONMENT, FILE_DANGLES);
    ck_assert(!file_exists(test_path("d/f")));
    OK(file_write(test_path("d/f"), "old", 3, &st));
    OK(file_write(test_path("chain"), "new", 3, &st));
    check_content("d/f", "new");
    OK(file_write(test_path("link"), "newer", 5, &st));
    check_content("d/f", "newer");
    ck_assert_int_eq(lstat(test_path("chain"), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(lstat(test_path("link"), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));

    ck_assert_int_eq(symlink("self", test_path("self")), 0);
    FAILS(file_write(test_path("self"), "x", 1, &st), STATUS_ENVIRONMENT, "symbolic links");
    ck_assert_int_eq(entries(), 4);
}

TEST(processes_write_the_same_file)
{
    enum { WRITERS = 8, TIMES = 100 };
    for (int i = 0; i < WRITERS; i++) {
        if (fork() != 0)
            continue;
        int result = 0;
        for (int k = 0; k < TIMES && result == 0; k++)
            result = file_write(test_path("f"), "text", 4, &st);
        if (result != 0)
            fprintf(stderr, "%s\n", st.message);
        _exit(result != 0);
    }
    for (int i = 0, status; i < WRITERS; i++)
        ck_assert(wait(&status) > 0 && status == 0);
    check_content("f", "text");
    ck_assert_int_eq(entries(), 1);
}

TEST(all_names_of_a_file_keep_it)
{
    OK(file_write(test_path("f"), "longer than new", 15, &st));
    ck_assert_int_eq(link(test_path("f"), test_path("g")), 0);
    OK(file_write(test_path("f"), "new", 3, &st));
    check_content("f", "new");
    check_content("g", "new");
}

/* What is printed before and after stays in order around a file that is standard output itself. */
TEST(standard_output_is_not_replaced)
{
    static const char *const names[] = {"out", "-", "/dev/stdout", "/proc/self/fd/1"};
    ck_assert_ptr_nonnull(freopen(test_path("out"), "w", stdout));
    ck_assert_int_eq(chdir(test_dir), 0);
    printf("first\n");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        OK(file_write(names[i], "file\n", 5, &st));
    printf("last\n");
    fflush(stdout);
    check_content("out", "first\nfile\nfile\nfile\nfile\nlast\n");
    ck_assert_int_eq(entries(), 1);
}

/* A write that fails half way leaves the old contents and no temporary file. */
TEST(failed_write_changes_nothing)
{
    OK(file_write(test_path("f"), "old", 3, &st));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {.rlim_cur = 10, .rlim_max = RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    FAILS(file_write(test_path("f"), "0123456789abcdef", 16, &st), STATUS_ENVIRONMENT, "");
    FAILS(file_write(test_path("g"), "0123456789abcdef", 16, &st), STATUS_ENVIRONMENT, "");
    check_content("f", "old");
    ck_assert_int_eq(entries(), 1);
}

/* In a directory with a file f, a directory d and two links to files that do not exist. */
static const struct {
    const char *path, *refusal; /* null: none */
} places[] = {
    {"none/f", "No such file or directory"},
    {".", "Is a directory"},
    {"d", "Is a directory"},
    {"f/g", "Not a directory"},
    {"f", NULL},
    {"new", NULL},
    {"dangling", FILE_DANGLES},
    {"astray", FILE_DANGLES},
    {"/dev/null", NULL},
    {"/dev/stdout", NULL},
    {"-", NULL},
    {"new/", "Is a directory"},
};

TEST_LOOP(places_that_refuse_are_known_before, 0, ARRAY_LEN(places))
{
    ck_assert_int_eq(chdir(test_dir), 0);
    OK(file_write("f", "", 0, &st));
    ck_assert_int_eq(mkdir("d", 0700), 0);
    ck_assert_int_eq(symlink("d/new", "dangling"), 0);
    ck_assert_int_eq(symlink("none/new", "astray"), 0);
    if (places[_i].refusal == NULL)
        OK(file_check_write(places[_i].path, &st));
    else
        FAILS(file_check_write(places[_i].path, &st), STATUS_ENVIRONMENT, places[_i].refusal);
    ck_assert_int_eq(entries(), 4);
}

/* Root may write anywhere, so the test becomes nobody.  A file that may be written is, even where
 * its directory takes no other; one that may not be written stays, even where it could
 * be replaced. */
TEST(rights_are_those_of_a_shell)
{
    const uid_t nobody = 65534;
    OK(file_write(test_path("open"), "longer than new", 15, &st));
    OK(file_write(test_path("shut"), "mine", 4, &st));
    ck_assert_int_eq(chmod(test_path("open"), 0666), 0);
    ck_assert_int_eq(chmod(test_path("shut"), 0444), 0);
    ck_assert_int_eq(chmod(test_dir, 0755), 0);
    bool root = getuid() == 0;
    ck_assert_int_eq(root ? setresuid(nobody, nobody, 0) : chmod(test_dir, 0555), 0);
    OK(file_check_write(test_path("open"), &st));
    OK(file_write(test_path("open"), "new", 3, &st));
    check_content("open", "new");
    FAILS(file_check_write(test_path("shut"), &st), STATUS_ENVIRONMENT, "Permission denied");
    FAILS(file_write(test_path("shut"), "x", 1, &st), STATUS_ENVIRONMENT, "Permission denied");
    check_content("shut", "mine");
    FAILS(file_check_write(test_path("none"), &st), STATUS_ENVIRONMENT, "Permission denied");
    FAILS(file_write(test_path("none"), "x", 1, &st), STATUS_ENVIRONMENT, "Permission denied");
    ck_assert_int_eq(entries(), 2);
    ck_assert_int_eq(root ? setresuid(0, 0, 0) : chmod(test_dir, 0755), 0);
}

SUITE("write", test_dir_setup, test_dir_teardown)
