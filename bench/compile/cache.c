#include "bench/compile/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES ((uint64_t)2 << 30) /* some ten thousand binaries */

/* Each kind of entry has a directory, whose files are named KEY SUFFIX.  Headers have a directory
 * for each set of them below HEADERS_DIR. */
#define HEADERS_DIR "headers"

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
    SPARED_S = 600, /* what was used this recently stays: a process in the queue for the device may
                       be about to load it */
    TEMPORARY_MAX_AGE_S = 3600 /* an older unfinished entry is of a process that was killed */
};

static int read_bound(uint64_t *out, struct status *st)
{
    const char *text = getenv("FUSEPLAN_CACHE_MAX_BYTES");
    int64_t bytes = (int64_t)DEFAULT_MAX_BYTES;
    if (text != NULL && text[0] != '\0' &&
        number_parse("FUSEPLAN_CACHE_MAX_BYTES", text, 0, INT64_MAX, &bytes, st) != 0)
        return -1;
    *out = (uint64_t)bytes;
    return 0;
}

static int make_dir(const struct cache *c, const char *name, struct status *st)
{
    struct buf path;
    buf_init(&path);
    buf_addf(&path, "%s/%s", c->dir, name);
    mode_t usual = umask(S_IRWXG | S_IRWXO); /* what lies there is run */
    int result = file_make_dirs(path.ptr, st);
    umask(usual);
    if (result == 0)
        result = file_trust_dir(path.ptr, st);
    if (result == 0 && access(path.ptr, W_OK | X_OK) != 0)
        result = status_set(st, STATUS_ENVIRONMENT, "cannot write to '%s': %s", path.ptr,
                            strerror(errno));
    buf_release(&path);
    return result;
}

int cache_make_dirs(const struct cache *c, struct status *st)
{
    int result = make_dir(c, CACHE_TEMPORARY_DIR, st);
    for (int i = 0; i < CACHE_KIND_COUNT && result == 0; i++)
        result = make_dir(c, kinds[i].dir, st);
    return result;
}

int cache_open(const char *dir, struct cache *out, struct status *st)
{
    *out = (struct cache){0};
    if (read_bound(&out->max_bytes, st) != 0)
        return -1;
    out->dir = file_user_dir(dir, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache");
    if (out->dir[0] == '-') { /* a compiler would take its files for options */
        struct buf path;
        buf_init(&path);
        buf_addf(&path, "./%s", out->dir);
        free(out->dir);
        out->dir = buf_detach(&path);
    }
    int result =
        utf8_is_valid(out->dir) /* the worker gets it in JSON */
            ? cache_make_dirs(out, st)
            : status_set(st, STATUS_ENVIRONMENT, "the name of '%s' is not UTF-8", out->dir);
    if (result != 0) {
        status_prefix(st, "the cache of compiled code is not usable; set FUSEPLAN_CACHE to a "
                          "directory that can be written");
        cache_release(out);
    }
    return result;
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
    struct buf path, entry;
    buf_init(&path);
    buf_init(&entry);
    struct status ignored = STATUS_INIT;
    char hash[HASH_TEXT_SIZE];
    cache_path(c, kind, key, &path);
    /* Another user's may lie there if others could write to the directory once. */
    bool there = file_exists(path.ptr);
    bool found = there && file_is_ours(path.ptr) && file_read(path.ptr, 0, &entry, &ignored) == 0;
    if (there && (!found || !sound(&entry, hash))) {
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
    buf_release(&entry);
    buf_release(&path);
    return found;
}

/* Makes room for an entry where something else lies, such as a pipe that would block whoever
 * writes. */
static void remove_foreign(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        unlink(path);
}

int cache_put(const struct cache *c, enum cache_kind kind, const char *key, const void *data,
              size_t len, struct status *st)
{
    struct buf path, entry;
    buf_init(&path);
    buf_init(&entry);
    char hash[HASH_TEXT_SIZE];
    buf_add(&entry, data, len);
    buf_add(&entry, hash_text(data, len, hash), HASH_LENGTH);
    cache_path(c, kind, key, &path);
    remove_foreign(path.ptr);
    mode_t usual = umask(S_IRWXG | S_IRWXO);
    int result = file_write(path.ptr, entry.ptr, entry.len, st);
    umask(usual);
    buf_release(&entry);
    buf_release(&path);
    return result;
}

/* Whether a file holds exactly these bytes.  A header is small enough to be read each time. */
static bool same_file(const char *path, const void *data, size_t len)
{
    struct buf old;
    struct status ignored = STATUS_INIT;
    buf_init(&old);
    bool same = file_exists(path) && file_read(path, 0, &old, &ignored) == 0 && old.len == len &&
                memcmp(old.ptr, data, len) == 0;
    buf_release(&old);
    return same;
}

int cache_headers(const struct cache *c, const struct kernel_file *files, int count,
                  struct buf *dir, struct status *st)
{
    struct buf all, path;
    buf_init(&all);
    buf_init(&path);
    for (int i = 0; i < count; i++) {
        buf_addf(&all, "%s %zu\n", files[i].name, files[i].len);
        buf_add(&all, files[i].text, files[i].len);
    }
    char hash[HASH_TEXT_SIZE];
    buf_reset(dir);
    buf_addf(dir, "%s/%s/%s", c->dir, HEADERS_DIR, hash_text(all.ptr, all.len, hash));
    int result = file_make_dirs(dir->ptr, st);
    if (result == 0)
        result = file_trust_dir(dir->ptr, st); /* what is there is compiled and run */
    for (int i = 0; i < count && result == 0; i++) {
        buf_reset(&path);
        buf_addf(&path, "%s/%s", dir->ptr, files[i].name);
        if (same_file(path.ptr, files[i].text, files[i].len))
            continue;
        remove_foreign(path.ptr);
        result = file_write(path.ptr, files[i].text, files[i].len, st);
    }
    buf_release(&path);
    buf_release(&all);
    return result;
}

/* ---- size and removal ------------------------------------------------------------------------ */

struct entry {
    char *path;
    uint64_t bytes;
    time_t used;
};

/* What a file is to the cache.  FOREIGN: a user's own, beside or in the cache's directories. */
enum role { FOREIGN, ENTRY, HEADER, TEMPORARY };

/* Whether a name ends as those of file_write()'s temporary files do. */
static bool is_random_suffix(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    return text[0] == '.' && strspn(text + 1, letters) == 6 && text[7] == '\0';
}

static bool starts_with_hash(const char *name)
{
    return strspn(name, "0123456789abcdef") == HASH_LENGTH;
}

static enum role role_of(const FTSENT *file)
{
    const FTSENT *dir = file->fts_parent;
    const char *name = file->fts_name;
    if (file->fts_level == 2)
        return strcmp(dir->fts_parent->fts_name, HEADERS_DIR) == 0 ? HEADER : FOREIGN;
    if (file->fts_level != 1)
        return FOREIGN;
    if (strcmp(dir->fts_name, CACHE_TEMPORARY_DIR) == 0)
        return strncmp(name, CACHE_TEMPORARY_PREFIX, strlen(CACHE_TEMPORARY_PREFIX)) == 0
                   ? TEMPORARY
                   : FOREIGN;
    for (int i = 0; i < CACHE_KIND_COUNT; i++) {
        size_t len = strlen(kinds[i].suffix);
        if (strcmp(dir->fts_name, kinds[i].dir) != 0 || !starts_with_hash(name) ||
            strncmp(name + HASH_LENGTH, kinds[i].suffix, len) != 0)
            continue;
        const char *rest = name + HASH_LENGTH + len;
        return rest[0] == '\0' ? ENTRY : is_random_suffix(rest) ? TEMPORARY : FOREIGN;
    }
    return FOREIGN;
}

/* Below the cache's directories only the sets of headers are directories of its own. */
static bool is_foreign_dir(const FTSENT *dir)
{
    return dir->fts_level > 1 ||
           (dir->fts_level == 1 &&
            (strcmp(dir->fts_parent->fts_name, HEADERS_DIR) != 0 ||
             strlen(dir->fts_name) != HASH_LENGTH || !starts_with_hash(dir->fts_name)));
}

static FTS *open_walk(const struct cache *c)
{
    const char *names[CACHE_KIND_COUNT + 2] = {CACHE_TEMPORARY_DIR, HEADERS_DIR};
    for (int i = 0; i < CACHE_KIND_COUNT; i++)
        names[i + 2] = kinds[i].dir;
    char *roots[ARRAY_LEN(names) + 1] = {NULL};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buf path;
        buf_init(&path);
        buf_addf(&path, "%s/%s", c->dir, names[i]);
        roots[i] = buf_detach(&path);
    }
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        free(roots[i]);
    return walk;
}

/* Returns the bytes of all files that are the cache's.  entries, unless null, gets a struct entry
 * for each that may be removed, its path owned; stale temporary files are removed at once.  Headers
 * stay: they are few and small. */
static uint64_t list_entries(const struct cache *c, struct buf *entries)
{
    uint64_t total = 0;
    FTS *walk = open_walk(c);
    time_t now = time(NULL);
    FTSENT *e;
    while (walk != NULL && (e = fts_read(walk)) != NULL) {
        if (e->fts_info == FTS_D && is_foreign_dir(e))
            fts_set(walk, e, FTS_SKIP);
        enum role role = e->fts_info == FTS_F ? role_of(e) : FOREIGN;
        time_t used = e->fts_statp->st_mtime;
        bool stale = role == TEMPORARY && now - used > TEMPORARY_MAX_AGE_S;
        if (role == FOREIGN || (stale && entries != NULL && unlink(e->fts_path) == 0))
            continue;
        uint64_t bytes = (uint64_t)e->fts_statp->st_size;
        total += bytes;
        if (role == ENTRY && entries != NULL)
            buf_add(entries, &(struct entry){mem_strdup(e->fts_path), bytes, used},
                    sizeof(struct entry));
    }
    if (walk != NULL)
        fts_close(walk);
    return total;
}

uint64_t cache_bytes(const struct cache *c)
{
    return list_entries(c, NULL);
}

static int by_use(const void *a, const void *b)
{
    time_t x = ((const struct entry *)a)->used, y = ((const struct entry *)b)->used;
    return (x > y) - (x < y);
}

void cache_trim(const struct cache *c)
{
    scratch_sweep(c);
    struct buf list;
    buf_init(&list);
    uint64_t bytes = list_entries(c, &list);
    struct entry *entries = (void *)list.ptr;
    size_t count = list.len / sizeof(*entries);
    /* Down to nine tenths, so that the next binary does not bring the next trim. */
    uint64_t goal = bytes > c->max_bytes ? c->max_bytes - c->max_bytes / 10 : bytes;
    time_t spared = time(NULL) - SPARED_S;
    qsort(entries, count, sizeof(*entries), by_use);
    for (size_t i = 0; i < count; i++) {
        if (bytes > goal && entries[i].used < spared && unlink(entries[i].path) == 0)
            bytes -= entries[i].bytes;
        free(entries[i].path);
    }
    buf_release(&list);
}
