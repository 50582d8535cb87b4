#include "base/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lists of names -------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int directory_list(const char *dir, struct names *out, struct status *st)
{
    *out = (struct names){.count = 0};
    DIR *d = opendir(dir);
    if (d == NULL && errno == ENOENT)
        return 0;
    if (d == NULL)
        return status_set(st, STATUS_ENVIRONMENT,
                          "cannot open directory '%s': %s; name a new directory", dir,
                          strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            names_add(out, e->d_name);
    closedir(d);
    if (out->count > 0)
        qsort(out->items, (size_t)out->count, sizeof(*out->items), by_name);
    return 0;
}

void names_add(struct names *n, const char *name)
{
    n->items = mem_resize(n->items, (size_t)n->count + 1, sizeof(*n->items));
    n->items[n->count++] = mem_strdup(name);
}

bool names_have(const struct names *n, const char *name)
{
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->items[i], name) == 0)
            return true;
    return false;
}

void names_text(const struct names *n, struct buf *out)
{
    enum { SHOWN = 5 };
    int shown = n->count > SHOWN + 1 ? SHOWN : n->count; /* "and 1 more" would save nothing */
    for (int i = 0; i < shown; i++)
        buf_addf(out, "%s'%s'", i > 0 ? ", " : "", n->items[i]);
    if (shown < n->count)
        buf_addf(out, " and %d more", n->count - shown);
}

void names_release(struct names *n)
{
    for (int i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
    *n = (struct names){.count = 0};
}

/* ---- temporary directories ------------------------------------------------------------------- */

/* Opens and locks a directory of ours; -1 where another process has it or removed it. */
static int lock_directory(const char *path)
{
    struct stat locked, there;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &locked) == 0 && lstat(path, &there) == 0 &&
        locked.st_dev == there.st_dev && locked.st_ino == there.st_ino &&
        locked.st_uid == geteuid())
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int scratch_make(const char *parent, struct scratch_dir *out)
{
    enum { TRIES = 8 }; /* another process may sweep the directory before it is locked */
    *out = SCRATCH_INIT;
    for (int i = 0; i < TRIES; i++) {
        out->dir = buf_text("%s/" FILE_TEMPORARY_MARK "XXXXXX", parent);
        bool made = mkdtemp(out->dir) != NULL;
        if (made && (out->lock = lock_directory(out->dir)) >= 0)
            return 0;
        int error = errno;
        if (made)
            rmdir(out->dir);
        free(out->dir);
        out->dir = NULL;
        errno = error;
        if (!made)
            break;
    }
    return -1;
}

void scratch_release(struct scratch_dir *s)
{
    if (s->dir != NULL)
        file_remove_all(s->dir, STATUS_IGNORED);
    if (s->lock >= 0)
        close(s->lock);
    free(s->dir);
    *s = SCRATCH_INIT;
}

bool file_is_temporary(const char *name)
{
    return strncmp(name, FILE_TEMPORARY_MARK, strlen(FILE_TEMPORARY_MARK)) == 0;
}

void scratch_sweep(const char *parent)
{
    SCOPED_BY(names_release) struct names names = {.count = 0};
    directory_list(parent, &names, STATUS_IGNORED);
    for (int i = 0; i < names.count; i++) {
        SCOPED char *path = buf_text("%s/%s", parent, names.items[i]);
        int lock = file_is_temporary(names.items[i]) ? lock_directory(path) : -1;
        if (lock >= 0) {
            file_remove_all(path, STATUS_IGNORED);
            close(lock);
        }
    }
}

/* ---- directories written as a whole ---------------------------------------------------------- */

static int refuse(const char *path, const char *why, struct status *st)
{
    return status_set(st, STATUS_ENVIRONMENT, "cannot create '%s': %s", path, why);
}

static bool dangles(const char *path)
{
    struct stat info;
    SCOPED char *at = mem_strdup(path);
    for (size_t len = strlen(at); len > 1 && at[len - 1] == '/'; len--)
        at[len - 1] = '\0';
    return lstat(at, &info) == 0 && S_ISLNK(info.st_mode) && stat(at, &info) != 0;
}

int fresh_dir_open(const char *dir, struct fresh_dir *out, struct status *st)
{
    *out = (struct fresh_dir){.existed = file_exists(dir), .staging = SCRATCH_INIT};
    if (dangles(dir))
        return refuse(dir, FILE_DANGLES, st);
    if (file_make_dirs(dir, st) != 0)
        return -1;
    out->dir = realpath(dir, NULL);
    if (out->dir != NULL) {
        scratch_sweep(out->dir);
        if (scratch_make(out->dir, &out->staging) == 0)
            return 0;
    }
    refuse(dir, strerror(errno), st);
    fresh_dir_release(out);
    return -1;
}

/* Moves each entry up into the directory, which stays the one that it is. */
static int move_up(struct fresh_dir *s, const struct names *entries, struct status *st)
{
    for (int i = 0; i < entries->count; i++) {
        SCOPED char *from = buf_text("%s/%s", s->staging.dir, entries->items[i]);
        SCOPED char *to = buf_text("%s/%s", s->dir, entries->items[i]);
        if (rename(from, to) != 0)
            return refuse(to, strerror(errno), st);
    }
    return 0;
}

/* The names that are in the way of a commit.  Files are in no way if `replace` is set. */
static int obstacles(const struct fresh_dir *s, const struct names *entries, bool replace,
                     struct names *out, struct status *st)
{
    SCOPED_BY(names_release) struct names there;
    struct stat info;
    *out = (struct names){.count = 0};
    if (directory_list(s->dir, &there, st) != 0)
        return -1;
    for (int i = 0; i < there.count; i++) {
        SCOPED char *path = buf_text("%s/%s", s->dir, there.items[i]);
        bool stays = replace && (!names_have(entries, there.items[i]) ||
                                 (lstat(path, &info) == 0 && !S_ISDIR(info.st_mode)));
        if (!file_is_temporary(there.items[i]) && !stays)
            names_add(out, there.items[i]);
    }
    return 0;
}

int fresh_dir_commit(struct fresh_dir *s, bool replace, struct status *st)
{
    SCOPED_BY(names_release) struct names entries, found = {.count = 0};
    SCOPED_BUF text = BUF_INIT;
    if (directory_list(s->staging.dir, &entries, st) != 0 ||
        obstacles(s, &entries, replace, &found, st) != 0)
        return -1;
    names_text(&found, &text);
    if (found.count > 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot write to '%s': it holds %s", s->dir,
                          text.ptr);
    if (move_up(s, &entries, st) != 0)
        return -1;
    scratch_release(&s->staging);
    return 0;
}

void fresh_dir_release(struct fresh_dir *s)
{
    scratch_release(&s->staging);
    if (!s->existed && s->dir != NULL)
        rmdir(s->dir); /* unless it holds what was committed */
    free(s->dir);
    *s = (struct fresh_dir){.staging = SCRATCH_INIT};
}
