/* The thread that shows the progress of a command, beside processes that the command starts, and
 * events beside signals.  All else that the command shows is in progress.sh. */
#include "cmd/cmd.h"
#include "tests/suite.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void wait_s(double seconds)
{
    usleep((useconds_t)(1e6 * seconds));
}

/* Opens a terminal in the place of stderr that takes no more text until somebody reads; returns its
 * reader. */
static int open_full_terminal(void)
{
    enum { FILLS = 5 };
    static const char text[] = "full";
    int reader = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_int_ge(reader, 0);
    ck_assert_int_eq(grantpt(reader), 0);
    ck_assert_int_eq(unlockpt(reader), 0);
    int terminal = open(ptsname(reader), O_RDWR | O_NOCTTY | O_NONBLOCK);
    ck_assert_int_ge(terminal, 0);
    for (int i = 0; i < FILLS; i++, wait_s(0.02)) /* the kernel makes room after a while */
        while (write(terminal, text, sizeof(text)) > 0)
            ;
    ck_assert_int_eq(fcntl(terminal, F_SETFL, 0), 0);
    ck_assert_int_eq(dup2(terminal, STDERR_FILENO), STDERR_FILENO);
    close(terminal);
    setenv("TERM", "xterm", 1);
    return reader;
}

/* A process that reads once the line should have been drawn. */
static pid_t read_later(int reader)
{
    char text[256];
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    wait_s(PROGRESS_FIRST_S + 1.5);
    while (read(reader, text, sizeof(text)) > 0)
        ;
    _exit(EXIT_SUCCESS);
}

/* The ticker waits inside its drawing, or on a slow machine is about to.  A child that began now
 * would find a lock held. */
TEST(a_child_begins_while_nothing_is_drawn)
{
    const struct options o = {.given = 0};
    const struct step step = {.phase = "plans"};
    int status;
    pid_t reading = read_later(open_full_terminal());
    OK(progress_begin(&o, "search", &st));
    wait_s(PROGRESS_FIRST_S + 0.75);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        progress_step(NULL, &step);
        _exit(EXIT_SUCCESS);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS, "status %d", status);
    OK(progress_end(0, &st));
    kill(reading, SIGKILL);
    waitpid(reading, &status, 0);
}

/* ---- events ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t *caught; /* how many signals the writer has caught; shared with it */

static void count_signal(int signal_number)
{
    ++*caught;
}

/* Opens a pipe with a name that takes no more; returns both ends. */
static int open_full_pipe(const char *path)
{
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int pipe = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(pipe, 0);
    while (write(pipe, "\n", 1) == 1)
        ;
    return pipe;
}

static pid_t write_events(const char *path)
{
    const struct options o = {.given = OPT(QUIET), .events = path};
    const struct sigaction action = {.sa_handler = count_signal};
    sigaction(SIGINT, &action, NULL); /* inherited: no signal comes too early */
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int result = progress_begin(&o, "search", &st) == 0 ? progress_end(0, &st) : -1;
    _exit(result == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Ctrl-C comes while the reader is slow. */
TEST(a_signal_does_not_end_the_events)
{
    enum { SIGNALS = 20 };
    const char *path = test_path("events");
    char text[4096];
    int status;
    SCOPED_BUF got = BUF_INIT;
    int pipe = open_full_pipe(path);
    caught = mmap(NULL, sizeof(*caught), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne((const void *)caught, MAP_FAILED);
    pid_t pid = write_events(path), ended = 0;
    for (; *caught < SIGNALS && ended == 0; ended = waitpid(pid, &status, WNOHANG)) {
        kill(pid, SIGINT);
        wait_s(0.01);
    }
    while (ended == 0) {
        ended = waitpid(pid, &status, WNOHANG);
        for (ssize_t n; (n = read(pipe, text, sizeof(text))) > 0;)
            buf_add(&got, text, (size_t)n);
        wait_s(0.001);
    }
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS, "status %d", status);
    ck_assert_ptr_nonnull(strstr(got.ptr, "{\"event\":\"start\""));
    ck_assert_ptr_nonnull(strstr(got.ptr, "{\"event\":\"end\""));
    close(pipe);
}

SUITE("the ticker of cmd/progress", test_dir_setup, test_dir_teardown)
