/* Directories for what compilers write on their way to a binary. */
#include "bench/compile/compile.h"

#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void draw_name(const struct cache *c, struct buf *path)
{
    buf_reset(path);
    buf_addf(path, "%s/" CACHE_TEMPORARY_DIR "/" CACHE_TEMPORARY_PREFIX "%016" PRIx64, c->dir,
             random_for_name());
}

int scratch_make(const struct cache *c, struct scratch *out, struct status *st)
{
    enum { TRIES = 8 }; /* another process may sweep the directory before it is locked */
    SCOPED_BUF path = BUF_INIT;
    *out = SCRATCH_INIT;
    errno = EEXIST;
    for (int i = 0; i < TRIES && out->lock < 0; i++) {
        draw_name(c, &path);
        if (mkdir(path.ptr, 0700) != 0)
            break;
        out->lock = directory_lock(path.ptr);
        int error = errno;
        if (out->lock < 0)
            rmdir(path.ptr);
        errno = error;
    }
    if (out->lock >= 0) {
        out->dir = buf_detach(&path);
        return 0;
    }
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK)
        return status_set(
            st, STATUS_ENVIRONMENT,
            "cannot lock '%s': %s: the cache needs a file system with flock(); "
            "FUSEPLAN_CACHE names another directory, such as one on a disk of this machine",
            path.ptr, strerror(errno));
    status_set(st, STATUS_ENVIRONMENT, "cannot make a directory '%s': %s", path.ptr,
               strerror(errno));
    return status_prefix(st, CACHE_UNWRITABLE);
}

void scratch_release(struct scratch *s)
{
    if (s->dir != NULL)
        file_remove_all(s->dir, STATUS_IGNORED);
    if (s->lock >= 0)
        close(s->lock);
    free(s->dir);
    *s = SCRATCH_INIT;
}

void scratch_sweep(const struct cache *c)
{
    SCOPED_BUF path = BUF_INIT;
    SCOPED_BY(names_release) struct names names;
    buf_addf(&path, "%s/" CACHE_TEMPORARY_DIR, c->dir);
    if (directory_list(path.ptr, &names, STATUS_IGNORED) != 0)
        names = (struct names){.count = 0};
    for (int i = 0; i < names.count; i++) {
        if (strncmp(names.items[i], CACHE_TEMPORARY_PREFIX, strlen(CACHE_TEMPORARY_PREFIX)) != 0)
            continue;
        buf_reset(&path);
        buf_addf(&path, "%s/" CACHE_TEMPORARY_DIR "/%s", c->dir, names.items[i]);
        int lock = directory_lock(path.ptr);
        if (lock < 0)
            continue;
        file_remove_all(path.ptr, STATUS_IGNORED);
        close(lock);
    }
}
