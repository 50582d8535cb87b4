#include "base/base.h"

#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <sys/file.h>
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
    int fd;       /* the open descriptor that the path names; -1: it names none */
    bool exists;  /* whether there is a file, described by info */
    bool replace; /* whether a new file may take its name */
    int dir;      /* its directory, owned; -1 unless `replace` is set */
    char *name;   /* in that directory, behind all symbolic links, owned */
    struct stat info;
};

static void place_release(struct place *p)
{
    if (p->dir >= 0)
        close(p->dir);
    free(p->name);
    p->dir = -1;
    p->name = NULL;
}

/* Beside the values of errno. */
enum { DANGLES = -1, CHANGED = -2 };

static int refuse(const char *path, int error, struct status *st)
{
    return status_set(st, STATUS_ENVIRONMENT, "cannot write '%s': %s", path,
                      error == DANGLES   ? FILE_DANGLES
                      : error == CHANGED ? "another program replaces it again and again"
                                         : strerror(error));
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Standard output or standard error, if it is open on this file: else -1. */
static int standard_on(const struct stat *file)
{
    const int standard[] = {standard_output, STDERR_FILENO};
    struct stat open_on;
    for (size_t i = 0; i < ARRAY_LEN(standard); i++)
        if (fstat(standard[i], &open_on) == 0 && is_same(&open_on, file))
            return standard[i];
    return -1;
}

/* Opens the directory of a path and takes the last name. */
static int enter(const char *path, struct place *out)
{
    SCOPED char *copy = mem_strdup(path);
    const char *slash = strrchr(path, '/');
    out->dir = open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC);
    int error = out->dir < 0 ? errno : 0;
    out->name = mem_strdup(slash != NULL ? slash + 1 : path);
    return error;
}

/* For a file that exists: its directory and name behind all links. */
static int enter_behind_links(const char *path, struct place *out)
{
    struct stat there;
    SCOPED char *real = realpath(path, NULL);
    int error = real == NULL ? errno : enter(real, out);
    if (error == 0 && (fstatat(out->dir, out->name, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
                       !is_same(&there, &out->info)))
        error = CHANGED;
    return error;
}

static int find_existing(const char *path, struct place *out)
{
    if (S_ISDIR(out->info.st_mode))
        return EISDIR;
    if (access(path, W_OK) != 0)
        return errno;
    out->fd = standard_on(&out->info);
    /* A file of several names must keep them all. */
    out->replace = out->fd < 0 && S_ISREG(out->info.st_mode) && out->info.st_nlink == 1;
    return out->replace ? enter_behind_links(path, out) : 0;
}

static int find_new(const char *path, struct place *out)
{
    struct stat link;
    if (path[0] != '\0' && path[strlen(path) - 1] == '/')
        return EISDIR;
    if (lstat(path, &link) == 0)
        return S_ISLNK(link.st_mode) ? DANGLES : CHANGED;
    out->replace = true;
    return enter(path, out);
}

/* A file of no names is only open somewhere, unless another one took its place just when it was
 * looked at, as another process may also do later: then the next look finds that. */
enum { LOOKS = 20 };

/* Returns 0, an errno, or DANGLES.  The caller releases *out in any case. */
static int find(const char *path, struct place *out)
{
    int error = CHANGED;
    *out = (struct place){.fd = -1, .dir = -1};
    if (file_is_standard_output(path)) {
        out->fd = standard_output;
        return 0;
    }
    for (int i = 0; i < LOOKS && error == CHANGED; i++) {
        place_release(out);
        *out = (struct place){.fd = -1, .dir = -1};
        out->exists = stat(path, &out->info) == 0;
        if (out->exists && out->info.st_nlink == 0 && i + 1 < LOOKS)
            continue;
        if (out->exists)
            error = find_existing(path, out);
        else
            error = errno == ENOENT ? find_new(path, out) : errno;
    }
    return error;
}

int file_check_write(const char *path, struct status *st)
{
    SCOPED_BY(place_release) struct place place;
    int error = find(path, &place);
    if (error == 0 && !place.exists && place.fd < 0 && faccessat(place.dir, ".", W_OK, 0) != 0)
        error = errno;
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

static int write_in_place(const struct place *place, const char *path, const void *data, size_t len)
{
    struct stat opened;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return errno;
    int error = fstat(fd, &opened) != 0           ? errno
                : !is_same(&opened, &place->info) ? CHANGED
                : !S_ISREG(opened.st_mode)        ? 0
                : ftruncate(fd, 0) != 0           ? errno
                                                  : 0;
    if (error == 0 && file_write_all(fd, data, len) != 0)
        error = errno;
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

void file_temporary_suffix(int i, char out[FILE_TEMPORARY_SUFFIX_SIZE])
{
    uint64_t drawn = i < FILE_TEMPORARY_NUMBERED ? (uint64_t)i : random_for_name();
    snprintf(out, FILE_TEMPORARY_SUFFIX_SIZE, FILE_TEMPORARY_MARK "%" PRIx64, drawn);
}

static bool is_named(int fd, int dir, const char *name)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           is_same(&opened, &named);
}

/* Removes what a process left that was killed: each keeps its temporary file locked. */
static void remove_stale(int dir, const char *name)
{
    struct stat info;
    int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0 && is_named(fd, dir, name))
        unlinkat(dir, name, 0);
    close(fd);
}

/* Creates and locks a file beside the one that is written; *name gets its name.  -1: see errno. */
static int open_temporary(const struct place *place, struct buf *name)
{
    char suffix[FILE_TEMPORARY_SUFFIX_SIZE];
    errno = EEXIST;
    for (int i = 0; i < FILE_TEMPORARY_TRIES; i++) {
        file_temporary_suffix(i, suffix);
        buf_reset(name);
        buf_addf(name, "%.*s%s", (int)(NAME_MAX - strlen(suffix)), place->name, suffix);
        remove_stale(place->dir, name->ptr);
        int fd = openat(place->dir, name->ptr, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return -1;
        /* Another process may take it for stale before it is locked. */
        if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
            is_named(fd, place->dir, name->ptr))
            return fd;
        if (fd >= 0)
            close(fd);
        errno = EEXIST;
    }
    return -1;
}

/* Writes beside the file and renames. */
static int write_beside(const struct place *place, const void *data, size_t len)
{
    sigset_t before;
    SCOPED_BUF temporary = BUF_INIT;
    file_hold_signals(&before);
    int fd = open_temporary(place, &temporary), error = 0; /* of the first step that failed */
    if (fd < 0 || file_write_all(fd, data, len) != 0 || take_mode(fd, place) != 0 ||
        fsync(fd) != 0 || renameat(place->dir, temporary.ptr, place->dir, place->name) != 0)
        error = errno;
    if (fd >= 0 && error != 0)
        unlinkat(place->dir, temporary.ptr, 0);
    if (fd >= 0)
        close(fd); /* last, as it unlocks the file */
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
    if (!place->replace)
        return write_in_place(place, path, data, len);
    int error = write_beside(place, data, len);
    return place->exists && is_refusal(error) ? write_in_place(place, path, data, len) : error;
}

int file_write(const char *path, const void *data, size_t len, struct status *st)
{
    SCOPED_BY(place_release) struct place place;
    int error = find(path, &place);
    if (error == 0)
        error = write_to(&place, path, data, len);
    return error == 0 ? 0 : refuse(path, error, st);
}
