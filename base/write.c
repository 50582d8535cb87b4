#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- standard output ------------------------------------------------------------------------- */

/* The descriptor that was standard output when the program started. */
static int standard_output = STDOUT_FILENO;

bool file_is_standard_output(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

int file_reserve_standard_output(struct status *st)
{
    if (standard_output != STDOUT_FILENO)
        return status_set(st, STATUS_USAGE,
                          "standard output takes one file, and another one goes there already");
    int kept = fflush(stdout) == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    if (kept < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot keep standard output for a file: %s",
                          strerror(errno));
    standard_output = kept;
    return 0;
}

/* ---- where a file goes ----------------------------------------------------------------------- */

/* What a path leads to. */
struct place {
    int fd;       /* the open descriptor that the path names; -1: it names none */
    bool exists;  /* whether there is a file, described by info */
    bool replace; /* whether a new file may take its name */
    char *path;   /* behind all symbolic links, owned; only if `replace` is set */
    struct stat info;
};

char *file_follow(const char *path)
{
    enum { LINKS_MAX = 40 };
    char *at = mem_strdup(path), target[PATH_MAX];
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t len = readlink(at, target, sizeof(target) - 1);
        if (len < 0)
            return at;
        const char *slash = strrchr(at, '/');
        struct buf next;
        buf_init(&next);
        if (target[0] != '/' && slash != NULL)
            buf_add(&next, at, (size_t)(slash + 1 - at));
        buf_add(&next, target, (size_t)len);
        free(at);
        at = buf_detach(&next);
    }
    free(at);
    errno = ELOOP;
    return NULL;
}

/* Standard output or standard error, if it is open on this file: else -1. */
static int standard_on(const struct stat *file)
{
    const int standard[] = {standard_output, STDERR_FILENO};
    struct stat open_on;
    for (size_t i = 0; i < ARRAY_LEN(standard); i++)
        if (fstat(standard[i], &open_on) == 0 && open_on.st_dev == file->st_dev &&
            open_on.st_ino == file->st_ino)
            return standard[i];
    return -1;
}

/* A file of no names is only open somewhere, unless another one took its place just when it was
 * looked at: then the next look finds that. */
enum { LOOKS = 20 };

/* Returns 0 or an errno.  The caller frees out->path on success. */
static int find(const char *path, struct place *out)
{
    *out = (struct place){.fd = -1};
    if (file_is_standard_output(path)) {
        out->fd = standard_output;
        return 0;
    }
    out->exists = stat(path, &out->info) == 0;
    for (int i = 0; i < LOOKS && out->exists && out->info.st_nlink == 0; i++)
        out->exists = stat(path, &out->info) == 0;
    if (!out->exists && errno != ENOENT)
        return errno;
    if (!out->exists && path[0] != '\0' && path[strlen(path) - 1] == '/')
        return EISDIR;
    if (out->exists) {
        if (S_ISDIR(out->info.st_mode))
            return EISDIR;
        if (access(path, W_OK) != 0)
            return errno;
        out->fd = standard_on(&out->info);
    }
    /* A file of several names must keep them all. */
    out->replace =
        !out->exists || (out->fd < 0 && S_ISREG(out->info.st_mode) && out->info.st_nlink == 1);
    out->path = out->replace ? file_follow(path) : NULL;
    return out->replace && out->path == NULL ? errno : 0;
}

int file_write_error(const char *path)
{
    struct place place;
    int error = find(path, &place);
    if (error == 0 && !place.exists && place.fd < 0 && access(dirname(place.path), W_OK) != 0)
        error = errno;
    free(place.path);
    return error;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_in_place(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return errno;
    int error = write_all(fd, data, len) == 0 ? 0 : errno;
    if (close(fd) != 0 && error == 0)
        error = errno;
    return error;
}

/* Gives a new file the owner and the mode of the one that it replaces, or else the mode of any new
 * file. */
static int take_mode(int fd, const struct place *place)
{
    mode_t hidden = umask(0);
    umask(hidden);
    if (!place->exists)
        return fchmod(fd, 0666 & ~hidden);
    const struct stat *old = &place->info;
    return fchown(fd, old->st_uid, old->st_gid) == 0 ? fchmod(fd, old->st_mode & 07777) : -1;
}

/* The name for mkostemp(), "FILE.XXXXXX", of a length that every file system takes. */
static void temporary_name(const char *path, struct buf *out)
{
    static const char suffix[] = ".XXXXXX";
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    buf_addf(out, "%.*s%.*s%s", (int)(name - path), path, (int)(NAME_MAX - strlen(suffix)), name,
             suffix);
}

void file_hold_signals(sigset_t *before)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGHUP);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, before);
}

/* Writes beside the file and renames. */
static int write_beside(const struct place *place, const void *data, size_t len)
{
    sigset_t before;
    struct buf temporary;
    file_hold_signals(&before);
    buf_init(&temporary);
    temporary_name(place->path, &temporary);
    int fd = mkostemp(temporary.ptr, O_CLOEXEC), error = 0; /* of the first step that failed */
    if (fd < 0 || write_all(fd, data, len) != 0 || take_mode(fd, place) != 0 || fsync(fd) != 0)
        error = errno;
    if (fd >= 0 && close(fd) != 0 && error == 0)
        error = errno;
    if (error == 0 && rename(temporary.ptr, place->path) != 0)
        error = errno;
    if (fd >= 0 && error != 0)
        unlink(temporary.ptr);
    buf_release(&temporary);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Whether an error says that a directory refuses a new file or a new name, or that the file may
 * not get another owner: the file itself may still be written. */
static bool is_refusal(int error)
{
    return error == EACCES || error == EPERM || error == EROFS || error == EBUSY;
}

static int write_to(const struct place *place, const char *path, const void *data, size_t len)
{
    if (place->fd >= 0)
        return fflush(stdout) == 0 && write_all(place->fd, data, len) == 0 ? 0 : errno;
    if (!place->replace)
        return write_in_place(path, data, len);
    int error = write_beside(place, data, len);
    return place->exists && is_refusal(error) ? write_in_place(path, data, len) : error;
}

int file_write(const char *path, const void *data, size_t len, struct status *st)
{
    struct place place;
    int error = find(path, &place);
    if (error == 0)
        error = write_to(&place, path, data, len);
    free(place.path);
    if (error == 0)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT, "cannot write '%s': %s", path, strerror(error));
}
