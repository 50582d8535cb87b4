#include "bench/compile/cache_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES ((uint64_t)2 << 30) /* some ten thousand binaries */

/* As laid out in cache_int.h. */
const struct cache_kind_info cache_kinds[CACHE_KIND_COUNT] = {
    [CACHE_BINARY] = {"binaries", ".bin"},
    [CACHE_LOG] = {"logs", ".log"},
    [CACHE_VERDICT] = {"verdicts", ".txt"},
    [CACHE_DEVICE] = {"devices", ".json"},
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
    int result = file_make_dirs(path.ptr, st);
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
        result = make_dir(c, cache_kinds[i].dir, st);
    return result;
}

int cache_open(const char *dir, struct cache *out, struct status *st)
{
    *out = (struct cache){0};
    if (read_bound(&out->max_bytes, st) != 0)
        return -1;
    out->dir = file_user_dir(dir, "FUSEPLAN_CACHE", "XDG_CACHE_HOME", ".cache");
    int result = 0;
    if (!utf8_is_valid(out->dir)) /* the worker is told of it in JSON */
        result = status_set(st, STATUS_ENVIRONMENT, "the name of '%s' is not UTF-8", out->dir);
    if (result == 0)
        result = cache_make_dirs(out, st);
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
    buf_addf(path, "%s/%s/%s%s", c->dir, cache_kinds[kind].dir, key, cache_kinds[kind].suffix);
}

bool cache_use(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, 0) == 0 || file_exists(path);
}

/* An entry is its bytes and then the 32 digits of their hash. */
static bool sound(const struct buf *entry, char content_hash[HASH_TEXT_SIZE])
{
    if (entry->len < CACHE_TRAILER_SIZE)
        return false;
    size_t len = entry->len - CACHE_TRAILER_SIZE;
    hash_text(entry->ptr, len, content_hash);
    return memcmp(entry->ptr + len, content_hash, CACHE_TRAILER_SIZE) == 0;
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
        cache_use(path.ptr);
        if (data != NULL)
            buf_add(data, entry.ptr, entry.len - CACHE_TRAILER_SIZE);
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
    buf_add(&entry, hash_text(data, len, hash), CACHE_TRAILER_SIZE);
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
    buf_addf(dir, "%s/%s/%s", c->dir, CACHE_HEADERS_DIR, hash_text(all.ptr, all.len, hash));
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
    /* The number of this process is another's in another container or host. */
    uint64_t drawn[2] = {(uint64_t)getpid(), (uint64_t)(clock_seconds() * 1e9)};
    while (getrandom(drawn, sizeof(drawn), 0) < 0 && errno == EINTR)
        ;
    buf_reset(path);
    buf_addf(path, "%s/%s/%s%016" PRIx64 "%016" PRIx64 "%s", c->dir, CACHE_TEMPORARY_DIR,
             CACHE_TEMPORARY_PREFIX, drawn[0], drawn[1], suffix);
}
