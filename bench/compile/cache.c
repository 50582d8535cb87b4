#include "bench/compile/compile.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES ((uint64_t)2 << 30) /* some ten thousand binaries */

/* Each kind of entry has a directory, whose files are named KEY SUFFIX.  Headers have a directory
 * for each set of them below HEADERS_DIR. */
#define HEADERS_DIR   "headers"
#define TEMPORARY_DIR "temporary"

static const struct {
    const char *dir, *suffix;
} kinds[CACHE_KIND_COUNT] = {
    [CACHE_BINARY] = {"binaries", ".bin"},
    [CACHE_LOG] = {"logs", ".log"},
    [CACHE_VERDICT] = {"verdicts", ".txt"},
    [CACHE_DEVICE] = {"devices", ".json"},
};

enum {
    HASH_LENGTH = HASH_TEXT_SIZE - 1, /* of an entry's name, and of the hash that ends it */
    SPARED_S = 600 /* what was used this recently stays: a process in the queue for the device may
                      be about to load it */
};

static int read_bound(uint64_t *out, struct status *st)
{
    const char *text = variable_value("FUSEPLAN_CACHE_MAX_BYTES");
    int64_t bytes = (int64_t)DEFAULT_MAX_BYTES;
    if (text != NULL &&
        number_parse("FUSEPLAN_CACHE_MAX_BYTES", text, 0, INT64_MAX, &bytes, st) != 0)
        return -1;
    *out = (uint64_t)bytes;
    return 0;
}

/* What lies in the cache is compiled and run. */
static int make_own_dir(const char *path, struct status *st)
{
    SCOPED char *made = file_trust(path, TRUST_MADE, st);
    return made != NULL ? 0 : -1;
}

static int make_dir(const struct cache *c, const char *name, struct status *st)
{
    SCOPED char *path = buf_text("%s/%s", c->dir, name);
    if (make_own_dir(path, st) != 0)
        return -1;
    return access(path, W_OK | X_OK) == 0
               ? 0
               : status_set(st, STATUS_ENVIRONMENT, "cannot write to '%s': %s", path,
                            strerror(errno));
}

int cache_make_dirs(const struct cache *c, struct status *st)
{
    for (int i = 0; i < CACHE_KIND_COUNT; i++)
        if (make_dir(c, kinds[i].dir, st) != 0)
            return -1;
    return make_dir(c, TEMPORARY_DIR, st);
}

/* Whether a path leads through a home of another user's, which sudo may have left in HOME. */
static bool is_anothers_home(const char *path)
{
    struct stat info;
    const char *home = getenv("HOME");
    size_t len = home != NULL ? strlen(home) : 0;
    return len > 0 && strncmp(path, home, len) == 0 && (path[len] == '/' || path[len] == '\0') &&
           stat(home, &info) == 0 && info.st_uid != geteuid();
}

/* The directory's path without links; null on a failure. */
static char *find_dir(const char *named, struct status *st)
{
    char *dir = utf8_is_valid(named) ? file_trust(named, TRUST_MADE, st) : mem_strdup(named);
    if (dir == NULL || utf8_is_valid(dir)) /* the worker gets it in JSON */
        return dir;
    status_set(st, STATUS_ENVIRONMENT, "the name of '%s' is not UTF-8", dir);
    free(dir);
    return NULL;
}

int cache_open(const char *dir, struct cache *out, struct status *st)
{
    *out = (struct cache){0};
    if (read_bound(&out->max_bytes, st) != 0)
        return -1;
    SCOPED char *named = file_user_dir(dir, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache");
    bool elsewhere = is_anothers_home(named);
    out->dir = find_dir(named, st);
    if (out->dir != NULL && cache_make_dirs(out, st) == 0)
        return 0;
    cache_release(out);
    return status_prefix(st,
                         "the cache of compiled code is not usable; %sset FUSEPLAN_CACHE to a "
                         "directory that can be written",
                         elsewhere ? "HOME is another user's, so set HOME ('sudo -H' does), or "
                                   : "");
}

void cache_release(struct cache *c)
{
    free(c->dir);
    *c = (struct cache){0};
}

void cache_dir(const struct cache *c, enum cache_kind kind, struct buf *dir)
{
    buf_addf(dir, "%s/%s", c->dir, kinds[kind].dir);
}

void cache_path(const struct cache *c, enum cache_kind kind, const char *key, struct buf *path)
{
    buf_reset(path);
    buf_addf(path, "%s/%s/%s%s", c->dir, kinds[kind].dir, key, kinds[kind].suffix);
}

bool cache_use(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, 0) == 0 || file_exists(path);
}

/* Whether an entry ends with the hash of the bytes before it; content_hash gets that hash. */
static bool sound(const struct buf *entry, char content_hash[HASH_TEXT_SIZE])
{
    if (entry->len < HASH_LENGTH)
        return false;
    size_t len = entry->len - HASH_LENGTH;
    hash_text(entry->ptr, len, content_hash);
    return memcmp(entry->ptr + len, content_hash, HASH_LENGTH) == 0;
}

bool cache_get(const struct cache *c, enum cache_kind kind, const char *key, struct buf *data,
               char content_hash[HASH_TEXT_SIZE])
{
    SCOPED_BUF path = BUF_INIT, entry = BUF_INIT;
    char hash[HASH_TEXT_SIZE];
    cache_path(c, kind, key, &path);
    /* Another user's may lie there if others could write to the directory once.  One that cannot be
     * read stays: there may be no descriptor left to read it with, and others use it. */
    bool there = file_exists(path.ptr), ours = there && file_is_ours(path.ptr);
    bool found = ours && file_read(path.ptr, 0, &entry, STATUS_IGNORED) == 0;
    if (there && (!ours || (found && !sound(&entry, hash)))) {
        unlink(path.ptr);
        found = false;
    }
    if (found) {
        cache_use(path.ptr);
        if (data != NULL)
            buf_add(data, entry.ptr, entry.len - HASH_LENGTH);
        if (content_hash != NULL)
            memcpy(content_hash, hash, sizeof(hash));
    }
    return found;
}

/* Makes room for a file where something else lies: a pipe, which would block a writer, or a
 * file of another user's, who could change it at any time. */
static void remove_foreign(const char *path)
{
    struct stat info;
    if (lstat(path, &info) == 0 && !file_is_ours(path))
        unlink(path);
}

int cache_write(const char *path, const void *data, size_t len, struct status *st)
{
    return file_write(path, data, len, st) == 0 ? 0 : status_prefix(st, CACHE_UNWRITABLE);
}

int cache_put(const struct cache *c, enum cache_kind kind, const char *key, const void *data,
              size_t len, struct status *st)
{
    SCOPED_BUF path = BUF_INIT, entry = BUF_INIT;
    char hash[HASH_TEXT_SIZE];
    buf_add(&entry, data, len);
    buf_add(&entry, hash_text(data, len, hash), HASH_LENGTH);
    cache_path(c, kind, key, &path);
    remove_foreign(path.ptr);
    mode_t usual = umask(S_IRWXG | S_IRWXO);
    int result = cache_write(path.ptr, entry.ptr, entry.len, st);
    umask(usual);
    return result;
}

/* Whether a file of ours holds exactly these bytes.  A header is small enough to be read each
 * time. */
static bool same_file(const char *path, const void *data, size_t len)
{
    SCOPED_BUF old = BUF_INIT;
    return file_is_ours(path) && file_read(path, 0, &old, STATUS_IGNORED) == 0 && old.len == len &&
           memcmp(old.ptr, data, len) == 0;
}

int cache_headers(const struct cache *c, const struct kernel_file *files, int count,
                  struct buf *dir, struct status *st)
{
    SCOPED_BUF all = BUF_INIT, path = BUF_INIT;
    for (int i = 0; i < count; i++) {
        buf_addf(&all, "%s %zu\n", files[i].name, files[i].len);
        buf_add(&all, files[i].text, files[i].len);
    }
    char hash[HASH_TEXT_SIZE];
    buf_reset(dir);
    buf_addf(dir, "%s/%s/%s", c->dir, HEADERS_DIR, hash_text(all.ptr, all.len, hash));
    if (make_own_dir(dir->ptr, st) != 0)
        return -1;
    for (int i = 0; i < count; i++) {
        buf_reset(&path);
        buf_addf(&path, "%s/%s", dir->ptr, files[i].name);
        if (same_file(path.ptr, files[i].text, files[i].len))
            continue;
        remove_foreign(path.ptr);
        if (cache_write(path.ptr, files[i].text, files[i].len, st) != 0)
            return -1;
    }
    return 0;
}

int cache_scratch(const struct cache *c, struct scratch_dir *out, struct status *st)
{
    SCOPED char *dir = buf_text("%s/" TEMPORARY_DIR, c->dir);
    if (scratch_make(dir, out) == 0)
        return 0;
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK)
        return status_set(
            st, STATUS_ENVIRONMENT,
            "cannot lock a directory in '%s': %s: the cache needs a file system with flock(); "
            "FUSEPLAN_CACHE names another directory, such as one on a disk of this machine",
            dir, strerror(errno));
    status_set(st, STATUS_ENVIRONMENT, "cannot make a directory in '%s': %s", dir, strerror(errno));
    return status_prefix(st, CACHE_UNWRITABLE);
}

/* ---- size and removal ------------------------------------------------------------------------ */

struct entry {
    char *path;
    uint64_t bytes;
    time_t used;
};

/* Whether a name is that of an entry, or of one that a process which was killed left unfinished.  A
 * user's own files may lie beside them. */
static bool is_entry(enum cache_kind kind, const char *name)
{
    return file_is_temporary(name) || (strspn(name, "0123456789abcdef") == HASH_LENGTH &&
                                       strcmp(name + HASH_LENGTH, kinds[kind].suffix) == 0);
}

/* Name by name: a cache has ten thousands of files, and most walks keep none in memory. */
static uint64_t walk_dir(const struct cache *c, enum cache_kind kind, struct buf *entries)
{
    uint64_t bytes = 0;
    const struct dirent *e;
    struct stat file;
    SCOPED_BUF path = BUF_INIT;
    cache_dir(c, kind, &path);
    int fd = open(path.ptr, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
    while (names != NULL && (e = readdir(names)) != NULL) {
        if (!is_entry(kind, e->d_name))
            continue;
        buf_reset(&path);
        cache_dir(c, kind, &path);
        buf_addf(&path, "/%s", e->d_name);
        if (lstat(path.ptr, &file) != 0 || !S_ISREG(file.st_mode))
            continue;
        bytes += (uint64_t)file.st_size;
        if (entries != NULL)
            buf_add(entries,
                    &(struct entry){mem_strdup(path.ptr), (uint64_t)file.st_size, file.st_mtime},
                    sizeof(struct entry));
    }
    if (names != NULL)
        closedir(names);
    else if (fd >= 0)
        close(fd);
    return bytes;
}

/* entries gets a struct entry for each, its path owned; null: none is kept.  Returns their bytes.
 */
static uint64_t walk_cache(const struct cache *c, struct buf *entries)
{
    uint64_t bytes = 0;
    for (int i = 0; i < CACHE_KIND_COUNT; i++)
        bytes += walk_dir(c, (enum cache_kind)i, entries);
    return bytes;
}

uint64_t cache_bytes(const struct cache *c)
{
    return walk_cache(c, NULL);
}

static int by_use(const void *a, const void *b)
{
    time_t x = ((const struct entry *)a)->used, y = ((const struct entry *)b)->used;
    return (x > y) - (x < y);
}

void cache_trim(const struct cache *c)
{
    SCOPED char *temporary = buf_text("%s/" TEMPORARY_DIR, c->dir);
    scratch_sweep(temporary);
    if (walk_cache(c, NULL) <= c->max_bytes)
        return;
    SCOPED_BUF list = BUF_INIT;
    uint64_t bytes = walk_cache(c, &list);
    struct entry *entries = (void *)list.ptr;
    size_t count = list.len / sizeof(*entries);
    /* Down to nine tenths, so that the next binary does not bring the next trim. */
    uint64_t goal = c->max_bytes - c->max_bytes / 10;
    time_t spared = time(NULL) - SPARED_S;
    qsort(entries, count, sizeof(*entries), by_use);
    for (size_t i = 0; i < count; i++) {
        if (bytes > goal && entries[i].used < spared && unlink(entries[i].path) == 0)
            bytes -= entries[i].bytes;
        free(entries[i].path);
    }
}
