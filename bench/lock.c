#include "bench/bench_int.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- who holds it ---------------------------------------------------------------------------- */

enum { COMMAND_MAX = 160, RECORD_MAX = 256 };

/* What a process leaves in the file that it locks: its number, when it got the lock, and its
 * command.  It may have dropped the lock since. */
struct holder {
    long pid;
    char since[CLOCK_UTC_SIZE], command[COMMAND_MAX + 4];
};

/* Nobody (pid 0) while the name is this process's own: it had the lock before, and the process that
 * has it now has left no name yet. */
static void read_holder(int fd, struct holder *out)
{
    char text[RECORD_MAX + 1] = "";
    *out = (struct holder){.pid = 0};
    if (pread(fd, text, RECORD_MAX, 0) <= 0)
        return;
    text[strcspn(text, "\n")] = '\0';
    char *rest = text, *pid = strsep(&rest, "\t"), *since = strsep(&rest, "\t");
    out->pid = strtol(pid, NULL, 10);
    snprintf(out->since, sizeof(out->since), "%s", since != NULL ? since : "");
    snprintf(out->command, sizeof(out->command), "%s", rest != NULL ? rest : "");
    if (out->pid == (long)getpid())
        *out = (struct holder){.pid = 0};
}

/* Appends the command of this process, its words with a blank between them. */
static void own_command(struct buf *out)
{
    size_t begin = out->len;
    if (file_read("/proc/self/cmdline", 0, out, STATUS_IGNORED) != 0)
        return;
    while (out->len > begin && out->ptr[out->len - 1] == '\0')
        out->len--;
    for (size_t i = begin; i < out->len; i++)
        if (strchr("\n\t", out->ptr[i]) != NULL) /* finds the NUL too */
            out->ptr[i] = ' ';
    if (out->len - begin > COMMAND_MAX) {
        out->len = begin + COMMAND_MAX;
        buf_adds(out, "...");
    }
}

static void leave_name(int fd)
{
    char now[CLOCK_UTC_SIZE];
    SCOPED_BUF text = BUF_INIT;
    buf_addf(&text, "%ld\t%s\t", (long)getpid(), clock_utc(now));
    own_command(&text);
    buf_adds(&text, "\n");
    bool named = pwrite(fd, text.ptr, text.len, 0) == (ssize_t)text.len;
    if (!named)
        return; /* only messages would name this process */
}

/* Whether a process was stopped, by Ctrl-Z for example. */
static bool is_stopped(long pid)
{
    char path[32];
    SCOPED_BUF text = BUF_INIT;
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    const char *name_end = NULL;
    if (file_read(path, 0, &text, STATUS_IGNORED) == 0)
        name_end = strrchr(text.ptr, ')');
    return name_end != NULL && strncmp(name_end, ") T", 3) == 0;
}

static void holder_text(const struct holder *h, bool stopped, struct buf *out)
{
    buf_addf(out, "process %ld", h->pid);
    if (h->command[0] != '\0')
        buf_addf(out, " (%s)", h->command);
    if (h->since[0] != '\0')
        buf_addf(out, ", which has had it since %s", h->since);
    if (stopped)
        buf_addf(out, " and is stopped: fg in its shell or 'kill -CONT %ld' lets it go on", h->pid);
}

static void device_text(struct lock_device d, struct buf *out)
{
    buf_addf(out, "%s:%d", target_names[d.name.kind], d.name.device);
    if (d.uuid[0] != '\0')
        buf_addf(out, " (%s)", d.uuid);
}

/* Says for whom this process waits, unless it said so before. */
static void say_holder(int fd, struct lock_device device, struct lock_wait *wait)
{
    struct holder h;
    read_holder(fd, &h);
    bool stopped = h.pid > 0 && is_stopped(h.pid);
    if (wait->say == NULL || h.pid <= 0 || (h.pid == wait->named && stopped == wait->stopped))
        return;
    SCOPED_BUF line = BUF_INIT;
    buf_adds(&line, "waiting for ");
    device_text(device, &line);
    buf_adds(&line, "; one measurement at a time may run there: ");
    holder_text(&h, stopped, &line);
    wait->say(wait->ctx, line.ptr);
    wait->named = h.pid;
    wait->stopped = stopped;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Appends what is in the way, and how to go on without it: in a sticky directory only its owner and
 * root can remove it. */
static void way_out(const char *path, struct buf *out)
{
    struct stat info;
    if (lstat(path, &info) == 0) {
        const struct passwd *owner = getpwuid(info.st_uid);
        const char *what = S_ISLNK(info.st_mode)   ? "symbolic link"
                           : S_ISDIR(info.st_mode) ? "directory"
                           : S_ISREG(info.st_mode) ? "file"
                                                   : "special file";
        buf_addf(out, "this %s belongs to user %s (%ld): ", what,
                 owner != NULL ? owner->pw_name : "without a name", (long)info.st_uid);
    }
    buf_adds(out, "remove it, or set FUSEPLAN_LOCK_DIR to a directory that all who measure here "
                  "can write");
}

/* All users share one file, which the first process creates for everybody to write.  It does not
 * rely on O_CREAT alone: a sticky directory may refuse that where another user owns the file. */
static int open_shared(const char *path, struct status *st)
{
    enum { SHARED = 0666, HOW = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };
    int fd = open(path, HOW);
    const bool missing = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    if (missing) {
        fd = open(path, HOW | O_CREAT | O_EXCL, SHARED);
        if (fd >= 0)
            fchmod(fd, SHARED); /* whatever the umask says */
        else if (errno == EEXIST)
            fd = open(path, HOW); /* another process was faster */
    }
    int error = fd < 0 ? errno : 0;
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink <= 1)
        return fd; /* without a link it was just removed: path_is() */
    if (fd >= 0)
        close(fd);
    SCOPED_BUF how = BUF_INIT;
    way_out(path, &how);
    if (missing)
        status_set(
            st, STATUS_ENVIRONMENT,
            "cannot make the device's lock '%s': %s; FUSEPLAN_LOCK_DIR must name a directory "
            "that can be written",
            path, strerror(error));
    else
        status_set(st, STATUS_ENVIRONMENT, "the device's lock '%s' cannot be used: %s; %s", path,
                   error != 0 ? strerror(error) : "not a regular file with one link", how.ptr);
    return -1;
}

/* The directory of locks, on a way that no other user can change: else the new file could be made
 * to lie anywhere.  The caller frees. */
static char *lock_dir(struct status *st)
{
    const char *dir = variable_value("FUSEPLAN_LOCK_DIR");
    char *found = file_trust(dir != NULL ? dir : "/tmp", TRUST_WAY, st);
    if (found == NULL)
        status_prefix(st, "cannot make the device's lock; FUSEPLAN_LOCK_DIR must name a directory "
                          "that can be written");
    return found;
}

/* Processes may know one GPU by several numbers, and several GPUs by one: CUDA_VISIBLE_DEVICES and
 * containers number them anew. */
static void lock_path(const char *dir, struct lock_device d, const char *suffix, struct buf *out)
{
    buf_addf(out, "%s/fuseplan-lock-%s-", dir, target_names[d.name.kind]);
    if (d.uuid[0] != '\0')
        buf_adds(out, d.uuid);
    else
        buf_addf(out, "%d", d.name.device);
    buf_adds(out, suffix);
}

/* Whether the path still names the file that is open: a file that was removed keeps nobody away. */
static bool path_is(const char *path, int fd)
{
    struct stat named, opened;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void tell_waiting(struct lock_device device, const struct lock_wait *wait)
{
    SCOPED char *phase =
        buf_text("waiting for %s:%d", target_names[device.name.kind], device.name.device);
    step_tell(&wait->listener, &(struct step){.phase = phase, .left_s = NAN});
}

/* Returns 0 once fd is locked, 1 where it is not before `until`, -1 with *st on a failure.  holder:
 * the file with the holder's name. */
static int wait_for(int fd, int how, double until, int holder, struct lock_device device,
                    struct lock_wait *wait, struct status *st)
{
    bool told = false;
    while (flock(fd, how | LOCK_NB) != 0) {
        if (wait->stop != NULL && *wait->stop != 0)
            return status_set(st, STATUS_INTERRUPTED, "interrupted");
        if (errno != EWOULDBLOCK && errno != EINTR)
            return status_set(st, STATUS_ENVIRONMENT, "cannot lock the device: %s",
                              strerror(errno));
        if (!told)
            tell_waiting(device, wait);
        told = true;
        say_holder(holder, device, wait);
        if (clock_seconds() > until)
            return 1;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return 0;
}

static int give_up(const char *path, int fd, struct lock_device device,
                   const struct lock_wait *wait, struct status *st)
{
    struct holder h;
    SCOPED_BUF who = BUF_INIT, what = BUF_INIT;
    read_holder(fd, &h);
    device_text(device, &what);
    if (h.pid > 0)
        holder_text(&h, is_stopped(h.pid), &who);
    else
        buf_addf(&who, "a program that left no name in '%s', which FUSEPLAN_LOCK_DIR moves", path);
    bool limit = wait->limit_s < LOCK_QUEUE_LIMIT_S;
    return status_set(
        st, limit ? STATUS_TIMEOUT : STATUS_ENVIRONMENT,
        "no turn on %s within %.0f s, because only one measurement may run there at a time; "
        "it belongs to %s",
        what.ptr, limit ? wait->limit_s : LOCK_QUEUE_LIMIT_S, who.ptr);
}

/* Opens and locks a file, anew if it was removed meanwhile.  As wait_for(); *out: -1 unless it
 * returns 0.  holder: the file with the holder's name, or -1 for this one. */
static int open_and_wait(const char *path, int how, double until, int holder,
                         struct lock_device device, struct lock_wait *wait, int *out,
                         struct status *st)
{
    for (;;) {
        int fd = *out = open_shared(path, st), waited = -1;
        if (fd >= 0)
            waited = wait_for(fd, how, until, holder >= 0 ? holder : fd, device, wait, st);
        if (waited == 0 && path_is(path, fd))
            return 0;
        if (waited > 0)
            return give_up(path, holder >= 0 ? holder : fd, device, wait, st);
        lock_drop(fd);
        *out = -1;
        if (waited != 0)
            return -1;
    }
}

/* A process asks for the lock only while it is at the head of the queue, which is a lock of its
 * own. Else processes that share the lock could keep a process that wants it alone away forever. */
int lock_take(struct lock_device device, enum lock_use use, struct lock_wait *wait, int *lock,
              struct status *st)
{
    const int how = use == LOCK_TO_TIME ? LOCK_EX : LOCK_SH;
    const double until = clock_seconds() + fmin(wait->limit_s, LOCK_QUEUE_LIMIT_S);
    SCOPED_BUF path = BUF_INIT, queue_path = BUF_INIT;
    int queue = -1, fd = -1, result = -1;
    *lock = -1;
    SCOPED char *dir = lock_dir(st);
    if (dir == NULL)
        return -1;
    lock_path(dir, device, "", &path);
    lock_path(dir, device, "-queue", &queue_path);
    int holder = open_shared(path.ptr, st); /* to read whose turn it is */
    if (holder >= 0 &&
        open_and_wait(queue_path.ptr, LOCK_EX, until, holder, device, wait, &queue, st) == 0)
        result = open_and_wait(path.ptr, how, until, -1, device, wait, &fd, st);
    lock_drop(holder);
    lock_drop(queue);
    if (result != 0) {
        lock_drop(fd);
        return -1;
    }
    leave_name(fd);
    *lock = fd;
    return 0;
}

void lock_drop(int lock)
{
    if (lock >= 0)
        close(lock);
}
