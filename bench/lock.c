#include "bench/bench_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The process that wrote its number last: it holds the lock or has just dropped it. */
static long holder(int fd)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

static void leave_name(int fd)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%-20ld\n", (long)getpid());
    if (pwrite(fd, text, (size_t)n, 0) != n)
        return; /* only an error message would name this process */
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
    struct stat info;
    if (fd < 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot open the device's lock '%s': %s; %s",
                          path, strerror(errno),
                          missing ? "FUSEPLAN_LOCK_DIR must name a directory that can be written"
                                  : "remove it, or let all users read and write it");
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1)
        return fd;
    close(fd);
    return status_set(st, STATUS_ENVIRONMENT,
                      "the device's lock '%s' is not a regular file with one link; remove it",
                      path);
}

static int open_lock(struct target_name target, const char *suffix, struct status *st)
{
    const char *dir = getenv("FUSEPLAN_LOCK_DIR");
    struct buf path;
    buf_init(&path);
    buf_addf(&path, "%s/fuseplan-lock-%s-%d%s", dir != NULL && dir[0] != '\0' ? dir : "/tmp",
             target_names[target.kind], target.device, suffix);
    int fd = open_shared(path.ptr, st);
    buf_release(&path);
    return fd;
}

/* Returns 0 once fd is locked, 1 where it is not before `until`, -1 with *st on a failure. */
static int wait_for(int fd, int how, double until, const volatile sig_atomic_t *stop,
                    struct status *st)
{
    while (flock(fd, how | LOCK_NB) != 0) {
        if (stop != NULL && *stop != 0)
            return status_set(st, STATUS_INTERRUPTED, "interrupted");
        if (errno != EWOULDBLOCK && errno != EINTR)
            return status_set(st, STATUS_ENVIRONMENT, "cannot lock the device: %s",
                              strerror(errno));
        if (clock_seconds() > until)
            return 1;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return 0;
}

/* A process asks for the lock only while it is at the head of the queue, which is a lock of its
 * own. Else those that share the lock could keep away forever one that wants it alone. */
int lock_take(struct target_name target, enum lock_use use, double wait_s,
              const volatile sig_atomic_t *stop, int *lock, struct status *st)
{
    const int how = use == LOCK_TO_TIME ? LOCK_EX : LOCK_SH;
    const double until = clock_seconds() + wait_s;
    int queue = open_lock(target, "-queue", st), fd = open_lock(target, "", st), waited = -1;
    *lock = -1;
    if (queue >= 0 && fd >= 0)
        waited = wait_for(queue, LOCK_EX, until, stop, st);
    if (waited == 0)
        waited = wait_for(fd, how, until, stop, st);
    if (waited > 0)
        status_set(st, STATUS_ENVIRONMENT,
                   "process %ld has been measuring on %s:%d for %.0f s, and only one measurement "
                   "may run at a time; wait for it or stop it",
                   holder(fd), target_names[target.kind], target.device, wait_s);
    lock_drop(queue);
    if (waited != 0) {
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
