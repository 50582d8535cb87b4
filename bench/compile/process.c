#include "bench/compile/compile.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESCRIPTORS_LEAST = 64 /* of this program, or of a linker with its libraries */ };

/* A lack of descriptors shows nowhere better than here: a linker that finds no library blames the
 * library. */
static int check_descriptors(const char *path, struct status *st)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= DESCRIPTORS_LEAST)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT,
                      "cannot start '%s': only %d files may be open at a time, and it needs %d; "
                      "raise the limit with 'ulimit -n'",
                      path, (int)files.rlim_cur, DESCRIPTORS_LEAST);
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Makes a pipe from the child; reading from it does not block. */
static bool open_pipe(int *ours, int *childs)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *ours = ends[0];
    *childs = ends[1];
    return true;
}

int process_start(const struct process_spec *spec, struct process *out, struct status *st)
{
    *out = PROCESS_INIT;
    out->keep_last = spec->keep_last;
    buf_init(&out->said);
    buf_init(&out->answer);
    if (check_descriptors(spec->path, st) != 0)
        return -1;

    child_keep_ends();
    int output = -1, answers = -1;
    pid_t parent = getpid(), pid = -1;
    sigset_t all, before; /* a signal to the child waits until it can be acted on */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    if (open_pipe(&out->output, &output) && (!spec->answers || open_pipe(&out->answers, &answers)))
        pid = fork();
    if (pid == 0)
        supervisor_run(spec, parent, answers >= 0 ? answers : output, output);
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close_end(&output);
    close_end(&answers);
    if (pid < 0) {
        close_end(&out->output);
        close_end(&out->answers);
        return status_set(st, STATUS_ENVIRONMENT, "cannot start '%s': %s%s", spec->path,
                          strerror(error),
                          error == EAGAIN ? "; 'ulimit -u' allows no more processes" : "");
    }
    out->pid = pid;
    out->limit_s = spec->limit_s;
    patience_begin(&out->waited, clock_seconds());
    return 0;
}

static void keep(struct buf *text, bool last, const char *data, size_t n)
{
    if (!last) {
        size_t room = PROCESS_SAID_MAX - text->len;
        buf_add(text, data, n < room ? n : room);
        return;
    }
    buf_add(text, data, n);
    if (text->len > PROCESS_SAID_MAX) {
        size_t drop = text->len - PROCESS_SAID_MAX;
        memmove(text->ptr, text->ptr + drop, PROCESS_SAID_MAX);
        text->len = PROCESS_SAID_MAX;
        text->ptr[text->len] = '\0';
    }
}

static void drain(int *fd, struct buf *text, bool keep_last)
{
    enum { ROUNDS = 64 }; /* a child that never stops printing must not hold its parent */
    char chunk[4096];
    for (int i = 0; i < ROUNDS && *fd >= 0; i++) {
        ssize_t n = read(*fd, chunk, sizeof(chunk));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0)
            close_end(fd);
        else
            keep(text, keep_last, chunk, (size_t)n);
    }
}

void process_drain(struct process *p)
{
    drain(&p->output, &p->said, p->keep_last);
    drain(&p->answers, &p->answer, true);
}

/* Once the child was waited for: reads the last output. */
static void finish(struct process *p)
{
    p->pid = 0;
    process_drain(p);
    close_end(&p->output);
    close_end(&p->answers);
}

bool process_ended(struct process *p)
{
    if (p->pid == 0)
        return true;
    if (waitpid(p->pid, &p->wait_status, WNOHANG) != p->pid)
        return false;
    finish(p);
    return true;
}

void process_dismiss(const struct process *p)
{
    if (p->pid == 0)
        return;
    kill(p->pid, SIGTERM);
    kill(p->pid, SIGCONT);
}

void process_kill(struct process *p)
{
    if (p->pid == 0)
        return;
    process_dismiss(p);
    while (waitpid(p->pid, &p->wait_status, 0) < 0 && errno == EINTR)
        ;
    finish(p);
}

void process_release(struct process *p)
{
    process_kill(p);
    buf_release(&p->said);
    buf_release(&p->answer);
}

/* The order matters: this program may have been suspended since before a child ended in time. */
bool process_over(struct process *p)
{
    process_drain(p);
    if (process_ended(p))
        return true;
    p->overdue = p->limit_s > 0 && patience_spent(&p->waited, clock_seconds()) > p->limit_s;
    if (p->overdue)
        process_kill(p);
    return p->overdue;
}

int process_wait_any(struct process *const *list, int n, double until,
                     const volatile sig_atomic_t *stop, struct status *st)
{
    enum { TICK_MS = 100, QUIET_TICK_MS = 5 };
    SCOPED struct pollfd *fds = mem_alloc((size_t)n, sizeof(*fds));
    for (;;) {
        if (stop != NULL && *stop != 0)
            return status_set(st, STATUS_INTERRUPTED, "interrupted");
        int tick = TICK_MS;
        for (int i = 0; i < n; i++) {
            if (process_over(list[i]))
                return i;
            fds[i] = (struct pollfd){.fd = list[i]->output, .events = POLLIN};
            if (list[i]->output < 0)
                tick = QUIET_TICK_MS; /* poll() will not report the end of this child */
        }
        double left_s = until - clock_seconds();
        if (left_s <= 0)
            return status_set(st, STATUS_TIMEOUT, "the time limit is over");
        /* An answer is short, and comes with the end of the output. */
        poll(fds, (nfds_t)n, left_s < tick * 1e-3 ? (int)(left_s * 1e3) + 1 : tick);
    }
}

void process_describe_end(int wait_status, struct buf *out)
{
    if (WIFSIGNALED(wait_status)) {
        int signal_number = WTERMSIG(wait_status);
        const char *name = sigabbrev_np(signal_number), *text = sigdescr_np(signal_number);
        buf_addf(out, "SIG%s (%s)", name != NULL ? name : "?", text != NULL ? text : "unknown");
    } else {
        buf_addf(out, "exit status %d", WEXITSTATUS(wait_status));
    }
}

const char *process_failure(struct process *p)
{
    struct buf text = BUF_INIT;
    if (p->overdue)
        buf_adds(&text, "stopped at its deadline");
    else
        process_describe_end(p->wait_status, &text);
    p->said.ptr[strcspn(p->said.ptr, "\n")] = '\0';
    if (p->said.ptr[0] != '\0')
        buf_addf(&text, ": %s", p->said.ptr);
    buf_release(&p->said);
    p->said = text;
    return p->said.ptr;
}

static int run_once(const struct process_spec *spec, const volatile sig_atomic_t *stop,
                    struct process *out, struct status *st)
{
    struct process *const list[] = {out};
    return process_start(spec, out, st) != 0 ? -1 : process_wait_any(list, 1, INFINITY, stop, st);
}

int process_run(const struct process_spec *spec, const volatile sig_atomic_t *stop,
                struct process *out, struct status *st)
{
    if (run_once(spec, stop, out, st) != 0)
        return -1;
    if (out->overdue || !WIFSIGNALED(out->wait_status))
        return 0;
    process_release(out);
    return run_once(spec, stop, out, st);
}

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool process_find(const char *name, struct buf *path)
{
    buf_reset(path);
    if (strchr(name, '/') != NULL) {
        buf_adds(path, name);
        return is_program(path->ptr);
    }
    const char *dirs = getenv("PATH");
    while (dirs != NULL && *dirs != '\0') {
        size_t len = strcspn(dirs, ":");
        buf_reset(path);
        buf_add(path, len > 0 ? dirs : ".", len > 0 ? len : 1);
        buf_addf(path, "/%s", name);
        if (is_program(path->ptr))
            return true;
        dirs += len + (dirs[len] == ':');
    }
    return false;
}
