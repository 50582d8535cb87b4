#include "base/base.h"

#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path on its way from / to where it leads.  All of `at` is safe: no other user can change what
 * it names.  That holds step by step: an entry stays what it is in a directory that only we and
 * root can write to, and in a sticky one, as /tmp is, if the entry itself is ours or root's. */
struct walk {
    enum trust how;
    struct buf at;   /* without links; empty: / */
    struct buf rest; /* what is left to follow */
    int links;       /* that were followed */
};

static bool is_ours(const struct stat *info)
{
    return info->st_uid == geteuid() || info->st_uid == 0;
}

static bool is_open_to_others(const struct stat *info)
{
    return (info->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

static int unseen(const char *path, int error, struct status *st)
{
    return status_set(st, STATUS_ENVIRONMENT, "'%s' cannot be looked at: %s", path,
                      strerror(error));
}

/* What others could do with what is theirs. */
static const char *harm_of(enum trust how, const struct stat *info)
{
    return how == TRUST_WAY || S_ISLNK(info->st_mode) ? "make this path lead elsewhere"
                                                      : "put code there that you would run";
}

static int check_owner(const char *path, const struct stat *info, const char *harm,
                       struct status *st)
{
    if (is_ours(info))
        return 0;
    const struct passwd *owner = getpwuid(info->st_uid);
    return status_set(st, STATUS_ENVIRONMENT, "%s'%s' belongs to user %s (%ld), who could %s",
                      S_ISLNK(info->st_mode) ? "link " : "", path,
                      owner != NULL ? owner->pw_name : "without a name", (long)info->st_uid, harm);
}

/* sticky: whether the sticky bit is enough to keep others from what is ours. */
static int check(const char *path, const struct stat *info, bool sticky, const char *harm,
                 struct status *st)
{
    if (check_owner(path, info, harm, st) != 0)
        return -1;
    if (!is_open_to_others(info) || (sticky && (info->st_mode & S_ISVTX) != 0))
        return 0;
    return status_set(st, STATUS_ENVIRONMENT,
                      "other users may write to '%s' (mode %o), and could %s; 'chmod go-w' keeps "
                      "them out",
                      path, (unsigned)(info->st_mode & 07777), harm);
}

static const char *path_of(const struct buf *at)
{
    return at->len > 0 ? at->ptr : "/";
}

/* Cuts the next component off `rest`; false at the end. */
static bool next_component(struct buf *rest, struct buf *out)
{
    size_t from = strspn(rest->ptr, "/"), len = strcspn(rest->ptr + from, "/");
    buf_reset(out);
    buf_add(out, rest->ptr + from, len);
    rest->len -= from + len;
    memmove(rest->ptr, rest->ptr + from + len, rest->len + 1);
    return len > 0;
}

static int follow(struct walk *w, const char *link, struct status *st)
{
    enum { LINKS_MAX = 40 };
    char target[PATH_MAX];
    ssize_t len = readlink(link, target, sizeof(target) - 1);
    if (len < 0 || ++w->links > LINKS_MAX)
        return unseen(link, len < 0 ? errno : ELOOP, st);
    target[len] = '\0';
    struct buf rest = BUF_INIT;
    buf_addf(&rest, "%s/%s", target, w->rest.ptr);
    buf_release(&w->rest);
    w->rest = rest;
    if (target[0] == '/')
        buf_reset(&w->at);
    return 0;
}

/* Goes down into an entry of the directory `at`. */
static int step(struct walk *w, const char *name, struct status *st)
{
    struct stat dir, info;
    SCOPED_BUF path = BUF_INIT;
    if (lstat(path_of(&w->at), &dir) != 0)
        return unseen(path_of(&w->at), errno, st);
    if (check(path_of(&w->at), &dir, true, harm_of(w->how, &dir), st) != 0)
        return -1;
    buf_addf(&path, "%s/%s", w->at.ptr, name);
    int error = lstat(path.ptr, &info) == 0 ? 0 : errno;
    if (error == ENOENT && w->how == TRUST_MADE) {
        if (mkdir(path.ptr, S_IRWXU) != 0 && errno != EEXIST)
            return status_set(st, STATUS_ENVIRONMENT, "cannot create directory '%s': %s", path.ptr,
                              strerror(errno));
        error = lstat(path.ptr, &info) == 0 ? 0 : errno;
    }
    if (error == 0 && !S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode))
        error = ENOTDIR;
    if (error != 0)
        return unseen(path.ptr, error, st);
    if ((S_ISLNK(info.st_mode) || is_open_to_others(&dir)) &&
        check_owner(path.ptr, &info, harm_of(w->how, &info), st) != 0)
        return -1;
    if (S_ISLNK(info.st_mode))
        return follow(w, path.ptr, st);
    buf_reset(&w->at);
    buf_adds(&w->at, path.ptr);
    return 0;
}

static int walk_down(struct walk *w, struct status *st)
{
    SCOPED_BUF name = BUF_INIT;
    struct stat info;
    while (next_component(&w->rest, &name)) {
        if (strcmp(name.ptr, "..") == 0) {
            char *slash = strrchr(w->at.ptr, '/');
            w->at.len = slash != NULL ? (size_t)(slash - w->at.ptr) : 0;
            w->at.ptr[w->at.len] = '\0';
        } else if (strcmp(name.ptr, ".") != 0 && step(w, name.ptr, st) != 0) {
            return -1;
        }
    }
    if (w->how == TRUST_WAY)
        return 0;
    if (lstat(path_of(&w->at), &info) != 0)
        return unseen(path_of(&w->at), errno, st);
    return check(path_of(&w->at), &info, false, harm_of(w->how, &info), st);
}

char *file_trust(const char *path, enum trust how, struct status *st)
{
    struct walk w = {.how = how};
    buf_init(&w.at);
    buf_init(&w.rest);
    if (path[0] != '/') {
        SCOPED char *here = getcwd(NULL, 0);
        if (here == NULL || here[0] != '/')
            unseen(".", here == NULL ? errno : ENOENT, st);
        else
            buf_addf(&w.rest, "%s/", here);
    }
    buf_adds(&w.rest, path);
    int result = w.rest.ptr[0] == '/' ? walk_down(&w, st) : unseen(path, ENOENT, st);
    char *found = result == 0 ? mem_strdup(path_of(&w.at)) : NULL;
    buf_release(&w.at);
    buf_release(&w.rest);
    return found;
}

bool file_is_ours(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode) && is_ours(&info) &&
           !is_open_to_others(&info);
}

int file_trust_open(const char *path, struct status *st)
{
    static const char harm[] = "change what it sets";
    struct stat info;
    if (lstat(path, &info) != 0)
        return unseen(path, errno, st);
    if (S_ISLNK(info.st_mode) && check_owner(path, &info, harm, st) != 0)
        return -1;
    int fd = file_open(path, st);
    if (fd < 0)
        return -1;
    if ((fstat(fd, &info) == 0 ? check(path, &info, false, harm, st) : unseen(path, errno, st)) ==
        0)
        return fd;
    close(fd);
    return -1;
}
