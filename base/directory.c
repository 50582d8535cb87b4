#include "base/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
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

/* ---- staging --------------------------------------------------------------------------------- */

static char *join(const char *dir, const char *name)
{
    return buf_text("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
}

static int refuse(const char *path, struct status *st)
{
    return status_set(st, STATUS_ENVIRONMENT, "cannot create '%s': %s", path, strerror(errno));
}

/* The absolute path of a directory that need not exist: all above it is made.  *parent is the
 * directory above, null where the directory exists.  The caller frees both. */
static char *resolve(const char *path, char **parent, struct status *st)
{
    char *real = realpath(path, NULL);
    *parent = NULL;
    if (real != NULL || errno != ENOENT)
        return real;

    struct stat link;
    SCOPED char *at = mem_strdup(path);
    for (size_t len = strlen(at); len > 1 && at[len - 1] == '/'; len--)
        at[len - 1] = '\0';
    if (lstat(at, &link) == 0 && S_ISLNK(link.st_mode)) {
        status_set(st, STATUS_ENVIRONMENT, "cannot create '%s': %s", path, FILE_DANGLES);
        return NULL;
    }
    char *slash = strrchr(at, '/');
    SCOPED char *last = mem_strdup(slash != NULL ? slash + 1 : at);
    if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        return file_make_dirs(at, st) == 0 ? realpath(at, NULL) : NULL;
    if (slash == NULL || slash == at)
        strcpy(at, slash == NULL ? "." : "/");
    else
        *slash = '\0';
    if (file_make_dirs(at, st) == 0)
        *parent = realpath(at, NULL);
    if (*parent != NULL)
        real = join(*parent, last);
    if (real != NULL && file_exists(real)) { /* "a/../a" where a has just been made */
        free(*parent);
        *parent = NULL;
    }
    return real;
}

int directory_lock(const char *path)
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

/* The name of a staging directory, in the directory itself or in the one above it. */
static char *staging_name(const char *dir, bool within, int number)
{
    char suffix[FILE_TEMPORARY_SUFFIX_SIZE];
    SCOPED char *copy = mem_strdup(dir);
    file_temporary_suffix(number, suffix);
    return join(within ? dir : dirname(copy), suffix);
}

static void remove_stale(const char *staging)
{
    int lock = directory_lock(staging);
    if (lock < 0)
        return;
    file_remove_all(staging, STATUS_IGNORED);
    close(lock);
}

void fresh_dir_sweep(const char *dir)
{
    for (int i = 0; i < FILE_TEMPORARY_NUMBERED * 2; i++) {
        SCOPED char *staging = staging_name(dir, i % 2 == 0, i / 2);
        remove_stale(staging);
    }
}

/* Makes and locks a staging directory; -1 with errno where there is none. */
static int stage(struct fresh_dir *s)
{
    int error = EEXIST;
    for (int i = 0; i < FILE_TEMPORARY_TRIES && error == EEXIST; i++) {
        s->at = staging_name(s->dir, s->exists, i);
        if (mkdir(s->at, 0700) != 0)
            error = errno;
        else if ((s->lock = directory_lock(s->at)) >= 0) /* or it was just swept */
            return 0;
        free(s->at);
        s->at = NULL;
    }
    errno = error;
    return -1;
}

int fresh_dir_open(const char *dir, struct fresh_dir *out, struct status *st)
{
    struct stat info;
    char *parent;
    *out = (struct fresh_dir){.dir = resolve(dir, &parent, st), .lock = -1};
    if (out->dir == NULL)
        return refuse(dir, st);
    out->exists = parent == NULL;
    free(parent);
    fresh_dir_sweep(out->dir);
    bool fits = !out->exists || (stat(out->dir, &info) == 0 && S_ISDIR(info.st_mode));
    errno = ENOTDIR;
    if (fits && stage(out) == 0)
        return 0;
    refuse(dir, st);
    fresh_dir_release(out);
    return -1;
}

/* Moves each entry up into the directory, which stays the one that it is. */
static int move_up(struct fresh_dir *s, const struct names *entries, struct status *st)
{
    for (int i = 0; i < entries->count; i++) {
        SCOPED char *from = join(s->at, entries->items[i]);
        SCOPED char *to = join(s->dir, entries->items[i]);
        if (rename(from, to) != 0)
            return refuse(to, st);
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
        SCOPED char *path = join(s->dir, there.items[i]);
        bool itself = strcmp(path, s->at) == 0;
        bool stays = replace && (!names_have(entries, there.items[i]) ||
                                 (lstat(path, &info) == 0 && !S_ISDIR(info.st_mode)));
        if (!itself && !stays)
            names_add(out, there.items[i]);
    }
    return 0;
}

static int commit_into(struct fresh_dir *s, bool replace, struct status *st)
{
    SCOPED_BY(names_release) struct names entries, found = {.count = 0};
    SCOPED_BUF text = BUF_INIT;
    if (directory_list(s->at, &entries, st) != 0 ||
        obstacles(s, &entries, replace, &found, st) != 0)
        return -1;
    names_text(&found, &text);
    if (found.count > 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot write to '%s': it holds %s", s->dir,
                          text.ptr);
    if (move_up(s, &entries, st) != 0)
        return -1;
    return rmdir(s->at) == 0 ? 0 : refuse(s->dir, st);
}

int fresh_dir_commit(struct fresh_dir *s, bool replace, struct status *st)
{
    mode_t hidden = umask(0);
    umask(hidden);
    if (!s->exists && (chmod(s->at, 0777 & ~hidden) != 0 || rename(s->at, s->dir) != 0)) {
        if (errno != ENOTEMPTY && errno != EEXIST)
            return refuse(s->dir, st);
        s->exists = true; /* another program has made it since */
    }
    if (s->exists && commit_into(s, replace, st) != 0)
        return -1;
    free(s->at);
    s->at = NULL;
    return 0;
}

void fresh_dir_release(struct fresh_dir *s)
{
    if (s->at != NULL)
        file_remove_all(s->at, STATUS_IGNORED);
    if (s->lock >= 0)
        close(s->lock);
    free(s->at);
    free(s->dir);
    *s = (struct fresh_dir){.lock = -1};
}
