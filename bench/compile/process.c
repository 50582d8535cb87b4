#include "bench/compile/process_int.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
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

int process_start(const struct process_spec *spec, struct process *out, struct status *st)
{
    *out = PROCESS_INIT;
    out->keep_last = spec->keep_last;
    buf_init(&out->said);
    int ends[2];
    if (check_descriptors(spec->path, st) != 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot start '%s': %s", spec->path,
                          strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);

    child_keep_ends();
    sigset_t all, before; /* a signal to the child waits until it can be acted on */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        keeper_run(spec, parent, ends[1]);
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return status_set(st, STATUS_ENVIRONMENT, "cannot start '%s': %s%s", spec->path,
                          strerror(error),
                          error == EAGAIN ? "; 'ulimit -u' allows no more processes" : "");
    }
    out->pid = pid;
    out->output = ends[0];
    out->limit_s = spec->limit_s;
    patience_begin(&out->waited, clock_seconds());
    return 0;
}

static void keep_output(struct process *p, const char *data, size_t n)
{
    if (!p->keep_last) {
        size_t room = PROCESS_SAID_MAX - p->said.len;
        buf_add(&p->said, data, n < room ? n : room);
        return;
    }
    buf_add(&p->said, data, n);
    if (p->said.len > PROCESS_SAID_MAX) {
        size_t drop = p->said.len - PROCESS_SAID_MAX;
        memmove(p->said.ptr, p->said.ptr + drop, PROCESS_SAID_MAX);
        p->said.len = PROCESS_SAID_MAX;
        p->said.ptr[p->said.len] = '\0';
    }
}

void process_drain(struct process *p)
{
    enum { ROUNDS = 64 }; /* a child that never stops printing must not hold its parent */
    char chunk[4096];
    for (int i = 0; i < ROUNDS && p->output >= 0; i++) {
        ssize_t n = read(p->output, chunk, sizeof(chunk));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close(p->output);
            p->output = -1;
            return;
        }
        keep_output(p, chunk, (size_t)n);
    }
}

/* Once the child was waited for: reads the last output. */
static void finish(struct process *p)
{
    p->pid = 0;
    process_drain(p);
    if (p->output >= 0)
        close(p->output);
    p->output = -1;
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

void process_kill(struct process *p)
{
    if (p->pid == 0)
        return;
    kill(p->pid, SIGTERM);
    kill(p->pid, SIGCONT);
    while (waitpid(p->pid, &p->wait_status, 0) < 0 && errno == EINTR)
        ;
    finish(p);
}

void process_release(struct process *p)
{
    process_kill(p);
    buf_release(&p->said);
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
    struct pollfd *fds = mem_alloc((size_t)n, sizeof(*fds));
    int ended = -1;
    while (ended < 0) {
        if (stop != NULL && *stop != 0) {
            status_set(st, STATUS_INTERRUPTED, "interrupted");
            break;
        }
        int tick = TICK_MS;
        for (int i = 0; i < n && ended < 0; i++) {
            if (process_over(list[i]))
                ended = i;
            fds[i] = (struct pollfd){.fd = list[i]->output, .events = POLLIN};
            if (list[i]->output < 0)
                tick = QUIET_TICK_MS; /* poll() will not report the end of this child */
        }
        double left_s = until - clock_seconds();
        if (ended < 0 && left_s <= 0) {
            status_set(st, STATUS_TIMEOUT, "the time limit is over");
            break;
        }
        if (ended < 0)
            poll(fds, (nfds_t)n, left_s < tick * 1e-3 ? (int)(left_s * 1e3) + 1 : tick);
    }
    free(fds);
    return ended;
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
    struct buf text;
    buf_init(&text);
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
    if (process_start(spec, out, st) != 0)
        return -1;
    struct process *const list[] = {out};
    if (process_wait_any(list, 1, INFINITY, stop, st) < 0) {
        process_release(out);
        return -1;
    }
    return 0;
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
