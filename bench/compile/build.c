#include "bench/compile/builder.h"

struct binary *builder_find(struct builder *b, const struct choice *c)
{
    for (int i = 0; i < b->count; i++)
        if (choice_equal(&b->binaries[i]->choice, c))
            return b->binaries[i];
    struct binary *binary = mem_alloc(1, sizeof(*binary));
    binary->choice = *c;
    binary->error = -1;
    b->binaries = mem_resize(b->binaries, (size_t)b->count + 1, sizeof(*b->binaries));
    b->binaries[b->count++] = binary;
    return binary;
}

void binary_describe(const struct binary *b, struct resources *r)
{
    const struct resources *said = &b->resources;
    if (r->registers == 0)
        r->registers = said->registers;
    if (r->shared_static_bytes == 0)
        r->shared_static_bytes = said->shared_static_bytes;
    r->stack_bytes = said->stack_bytes;
    r->spill_bytes = said->spill_bytes;
    r->spill_load_bytes = said->spill_load_bytes;
    memcpy(r->compiler_warning, said->compiler_warning, sizeof(r->compiler_warning));
}

void binary_source(const struct builder *b, struct binary *binary, struct buf *text)
{
    choice_emit(&binary->choice, &b->target, text);
    SCOPED char *all =
        buf_text("%s\n%s\n%s", b->toolchain->identity, strrchr(b->headers.ptr, '/'), text->ptr);
    hash_text(all, strlen(all), binary->key);
}

/* Reads what the compiler said of a binary, which may rule it out; false where no log is kept. */
static bool recall_log(const struct builder *b, struct binary *binary)
{
    if (!b->toolchain->logs || binary->choice.impl->library)
        return true;
    SCOPED_BUF log = BUF_INIT;
    bool found = cache_get(b->cache, CACHE_LOG, binary->key, &log, NULL);
    if (found)
        ptxas_read(log.ptr, &binary->resources);
    if (ptxas_serialises(&binary->resources))
        status_set(&binary->status, STATUS_UNFIT, "its wgmma instructions would not overlap: %s",
                   binary->resources.compiler_warning);
    return found;
}

bool binary_in_cache(const struct builder *b, struct binary *binary)
{
    const struct cache *cache = b->cache;
    if (!cache_get(cache, CACHE_BINARY, binary->key, NULL, binary->content_hash) ||
        !recall_log(b, binary))
        return false;
    struct buf path = BUF_INIT;
    cache_path(cache, CACHE_BINARY, binary->key, &path);
    free(binary->path);
    binary->path = buf_detach(&path);
    binary->built = true;
    return true;
}

int builder_gone(const struct builder *b, struct status *st)
{
    return status_set(st, STATUS_ENVIRONMENT,
                      "a binary is gone from the cache '%s'; does another program clear it",
                      b->cache->dir);
}

int builder_check(struct builder *b, const struct choice *choices, int count, struct status *st)
{
    for (int i = 0; i < count; i++)
        if (!cache_use(builder_find(b, &choices[i])->path))
            return builder_gone(b, st);
    return 0;
}

int binary_keep_text(const struct builder *b, struct binary *binary, const struct buf *text,
                     struct status *st)
{
    if (cache_put(b->cache, CACHE_BINARY, binary->key, text->ptr, text->len, st) != 0)
        return -1;
    return binary_in_cache(b, binary) ? 0 : builder_gone(b, st);
}
