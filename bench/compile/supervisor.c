/* Between fuseplan and each program that it starts stands a supervisor: a copy of fuseplan that
 * only waits.  The program's processes may leave its process group, or lose their parent; the
 * supervisor is then the one that the system gives them to (PR_SET_CHILD_SUBREAPER), so it finds
 * them all.  And it outlives a SIGKILL of fuseplan for as long as it takes to end them.
 *
 * The copy may have been made of a process with threads: only async-signal-safe calls. */
#include "bench/compile/compile.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_CANNOT_RUN = 127 };

/* Makes from[i] the child's descriptor i; a program that it runs inherits no other.  A from[k] may
 * be i itself, if the parent had i closed: so all are moved out of the way first.  False where
 * there is no room for that. */
static bool move_descriptors(int *from, int count)
{
    enum { CLEAR = 16 };
    for (int i = 0; i < count; i++)
        if (from[i] >= 0 && (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, CLEAR)) < 0)
            return false;
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC); /* else inherited where the parent's own were */
    for (int i = 0; i < count; i++)
        if (from[i] >= 0 && dup2(from[i], i) < 0)
            return false;
    return true;
}

/* Says why no program runs, where its output goes. */
static _Noreturn void give_up(int output)
{
    const char *why = strerrordesc_np(errno);
    if (why != NULL && write(output, why, strlen(why)) < 0)
        _exit(EXIT_CANNOT_RUN);
    _exit(EXIT_CANNOT_RUN);
}

static _Noreturn void run_program(const struct process_spec *spec, pid_t supervisor, int answers,
                                  int output)
{
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != supervisor)
        _exit(EXIT_CANNOT_RUN);

    /* Where memory runs out, the system ends compilers and candidates, not the search. */
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    const bool marked = score >= 0 && write(score, "500", 3) == 3;
    (void)marked; /* else the system treats it as the parent */

    const bool nice = spec->niceness == 0 || setpriority(PRIO_PROCESS, 0, spec->niceness) == 0;
    (void)nice; /* it may have a lower priority already */

    struct rlimit space;
    if (spec->max_memory_bytes > 0 && getrlimit(RLIMIT_AS, &space) == 0 &&
        space.rlim_cur > spec->max_memory_bytes) {
        space.rlim_cur = spec->max_memory_bytes;
        if (setrlimit(RLIMIT_AS, &space) != 0)
            give_up(output);
    }

    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);

    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int from[] = {null, answers, output, spec->fds[0], spec->fds[1]};
    if (!move_descriptors(from, ARRAY_LEN(from)))
        give_up(output);

    char *const *argv = (char *const *)(uintptr_t)spec->argv;
    execve(spec->path, argv, spec->env != NULL ? spec->env : environ);
    give_up(STDERR_FILENO);
}

/* Kills all own children; false where the system does not list them. */
static bool kill_children(void)
{
    int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    char text[4096];
    ssize_t n;
    pid_t pid = 0;
    if (list < 0)
        return false;
    while ((n = read(list, text, sizeof(text))) > 0)
        for (ssize_t i = 0; i < n; i++) {
            bool digit = text[i] >= '0' && text[i] <= '9';
            if (!digit && pid > 0)
                kill(pid, SIGKILL);
            pid = digit ? pid * 10 + (text[i] - '0') : 0;
        }
    close(list);
    return true;
}

/* A killed child's children become our own, so this ends when there is none. */
static void end_tree(pid_t program, int *status)
{
    int other;
    pid_t ended;
    kill(-program, SIGKILL);
    while (kill_children() && (ended = waitpid(-1, &other, 0)) > 0)
        if (ended == program)
            *status = other;
}

/* Waits until the program ends by itself, or SIGTERM ends it.  Others that end meanwhile had lost
 * their parent. */
static int watch(pid_t program, const sigset_t *signals)
{
    int status, number;
    for (;;) {
        pid_t ended;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
            if (ended == program)
                return status;
        do
            number = sigwaitinfo(signals, NULL);
        while (number < 0);
        if (number == SIGTERM) {
            kill(program, SIGKILL);
            while (waitpid(program, &status, 0) < 0 && errno == EINTR)
                ;
            return status;
        }
    }
}

/* Ends as the program did. */
static _Noreturn void mirror(int status)
{
    const struct rlimit none = {0, 0};
    if (!WIFSIGNALED(status))
        _exit(WEXITSTATUS(status));
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(status));
    setrlimit(RLIMIT_CORE, &none); /* the program has left its dump */
    signal(WTERMSIG(status), SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(WTERMSIG(status));
    _exit(EXIT_CANNOT_RUN);
}

/* All signals are blocked already. */
void supervisor_run(const struct process_spec *spec, pid_t parent, int answers, int output)
{
    sigset_t awaited;
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    setpgid(0, 0); /* a SIGKILL of fuseplan's group is not for the supervisor */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(EXIT_CANNOT_RUN);

    pid_t self = getpid(), program = fork();
    if (program == 0)
        run_program(spec, self, answers, output);
    if (program < 0)
        give_up(output);
    setpgid(program, program); /* as the child does: whoever comes first */
    close_range(0, ~0u, 0); /* locks among them, and the pipe whose end shows that of the output */
    int status = watch(program, &awaited);
    if (spec->may_leave_daemons && WIFEXITED(status))
        kill(-program, SIGKILL);
    else
        end_tree(program, &status);
    mirror(status);
}
