#include "bench/compile/compile.h"
#include "tests/held_clock.h"
#include "tests/processes.h"
#include "tests/suite.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Runs a shell command to its end. */
static struct process shell(const char *command, double limit_s, bool keep_last)
{
    const char *const argv[] = {"sh", "-c", command, NULL};
    const struct process_spec spec = {.path = "/bin/sh",
                                      .argv = argv,
                                      .fds = {-1, -1},
                                      .limit_s = limit_s,
                                      .keep_last = keep_last};
    struct process p;
    OK(process_run(&spec, NULL, &p, &st));
    return p;
}

TEST(output_and_status_are_kept)
{
    struct process p = shell("echo out; echo err >&2; exit 3", 10, false);
    ck_assert_str_eq(p.said.ptr, "out\nerr\n");
    ck_assert_int_eq(WEXITSTATUS(p.wait_status), 3);
    ck_assert(!p.overdue);
    process_release(&p);
}

/* A child without its descriptors would print on ours: here a file in the place of
 * standard output. */
TEST_LOOP(few_descriptors_are_refused, 8, 20)
{
    const char *const argv[] = {"echo", "leaked", NULL};
    const struct process_spec spec = {.path = "/bin/echo", .argv = argv, .fds = {-1, -1}};
    struct rlimit files;
    struct process p;
    struct stat written;
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    dup2(fileno(out), STDOUT_FILENO);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    struct rlimit few = {.rlim_cur = (rlim_t)_i, .rlim_max = files.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    st = STATUS_INIT;
    int result = process_run(&spec, NULL, &p, &st);
    setrlimit(RLIMIT_NOFILE, &files);
    dup2(kept, STDOUT_FILENO);
    ck_assert_int_eq(fstat(fileno(out), &written), 0);
    ck_assert_int_eq(written.st_size, 0);
    ck_assert_int_eq(result, -1);
    ck_assert_int_eq(st.code, STATUS_ENVIRONMENT);
    ck_assert_msg(strstr(st.message, "'ulimit -n'") != NULL, "%s", st.message);
    fclose(out);
}

TEST(long_output_is_cut)
{
    const char *command = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done";
    struct process first = shell(command, 10, false), last = shell(command, 10, true);
    ck_assert_uint_eq(first.said.len, PROCESS_SAID_MAX);
    ck_assert_uint_eq(last.said.len, PROCESS_SAID_MAX);
    ck_assert_ptr_nonnull(strstr(first.said.ptr, "line 0\n"));
    ck_assert_ptr_nonnull(strstr(last.said.ptr, "line 2999\n"));
    ck_assert_ptr_null(strstr(last.said.ptr, "line 0\n"));
    process_release(&first);
    process_release(&last);
}

TEST(overdue_ones_are_killed_with_their_children)
{
    char command[128];
    snprintf(command, sizeof(command), "sleep 60 & echo $!; : >%s; wait", test_path("said"));
    clock_await(test_path("said"));
    double start = clock_seconds();
    SCOPED_BY(process_release) struct process p = shell(command, 0.2, false);
    ck_assert(p.overdue);
    ck_assert_double_lt(clock_seconds() - start, 30);
    ck_assert(WIFSIGNALED(p.wait_status));
    pid_t child = (pid_t)strtol(p.said.ptr, NULL, 10);
    ck_assert_int_gt(child, 1);
    ck_assert(pid_ends(child));
}

/* Children that outlive their leader are not left behind. */
TEST(leftover_children_are_killed)
{
    struct process p = shell("sleep 60 >/dev/null 2>&1 & echo $!", 10, false);
    pid_t child = (pid_t)strtol(p.said.ptr, NULL, 10);
    ck_assert_int_eq(p.wait_status, 0);
    ck_assert_int_gt(child, 1);
    ck_assert(pid_ends(child));
    process_release(&p);
}

TEST(files_are_handed_on_where_standard_ones_are_closed)
{
    const char *const argv[] = {"sh", "-c", "echo through >&3; cat <&4; echo said", NULL};
    SCOPED_BY(process_release) struct process p;
    char text[16] = "";
    int ends[2], given[2];
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(given, O_CLOEXEC), 0);
    ck_assert_int_eq(ends[0], STDIN_FILENO); /* the numbers that the child's own will have */
    ck_assert_int_eq(write(given[1], "given\n", 6), 6);
    close(given[1]);
    const struct process_spec spec = {
        .path = "/bin/sh", .argv = argv, .fds = {ends[1], given[0]}, .limit_s = 10};
    OK(process_run(&spec, NULL, &p, &st));
    ck_assert_str_eq(p.said.ptr, "given\nsaid\n");
    ck_assert_int_eq(read(ends[0], text, sizeof(text) - 1), 8);
    ck_assert_str_eq(text, "through\n");
}

/* Such as files of the shell that started fuseplan. */
TEST(nothing_else_is_inherited)
{
    enum { LOW = 3, HIGH = 900 };
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), kept = fcntl(LOW, F_DUPFD_CLOEXEC, 10);
    ck_assert_int_eq(dup2(null, LOW), LOW);
    ck_assert_int_eq(dup2(null, HIGH), HIGH);
    struct process p =
        shell("for fd in 3 900; do [ ! -e /proc/$$/fd/$fd ] || echo $fd; done", 10, false);
    if (kept >= 0)
        dup2(kept, LOW); /* the suite's own */
    ck_assert_str_eq(p.said.ptr, "");
    process_release(&p);
    close(HIGH);
}

TEST(ends_are_known_where_sigchld_was_ignored)
{
    signal(SIGCHLD, SIG_IGN);
    SCOPED_BY(process_release) struct process p = shell("exit 3", 10, false);
    ck_assert(!p.overdue);
    ck_assert_int_eq(WEXITSTATUS(p.wait_status), 3);
}

/* As where a terminal's Ctrl-Z stopped the parent past a child's deadline: 0.1 s. */
TEST(ended_before_it_was_looked_at_is_not_overdue)
{
    const char *const argv[] = {"sh", "-c", "echo done", NULL};
    const struct process_spec spec = {
        .path = "/bin/sh", .argv = argv, .fds = {-1, -1}, .limit_s = 0.1};
    SCOPED_BY(process_release) struct process p;
    struct process *const list[] = {&p};
    siginfo_t ended;
    OK(process_start(&spec, &p, &st));
    ck_assert_int_eq(waitid(P_PID, (id_t)p.pid, &ended, WEXITED | WNOWAIT), 0);
    usleep(150000); /* at least: its deadline is over */
    OK(process_wait_any(list, 1, INFINITY, NULL, &st));
    ck_assert(!p.overdue);
    ck_assert_int_eq(p.wait_status, 0);
    ck_assert_str_eq(p.said.ptr, "done\n");
}

/* A child does not outlive its parent, however the parent ends. */
TEST(child_dies_with_its_parent)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t parent = fork();
    if (parent == 0) {
        const char *const argv[] = {"sleep", "60", NULL};
        const struct process_spec spec = {.path = "/bin/sleep", .argv = argv, .fds = {-1, -1}};
        struct process p;
        if (process_start(&spec, &p, &st) == 0 &&
            write(ends[1], &p.pid, sizeof(p.pid)) == sizeof(p.pid))
            pause();
        _exit(1);
    }
    pid_t child = 0;
    ck_assert_int_eq(read(ends[0], &child, sizeof(child)), sizeof(child));
    ck_assert_int_ne(pid_state(child), 'X');
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    ck_assert(pid_ends(child));
}

SUITE("process", test_dir_setup, test_dir_teardown)
