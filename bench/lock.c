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

/* The process that wrote its number last; it holds the lock or has just dropped it. */
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
        return; /* only a message would have used it */
}

/* One place for all users and caches.  Whoever comes first makes the file, for everybody to write:
 * not with O_CREAT alone, which a sticky directory may refuse where another user owns the file. */
static int open_shared(const char *path, struct status *st)
{
    enum { SHARED = 0666, HOW = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };
    int fd = open(path, HOW);
    if (fd < 0 && errno == ENOENT) {
        fd = open(path, HOW | O_CREAT | O_EXCL, SHARED);
        if (fd >= 0)
            fchmod(fd, SHARED); /* whatever the umask says */
        else if (errno == EEXIST)
            fd = open(path, HOW); /* another process was faster */
    }
    struct stat info;
    if (fd < 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot open the device's lock '%s': %s", path,
                          strerror(errno));
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1)
        return fd;
    close(fd);
    return status_set(st, STATUS_ENVIRONMENT,
                      "the device's lock '%s' is no plain file with one name; remove it", path);
}

int lock_take(struct target_name target, enum lock_use use, double wait_s,
              const volatile sig_atomic_t *stop, int *lock, struct status *st)
{
    const int how = use == LOCK_TO_TIME ? LOCK_EX : LOCK_SH;
    *lock = -1;
    struct buf path;
    buf_init(&path);
    buf_addf(&path, "/tmp/fuseplan-lock-%s-%d", target_names[target.kind], target.device);
    int fd = open_shared(path.ptr, st);
    buf_release(&path);
    if (fd < 0)
        return -1;

    double give_up = clock_seconds() + wait_s;
    while (flock(fd, how | LOCK_NB) != 0) {
        if (stop != NULL && *stop)
            status_set(st, STATUS_INTERRUPTED, "interrupted");
        else if (errno != EWOULDBLOCK && errno != EINTR)
            status_set(st, STATUS_ENVIRONMENT, "cannot lock the device: %s", strerror(errno));
        else if (clock_seconds() > give_up)
            status_set(
                st, STATUS_ENVIRONMENT,
                "process %ld has been measuring on %s:%d for %.0f s, and only one measurement "
                "may run at a time; wait for it or stop it",
                holder(fd), target_names[target.kind], target.device, wait_s);
        if (st->code != STATUS_OK) {
            close(fd);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
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
