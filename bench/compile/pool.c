/* Compilers at work, several at a time. */
#include "bench/compile/build_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Binaries that were asked for. */
struct wanted {
    struct binary **binaries; /* owned array */
    int count, begun;         /* of the first `begun`, a compiler runs, ran or is not needed */
};

struct pool {
    struct builder *builder;
    struct buf headers; /* the directory of the kernels' headers; empty until something is built */
    struct build *builds;
    int running;
    double charged;         /* until when, as clock_seconds(), the running builds were charged */
    struct failure *failed; /* (failed_count) to be compiled again, owned array */
    int failed_count;
    struct wanted ahead; /* of builder_build_some(), which may go on after its return */
    bool busy;           /* a call is under way */
};

static struct pool *pool_of(struct builder *b)
{
    if (b->pool == NULL) {
        b->pool = mem_alloc(1, sizeof(*b->pool));
        *b->pool =
            (struct pool){.builder = b, .builds = mem_alloc((size_t)b->jobs, sizeof(struct build))};
        buf_init(&b->pool->headers);
    }
    return b->pool;
}

/* Stops all compilers and forgets what was wanted. */
static void disband(struct pool *pool)
{
    while (pool->running > 0)
        compile_release(&pool->builds[--pool->running].compile);
    pool->failed_count = 0;
    pool->ahead.count = pool->ahead.begun = 0;
}

static void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    disband(pool);
    buf_release(&pool->headers);
    free(pool->builds);
    free(pool->failed);
    free(pool->ahead.binaries);
    free(pool);
}

void builder_release(struct builder *b)
{
    pool_free(b->pool);
    for (int i = 0; i < b->count; i++) {
        free(b->binaries[i]->path);
        free(b->binaries[i]);
    }
    free(b->binaries);
    *b = (struct builder){0};
}

static int make_headers(struct pool *pool, struct status *st)
{
    const struct builder *b = pool->builder;
    if (pool->headers.len > 0)
        return 0;
    if (cache_make_dirs(b->cache, st) != 0)
        return -1;
    return compile_headers(b->toolchain, b->cache, &pool->headers, st);
}

static bool being_built(const struct pool *pool, const struct binary *binary)
{
    for (int i = 0; i < pool->running; i++)
        if (strcmp(pool->builds[i].binary->key, binary->key) == 0)
            return true;
    return false;
}

static void fail_once(struct pool *pool, struct failure failure)
{
    size_t size = (size_t)pool->failed_count + 1;
    pool->failed = mem_resize(pool->failed, size, sizeof(struct failure));
    pool->failed[pool->failed_count++] = failure;
}

static bool failed_once(const struct pool *pool, const struct binary *binary)
{
    for (int i = 0; i < pool->failed_count; i++)
        if (strcmp(pool->failed[i].binary->key, binary->key) == 0)
            return true;
    return false;
}

/* Notes what became of the binaries of one source: they were built, or failed for a reason of the
 * source's own. */
static int settle(struct pool *pool, const struct binary *binary, bool built,
                  const struct status *result, struct status *st)
{
    const struct builder *b = pool->builder;
    for (int i = 0; i < b->count; i++) {
        struct binary *same = b->binaries[i];
        if (same->built || strcmp(same->key, binary->key) != 0)
            continue;
        if (built && !binary_in_cache(b, same))
            return builder_gone(b, st);
        if (built)
            continue;
        same->built = true;
        same->status = *result;
    }
    return 0;
}

/* Shares the time since the last call among the running compilers.  Called before one starts, and
 * after one ended. */
static void charge(struct pool *pool)
{
    double now = clock_seconds();
    for (int i = 0; i < pool->running; i++)
        pool->builds[i].binary->build_s += (now - pool->charged) / pool->running;
    pool->charged = now;
}

/* Takes what a compiler that has ended leaves. */
static int take(struct pool *pool, int ended, struct status *st)
{
    struct builder *b = pool->builder;
    charge(pool);
    struct build done = pool->builds[ended];
    struct binary *binary = done.binary;
    pool->builds[ended] = pool->builds[--pool->running];
    struct status result = STATUS_INIT;
    int finished = compile_finish(&done.compile, b->toolchain, b->cache, binary->key, &result);
    compile_release(&done.compile);
    if (result.code == STATUS_COMPILE || result.code == STATUS_ENVIRONMENT) {
        fail_once(pool, (struct failure){binary, result.code == STATUS_ENVIRONMENT});
        return 0;
    }
    return settle(pool, binary, finished == 0, &result, st);
}

/* Waits for one compiler, until a time.  Returns -1 with STATUS_TIMEOUT if that passes, or where
 * the environment or an interrupt ends the work. */
static int collect(struct pool *pool, double until, struct status *st)
{
    struct process **list = mem_alloc((size_t)pool->running, sizeof(struct process *));
    for (int i = 0; i < pool->running; i++)
        list[i] = &pool->builds[i].compile.process;
    int ended = process_wait_any(list, pool->running, until, pool->builder->stop, st);
    free(list);
    return ended < 0 ? -1 : take(pool, ended, st);
}

/* Compiles a source that failed again, alone, until a time.  Where the machine stops its
 * compiler twice, that says nothing about the source and ends the work. */
static int build_again(struct pool *pool, double until, struct status *st)
{
    const struct builder *b = pool->builder;
    const struct failure before = pool->failed[--pool->failed_count];
    struct binary *binary = before.binary;
    struct status result = STATUS_INIT;
    if (binary->built) /* as a choice of the same source, just now */
        return 0;
    struct buf text;
    buf_init(&text);
    binary_source(b, pool->headers.ptr, binary, &text);
    double start = clock_seconds();
    int built = compile_source(b->toolchain, b->cache, text.ptr, pool->headers.ptr, binary->key,
                               b->deadline_s, until, b->stop, &result);
    binary->build_s += clock_seconds() - start;
    buf_release(&text);
    bool late = result.code == STATUS_TIMEOUT && clock_seconds() >= until;
    if (late)
        pool->failed[pool->failed_count++] = before; /* nothing is known of it */
    if (late || result.code == STATUS_INTERRUPTED)
        return status_set(st, result.code, "%s", result.message);
    if (result.code == STATUS_ENVIRONMENT && !before.machine) {
        fail_once(pool, (struct failure){binary, true});
        return 0;
    }
    if (result.code == STATUS_ENVIRONMENT)
        return status_set(st, result.code,
                          "the compiler failed twice, the second time alone; " MACHINE_QUESTION
                          ": %s",
                          result.message);
    if (result.code == STATUS_COMPILE &&
        compile_recheck(b->toolchain, b->cache, until, b->stop, st) != 0)
        return -1;
    return settle(pool, binary, built == 0, &result, st);
}

/* Starts the build of one choice, or finds that it needs none.  *waits: every compiler that may run
 * does. */
static int begin(struct pool *pool, struct binary *binary, bool *waits, struct status *st)
{
    struct builder *b = pool->builder;
    const char *why = NULL;
    const struct choice *c = &binary->choice;
    *waits = false;
    if (binary->built && (binary->status.code != STATUS_OK || cache_use(binary->path)))
        return 0;
    binary->built = false;
    if (!choice_applicable(c, &b->target, &why)) {
        binary->built = true;
        status_set(&binary->status, STATUS_UNFIT, "%s", why != NULL ? why : "not applicable");
        return 0;
    }

    if (make_headers(pool, st) != 0)
        return -1;

    struct buf text;
    buf_init(&text);
    int result = 0;
    binary_source(b, pool->headers.ptr, binary, &text);
    if (binary_in_cache(b, binary) || being_built(pool, binary) || failed_once(pool, binary)) {
        /* it is there, or what becomes of the same source will settle it */
    } else if (c->impl->library) {
        result = binary_keep_text(b, binary, &text, st);
    } else if (pool->running == b->jobs) {
        *waits = true;
    } else {
        struct build *next = &pool->builds[pool->running];
        charge(pool);
        next->binary = binary;
        result = compile_start(b->toolchain, b->cache, text.ptr, pool->headers.ptr, b->deadline_s,
                               &next->compile, st);
        if (result == 0)
            pool->running++;
        else
            compile_release(&next->compile);
        if (result == 0 && b->compiling != NULL)
            b->compiling(b->compiling_ctx);
    }
    buf_release(&text);
    return result;
}

/* Replaces what is wanted by these choices.  The user may have removed the cache's directories. */
static void want(struct builder *b, const struct choice *choices, int count, struct wanted *out)
{
    out->binaries = mem_resize(out->binaries, (size_t)count + 1, sizeof(struct binary *));
    buf_reset(&b->pool->headers);
    out->count = count;
    out->begun = 0;
    for (int i = 0; i < count; i++)
        out->binaries[i] = builder_find(b, &choices[i]);
}

static int begin_more(struct pool *pool, struct wanted *w, struct status *st)
{
    bool waits = false;
    int result = 0;
    while (result == 0 && !waits && w->begun < w->count) {
        result = begin(pool, w->binaries[w->begun], &waits, st);
        w->begun += result == 0 && !waits;
    }
    return result;
}

/* How many of the first ones are built. */
static int built_of(const struct wanted *w, int first)
{
    int count = 0;
    for (int i = 0; i < w->begun && i < first; i++)
        count += w->binaries[i]->built;
    return count;
}

/* Builds until so many of the first ones are built, or a time: see collect(). */
static int work(struct pool *pool, struct wanted *w, int first, int least, double until,
                struct status *st)
{
    int result;
    while ((result = begin_more(pool, w, st)) == 0) {
        step_tell(&pool->builder->listener, &(struct step){.phase = "compiling",
                                                           .done = built_of(w, w->count),
                                                           .total = w->count,
                                                           .left_s = NAN});
        if (built_of(w, first) >= least)
            break;
        result = pool->running > 0 ? collect(pool, until, st) : build_again(pool, until, st);
        if (result != 0)
            break;
    }
    return result;
}

int builder_build(struct builder *b, const struct choice *choices, int count, double until,
                  struct status *results, struct status *st)
{
    struct pool *pool = pool_of(b);
    struct wanted all = {0};
    want(b, choices, count, &all);
    pool->busy = true;
    int result = work(pool, &all, count, count, until, st);
    pool->busy = false;
    if (result != 0)
        disband(pool);
    for (int i = 0; i < count && results != NULL; i++)
        results[i] = all.binaries[i]->status;
    free(all.binaries);
    return result;
}

int builder_build_some(struct builder *b, const struct choice *choices, int count, int ahead,
                       double until, struct built *out, struct status *st)
{
    struct pool *pool = pool_of(b);
    struct wanted *w = &pool->ahead;
    int all = count + ahead;
    want(b, choices, all, w);
    pool->busy = true;
    int result =
        b->beside ? work(pool, w, count, count > 0, until, st) : work(pool, w, all, all, until, st);
    pool->busy = false;
    for (int i = 0; i < all; i++) {
        bool done = i < w->begun && w->binaries[i]->built;
        out[i] = (struct built){done, done ? w->binaries[i]->status : STATUS_INIT};
    }
    bool late = result != 0 && st->code == STATUS_TIMEOUT;
    if (result != 0 && !(late && b->beside))
        disband(pool);
    if (late)
        *st = STATUS_INIT;
    return late ? 0 : result;
}

bool builder_advance(struct builder *b)
{
    struct pool *pool = b->pool;
    struct status failed = STATUS_INIT; /* the next user of the binary meets it again */
    if (pool == NULL || pool->busy || pool->running == 0)
        return false;
    pool->busy = true;
    for (int i = pool->running - 1; i >= 0 && failed.code == STATUS_OK; i--)
        if (process_over(&pool->builds[i].compile.process))
            take(pool, i, &failed);
    if (failed.code == STATUS_OK)
        begin_more(pool, &pool->ahead, &failed);
    pool->busy = false;
    if (failed.code != STATUS_OK)
        disband(pool);
    return pool->running > 0;
}
