#include "bench/compile/compile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

void builder_release(struct builder *b)
{
    for (int i = 0; i < b->count; i++) {
        free(b->binaries[i]->path);
        free(b->binaries[i]);
    }
    free(b->binaries);
    *b = (struct builder){0};
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

/* A running compiler.  Choices that differ only in run-time knobs share a key, and so one build. */
struct build {
    struct compile compile;
    struct binary *binary;
};

/* What failed once is compiled again when all others have ended: then the machine has its memory
 * for it alone, and the first failure may have been the machine's. */
struct failure {
    struct binary *binary;
    bool machine; /* the machine stopped the compiler; else the source may be at fault */
};

struct crew {
    struct builder *builder;
    struct buf headers; /* the directory of the kernels' headers; empty until something is built */
    struct build *builds;
    int running;
    double charged;         /* until when, as clock_seconds(), the running ones were charged */
    struct failure *failed; /* (failed_count) to be compiled again, owned array */
    int failed_count;
};

static int make_headers(struct crew *crew, struct status *st)
{
    const struct kernel_file *files;
    if (crew->headers.len > 0)
        return 0;
    if (cache_make_dirs(crew->builder->cache, st) != 0)
        return -1;
    int count = kernel_files(crew->builder->target.kind, &files);
    return cache_headers(crew->builder->cache, files, count, &crew->headers, st);
}

/* The key hashes everything that the binary depends on: the name of the headers' directory is their
 * hash. */
static void make_source(struct crew *crew, struct binary *binary, struct buf *text)
{
    const struct choice *c = &binary->choice;
    choice_emit(c, &crew->builder->target, text);
    struct buf all;
    buf_init(&all);
    buf_addf(&all, "%s\n%s\n%s", crew->builder->toolchain->identity,
             strrchr(crew->headers.ptr, '/'), text->ptr);
    hash_text(all.ptr, all.len, binary->key);
    buf_release(&all);
}

/* Reads what the compiler said of a binary, which may rule it out; false where no log is kept. */
static bool recall_log(const struct builder *b, struct binary *binary)
{
    if (!b->toolchain->logs || binary->choice.impl->library)
        return true;
    struct buf log;
    buf_init(&log);
    bool found = cache_get(b->cache, CACHE_LOG, binary->key, &log, NULL);
    if (found)
        ptxas_read(log.ptr, &binary->resources);
    if (ptxas_serialises(&binary->resources))
        status_set(&binary->status, STATUS_UNFIT, "its wgmma instructions would not overlap: %s",
                   binary->resources.compiler_warning);
    buf_release(&log);
    return found;
}

static bool in_cache(struct crew *crew, struct binary *binary)
{
    const struct cache *cache = crew->builder->cache;
    if (!cache_get(cache, CACHE_BINARY, binary->key, NULL, binary->content_hash) ||
        !recall_log(crew->builder, binary))
        return false;
    struct buf path;
    buf_init(&path);
    cache_path(cache, CACHE_BINARY, binary->key, &path);
    free(binary->path);
    binary->path = buf_detach(&path);
    binary->built = true;
    return true;
}

static bool being_built(const struct crew *crew, const struct binary *binary)
{
    for (int i = 0; i < crew->running; i++)
        if (strcmp(crew->builds[i].binary->key, binary->key) == 0)
            return true;
    return false;
}

static int gone(const struct builder *b, struct status *st)
{
    return status_set(st, STATUS_ENVIRONMENT,
                      "a binary is gone from the cache '%s'; does another program clear it",
                      b->cache->dir);
}

int builder_check(struct builder *b, const struct choice *choices, int count, struct status *st)
{
    for (int i = 0; i < count; i++)
        if (!cache_use(builder_find(b, &choices[i])->path))
            return gone(b, st);
    return 0;
}

static void fail_once(struct crew *crew, struct failure failure)
{
    size_t size = (size_t)crew->failed_count + 1;
    crew->failed = mem_resize(crew->failed, size, sizeof(struct failure));
    crew->failed[crew->failed_count++] = failure;
}

static bool failed_once(const struct crew *crew, const struct binary *binary)
{
    for (int i = 0; i < crew->failed_count; i++)
        if (strcmp(crew->failed[i].binary->key, binary->key) == 0)
            return true;
    return false;
}

/* Notes what became of a binary: it was built, or failed for a reason of its own, which is that of
 * all choices of the same source. */
static int settle(struct crew *crew, struct binary *binary, bool built, const struct status *result,
                  struct status *st)
{
    const struct builder *b = crew->builder;
    if (built)
        return in_cache(crew, binary) ? 0 : gone(b, st);
    for (int i = 0; i < b->count; i++) {
        struct binary *same = b->binaries[i];
        if (same->built || strcmp(same->key, binary->key) != 0)
            continue;
        same->built = true;
        same->status = *result;
    }
    return 0;
}

/* Shares the time since the last call among the running compilers.  Called before one starts, and
 * after one ended. */
static void charge(struct crew *crew)
{
    double now = clock_seconds();
    for (int i = 0; i < crew->running; i++)
        crew->builds[i].binary->build_s += (now - crew->charged) / crew->running;
    crew->charged = now;
}

/* Waits for one compiler.  Returns -1 where the environment or an interrupt ends the work. */
static int collect(struct crew *crew, struct status *st)
{
    struct builder *b = crew->builder;
    struct process **list = mem_alloc((size_t)crew->running, sizeof(struct process *));
    for (int i = 0; i < crew->running; i++)
        list[i] = &crew->builds[i].compile.process;
    int ended = process_wait_any(list, crew->running, b->stop, st);
    free(list);
    charge(crew);
    if (ended < 0)
        return -1;

    struct build done = crew->builds[ended];
    struct binary *binary = done.binary;
    crew->builds[ended] = crew->builds[--crew->running];
    struct status result = STATUS_INIT;
    int finished = compile_finish(&done.compile, b->toolchain, b->cache, binary->key, &result);
    compile_release(&done.compile);
    if (result.code == STATUS_COMPILE || result.code == STATUS_ENVIRONMENT) {
        fail_once(crew, (struct failure){binary, result.code == STATUS_ENVIRONMENT});
        return 0;
    }
    return settle(crew, binary, finished == 0, &result, st);
}

/* Compiles one of those that failed again, alone.  Where the machine stops its compiler twice, that
 * says nothing about the source and ends the work. */
static int build_again(struct crew *crew, struct status *st)
{
    const struct builder *b = crew->builder;
    const struct failure before = crew->failed[--crew->failed_count];
    struct binary *binary = before.binary;
    struct status result = STATUS_INIT;
    if (binary->built || in_cache(crew, binary)) /* as a choice of the same source, just now */
        return 0;
    struct buf text;
    buf_init(&text);
    make_source(crew, binary, &text);
    double start = clock_seconds();
    int built = compile_source(b->toolchain, b->cache, text.ptr, crew->headers.ptr, binary->key,
                               b->deadline_s, b->stop, &result);
    binary->build_s += clock_seconds() - start;
    buf_release(&text);
    if (result.code == STATUS_INTERRUPTED)
        return status_set(st, result.code, "%s", result.message);
    if (result.code == STATUS_ENVIRONMENT && !before.machine) {
        fail_once(crew, (struct failure){binary, true});
        return 0;
    }
    if (result.code == STATUS_ENVIRONMENT)
        return status_set(st, result.code,
                          "the compiler failed twice, the second time alone; is the disk full, "
                          "memory short, or does another program stop it: %s",
                          result.message);
    if (result.code == STATUS_COMPILE &&
        compile_recheck(b->toolchain, b->cache, b->deadline_s, b->stop, st) != 0)
        return -1;
    return settle(crew, binary, built == 0, &result, st);
}

/* A segment that a library runs needs no compiler: its text takes the binary's place. */
static int keep_text(struct crew *crew, struct binary *binary, const struct buf *text,
                     struct status *st)
{
    const struct builder *b = crew->builder;
    if (cache_put(b->cache, CACHE_BINARY, binary->key, text->ptr, text->len, st) != 0)
        return -1;
    return in_cache(crew, binary) ? 0 : gone(b, st);
}

/* Starts the build of one choice, or finds that it needs none. */
static int build_one(struct crew *crew, struct binary *binary, struct status *st)
{
    struct builder *b = crew->builder;
    const char *why = NULL;
    const struct choice *c = &binary->choice;
    if (binary->built && (binary->status.code != STATUS_OK || cache_use(binary->path)))
        return 0;
    if (!choice_applicable(c, &b->target, &why)) {
        binary->built = true;
        status_set(&binary->status, STATUS_UNFIT, "%s", why != NULL ? why : "not applicable");
        return 0;
    }

    if (make_headers(crew, st) != 0)
        return -1;

    struct buf text;
    buf_init(&text);
    int result = 0;
    make_source(crew, binary, &text);
    while (result == 0 && (crew->running == b->jobs || being_built(crew, binary)))
        result = collect(crew, st);
    bool known = result == 0 && in_cache(crew, binary);
    if (result == 0 && !known && failed_once(crew, binary)) {
        fail_once(crew, (struct failure){.binary = binary});
    } else if (result == 0 && !known && c->impl->library) {
        result = keep_text(crew, binary, &text, st);
    } else if (result == 0 && !known) {
        struct build *next = &crew->builds[crew->running];
        charge(crew);
        next->binary = binary;
        result = compile_start(b->toolchain, b->cache, text.ptr, crew->headers.ptr, b->deadline_s,
                               &next->compile, st);
        if (result == 0)
            crew->running++;
        else
            compile_release(&next->compile);
        if (result == 0 && b->compiling != NULL)
            b->compiling(b->compiling_ctx);
    }
    buf_release(&text);
    return result;
}

int builder_build(struct builder *b, const struct choice *choices, int count,
                  struct status *results, struct status *st)
{
    struct crew crew = {.builder = b, .builds = mem_alloc((size_t)b->jobs, sizeof(struct build))};
    buf_init(&crew.headers);
    int result = 0;
    for (int begun = 0; result == 0 && (begun < count || crew.running + crew.failed_count > 0);) {
        result = begun < count      ? build_one(&crew, builder_find(b, &choices[begun++]), st)
                 : crew.running > 0 ? collect(&crew, st)
                                    : build_again(&crew, st);
        if (result == 0)
            step_tell(&b->listener, &(struct step){.phase = "compiling",
                                                   .done = begun - crew.running - crew.failed_count,
                                                   .total = count,
                                                   .left_s = NAN});
    }
    while (crew.running > 0)
        compile_release(&crew.builds[--crew.running].compile);
    for (int i = 0; i < count && results != NULL; i++)
        results[i] = builder_find(b, &choices[i])->status;
    buf_release(&crew.headers);
    free(crew.builds);
    free(crew.failed);
    return result;
}
