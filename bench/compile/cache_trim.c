/* What is in a cache, and the removal of what was used least recently. */
#include "bench/compile/cache_int.h"

#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SPARED_S = 600, /* another process may be about to load what was used this recently, once it
                       has its turn on the device (run.c) */
    TEMPORARY_MAX_AGE_S = 3600 /* what a killed process left behind */
};

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
    return strspn(name, "0123456789abcdef") == CACHE_TRAILER_SIZE;
}

static enum role role_of(const FTSENT *file)
{
    const FTSENT *dir = file->fts_parent;
    const char *name = file->fts_name;
    if (file->fts_level == 2)
        return strcmp(dir->fts_parent->fts_name, CACHE_HEADERS_DIR) == 0 ? HEADER : FOREIGN;
    if (file->fts_level != 1)
        return FOREIGN;
    if (strcmp(dir->fts_name, CACHE_TEMPORARY_DIR) == 0)
        return strncmp(name, CACHE_TEMPORARY_PREFIX, strlen(CACHE_TEMPORARY_PREFIX)) == 0
                   ? TEMPORARY
                   : FOREIGN;
    for (int i = 0; i < CACHE_KIND_COUNT; i++) {
        size_t len = strlen(cache_kinds[i].suffix);
        if (strcmp(dir->fts_name, cache_kinds[i].dir) != 0 || !starts_with_hash(name) ||
            strncmp(name + CACHE_TRAILER_SIZE, cache_kinds[i].suffix, len) != 0)
            continue;
        const char *rest = name + CACHE_TRAILER_SIZE + len;
        return rest[0] == '\0' ? ENTRY : is_random_suffix(rest) ? TEMPORARY : FOREIGN;
    }
    return FOREIGN;
}

/* Below the directories of the cache only those that hold headers are its own. */
static bool is_foreign_dir(const FTSENT *dir)
{
    return dir->fts_level > 1 ||
           (dir->fts_level == 1 &&
            (strcmp(dir->fts_parent->fts_name, CACHE_HEADERS_DIR) != 0 ||
             strlen(dir->fts_name) != CACHE_TRAILER_SIZE || !starts_with_hash(dir->fts_name)));
}

static FTS *open_walk(const struct cache *c)
{
    const char *names[CACHE_KIND_COUNT + 2] = {CACHE_TEMPORARY_DIR, CACHE_HEADERS_DIR};
    for (int i = 0; i < CACHE_KIND_COUNT; i++)
        names[i + 2] = cache_kinds[i].dir;
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
