#include "base/base.h"

#include <fcntl.h>
#include <libgen.h>
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

/* What a path leads to, and how its file is written. */
struct place {
    int fd;      /* the open descriptor that the path names; -1: it names none */
    bool exists; /* whether there is a file, described by info */
    char *path;  /* behind all links, where a new file may take its name; else null; owned */
    struct stat info;
};

static void place_release(struct place *p)
{
    free(p->path);
}

enum { DANGLES = -1 }; /* beside the values of errno */

static int refuse(const char *path, int error, struct status *st)
{
    return status_set(st, STATUS_ENVIRONMENT, "cannot write '%s': %s", path,
                      error == DANGLES ? FILE_DANGLES : strerror(error));
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

static int find_existing(const char *path, struct place *out)
{
    if (S_ISDIR(out->info.st_mode))
        return EISDIR;
    if (access(path, W_OK) != 0)
        return errno;
    out->fd = standard_on(&out->info);
    /* A file of several names must keep them all. */
    if (out->fd >= 0 || !S_ISREG(out->info.st_mode) || out->info.st_nlink > 1)
        return 0;
    out->path = realpath(path, NULL);
    return out->path != NULL ? 0 : errno;
}

static int find_new(const char *path, struct place *out)
{
    struct stat link;
    SCOPED char *copy = mem_strdup(path);
    if (path[0] != '\0' && path[strlen(path) - 1] == '/')
        return EISDIR;
    if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
        return DANGLES;
    if (access(dirname(copy), W_OK) != 0)
        return errno;
    out->path = mem_strdup(path);
    return 0;
}

/* Returns 0, an errno, or DANGLES.  The caller releases *out in any case. */
static int find(const char *path, struct place *out)
{
    *out = (struct place){.fd = -1};
    if (file_is_standard_output(path)) {
        out->fd = standard_output;
        return 0;
    }
    out->exists = stat(path, &out->info) == 0;
    return out->exists ? find_existing(path, out) : errno == ENOENT ? find_new(path, out) : errno;
}

int file_check_write(const char *path, struct status *st)
{
    SCOPED_BY(place_release) struct place place;
    int error = find(path, &place);
    return error == 0 ? 0 : refuse(path, error, st);
}

/* ---- writing --------------------------------------------------------------------------------- */

int file_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_in_place(const char *path, const void *data, size_t len)
{
    struct stat opened;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return errno;
    int error = fstat(fd, &opened) != 0                            ? errno
                : S_ISREG(opened.st_mode) && ftruncate(fd, 0) != 0 ? errno
                : file_write_all(fd, data, len) != 0               ? errno
                                                                   : 0;
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
    return fchown(fd, old->st_uid, old->st_gid) == 0 ? fchmod(fd, old->st_mode & 0777) : -1;
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
    SCOPED char *copy = mem_strdup(place->path);
    SCOPED char *temporary = buf_text("%s/" FILE_TEMPORARY_MARK "XXXXXX", dirname(copy));
    file_hold_signals(&before);
    int fd = mkostemp(temporary, O_CLOEXEC), error = 0; /* of the first step that failed */
    if (fd < 0 || file_write_all(fd, data, len) != 0 || take_mode(fd, place) != 0 ||
        fsync(fd) != 0 || rename(temporary, place->path) != 0)
        error = errno;
    if (fd >= 0 && error != 0)
        unlink(temporary);
    if (fd >= 0)
        close(fd);
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
        return fflush(stdout) == 0 && file_write_all(place->fd, data, len) == 0 ? 0 : errno;
    if (place->path == NULL)
        return write_in_place(path, data, len);
    int error = write_beside(place, data, len);
    return place->exists && is_refusal(error) ? write_in_place(path, data, len) : error;
}

int file_write(const char *path, const void *data, size_t len, struct status *st)
{
    SCOPED_BY(place_release) struct place place;
    int error = find(path, &place);
    if (error == 0)
        error = write_to(&place, path, data, len);
    return error == 0 ? 0 : refuse(path, error, st);
}
