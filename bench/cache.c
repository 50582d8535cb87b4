#include "bench/bench_int.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES ((uint64_t)2 << 30) /* some ten thousand binaries */

enum {
    TRAILER_SIZE = HASH_TEXT_SIZE - 1,
    SPARED_S = 60, /* another process may be about to load what was used this recently */
    TEMPORARY_MAX_AGE_S = 3600 /* what a killed process left behind */
};

static const struct {
    const char *dir, *suffix;
} kinds[CACHE_KIND_COUNT] = {
    [CACHE_BINARY] = {"binaries", ".bin"},
    [CACHE_VERDICT] = {"verdicts", ".txt"},
};

static const char temporary_dir[] = "temporary", headers_dir[] = "headers";
static const char temporary_prefix[] = "fuseplan-"; /* tells them from a user's own files */

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
    int result = file_make_dirs(path.ptr, st);
    if (result == 0 && access(path.ptr, W_OK | X_OK) != 0)
        result = status_set(st, STATUS_ENVIRONMENT, "cannot write to '%s': %s", path.ptr,
                            strerror(errno));
    buf_release(&path);
    return result;
}

int cache_open(const char *dir, struct cache *out, struct status *st)
{
    *out = (struct cache){0};
    if (read_bound(&out->max_bytes, st) != 0)
        return -1;
    out->dir = file_user_dir(dir, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache");
    int result = make_dir(out, temporary_dir, st);
    for (int i = 0; i < CACHE_KIND_COUNT && result == 0; i++)
        result = make_dir(out, kinds[i].dir, st);
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

void cache_path(const struct cache *c, enum cache_kind kind, const char *key, struct buf *path)
{
    buf_reset(path);
    buf_addf(path, "%s/%s/%s%s", c->dir, kinds[kind].dir, key, kinds[kind].suffix);
}

/* An entry is its bytes and then the 32 digits of their hash. */
static bool sound(const struct buf *entry, char content_hash[HASH_TEXT_SIZE])
{
    if (entry->len < TRAILER_SIZE)
        return false;
    size_t len = entry->len - TRAILER_SIZE;
    hash_text(entry->ptr, len, content_hash);
    return memcmp(entry->ptr + len, content_hash, TRAILER_SIZE) == 0;
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
    bool found = file_exists(path.ptr) && file_read(path.ptr, 0, &entry, &ignored) == 0;
    if (found && !sound(&entry, hash)) {
        unlink(path.ptr);
        found = false;
    }
    if (found) {
        utimensat(AT_FDCWD, path.ptr, NULL, 0); /* its turn to be removed comes later */
        if (data != NULL)
            buf_add(data, entry.ptr, entry.len - TRAILER_SIZE);
        if (content_hash != NULL)
            memcpy(content_hash, hash, sizeof(hash));
    }
    buf_release(&entry);
    buf_release(&path);
    return found;
}

int cache_put(const struct cache *c, enum cache_kind kind, const char *key, const void *data,
              size_t len, struct status *st)
{
    struct buf path, entry;
    buf_init(&path);
    buf_init(&entry);
    char hash[HASH_TEXT_SIZE];
    buf_add(&entry, data, len);
    buf_add(&entry, hash_text(data, len, hash), TRAILER_SIZE);
    cache_path(c, kind, key, &path);
    int result = file_write(path.ptr, entry.ptr, entry.len, st);
    buf_release(&entry);
    buf_release(&path);
    return result;
}

/* Whether a file holds exactly these bytes; a header is small enough to read each time. */
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
    buf_addf(dir, "%s/%s/%s", c->dir, headers_dir, hash_text(all.ptr, all.len, hash));
    int result = file_make_dirs(dir->ptr, st);
    for (int i = 0; i < count && result == 0; i++) {
        buf_reset(&path);
        buf_addf(&path, "%s/%s", dir->ptr, files[i].name);
        if (!same_file(path.ptr, files[i].text, files[i].len))
            result = file_write(path.ptr, files[i].text, files[i].len, st);
    }
    buf_release(&path);
    buf_release(&all);
    return result;
}

void cache_temporary(const struct cache *c, const char *suffix, struct buf *path)
{
    static atomic_uint counter;
    buf_reset(path);
    buf_addf(path, "%s/%s/%s%ld-%u%s", c->dir, temporary_dir, temporary_prefix, (long)getpid(),
             atomic_fetch_add(&counter, 1), suffix);
}

struct entry {
    char *path;
    uint64_t bytes;
    time_t used;
};

struct listing {
    struct entry *entries;
    size_t count, cap;
    uint64_t bytes;
};

/* What a file is to the cache.  The user may have put anything beside or into its directories. */
enum role { FOREIGN, ENTRY, HEADER, TEMPORARY };

/* As in a name that file_write() had not yet replaced by the final one. */
static bool is_random_suffix(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    return text[0] == '.' && strspn(text + 1, letters) == 6 && text[7] == '\0';
}

static bool starts_with_hash(const char *name)
{
    return strspn(name, "0123456789abcdef") == TRAILER_SIZE;
}

static enum role role_of(const FTSENT *file)
{
    const FTSENT *dir = file->fts_parent;
    const char *name = file->fts_name;
    if (file->fts_level == 2)
        return strcmp(dir->fts_parent->fts_name, headers_dir) == 0 ? HEADER : FOREIGN;
    if (file->fts_level != 1)
        return FOREIGN;
    if (strcmp(dir->fts_name, temporary_dir) == 0)
        return strncmp(name, temporary_prefix, strlen(temporary_prefix)) == 0 ? TEMPORARY : FOREIGN;
    for (int i = 0; i < CACHE_KIND_COUNT; i++) {
        size_t len = strlen(kinds[i].suffix);
        if (strcmp(dir->fts_name, kinds[i].dir) != 0 || !starts_with_hash(name) ||
            strncmp(name + TRAILER_SIZE, kinds[i].suffix, len) != 0)
            continue;
        const char *rest = name + TRAILER_SIZE + len;
        return rest[0] == '\0' ? ENTRY : is_random_suffix(rest) ? TEMPORARY : FOREIGN;
    }
    return FOREIGN;
}

/* Below the directories of the cache only those that hold headers are its own. */
static bool is_foreign_dir(const FTSENT *dir)
{
    return dir->fts_level > 1 ||
           (dir->fts_level == 1 &&
            (strcmp(dir->fts_parent->fts_name, headers_dir) != 0 ||
             strlen(dir->fts_name) != TRAILER_SIZE || !starts_with_hash(dir->fts_name)));
}

static FTS *open_walk(const struct cache *c)
{
    const char *const names[] = {temporary_dir, headers_dir, kinds[CACHE_BINARY].dir,
                                 kinds[CACHE_VERDICT].dir};
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

static void add_entry(struct listing *l, const FTSENT *e)
{
    if (l->count == l->cap) {
        l->cap = l->cap == 0 ? 256 : l->cap * 2;
        l->entries = mem_resize(l->entries, l->cap, sizeof(*l->entries));
    }
    l->entries[l->count++] = (struct entry){
        mem_strdup(e->fts_path), (uint64_t)e->fts_statp->st_size, e->fts_statp->st_mtime};
}

/* All entries; drops stale temporary files on the way. Headers are few and small: left alone. */
static void list_entries(const struct cache *c, bool tidy, struct listing *out)
{
    *out = (struct listing){0};
    FTS *walk = open_walk(c);
    time_t now = time(NULL);
    FTSENT *e;
    while (walk != NULL && (e = fts_read(walk)) != NULL) {
        if (e->fts_info == FTS_D && is_foreign_dir(e))
            fts_set(walk, e, FTS_SKIP);
        enum role role = e->fts_info == FTS_F ? role_of(e) : FOREIGN;
        bool stale = role == TEMPORARY && now - e->fts_statp->st_mtime > TEMPORARY_MAX_AGE_S;
        if (role == FOREIGN || (stale && tidy && unlink(e->fts_path) == 0))
            continue;
        out->bytes += (uint64_t)e->fts_statp->st_size;
        if (role == ENTRY)
            add_entry(out, e);
    }
    if (walk != NULL)
        fts_close(walk);
}

static void listing_release(struct listing *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->entries[i].path);
    free(l->entries);
}

uint64_t cache_bytes(const struct cache *c)
{
    struct listing l;
    list_entries(c, false, &l);
    uint64_t bytes = l.bytes;
    listing_release(&l);
    return bytes;
}

static int by_use(const void *a, const void *b)
{
    time_t x = ((const struct entry *)a)->used, y = ((const struct entry *)b)->used;
    return (x > y) - (x < y);
}

void cache_trim(const struct cache *c)
{
    struct listing l;
    list_entries(c, true, &l);
    if (l.count > 0 && l.bytes > c->max_bytes) {
        /* Down to nine tenths, so that the next binary does not bring the next trim. */
        uint64_t goal = c->max_bytes - c->max_bytes / 10;
        time_t spared = time(NULL) - SPARED_S;
        qsort(l.entries, l.count, sizeof(*l.entries), by_use);
        for (size_t i = 0; i < l.count && l.bytes > goal && l.entries[i].used < spared; i++)
            if (unlink(l.entries[i].path) == 0)
                l.bytes -= l.entries[i].bytes;
    }
    listing_release(&l);
}
