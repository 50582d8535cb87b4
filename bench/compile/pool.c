/* Compilers at work, several at a time. */
#include "bench/compile/builder.h"

/* Stops all compilers and forgets what was wanted. */
static void disband(struct builder *b)
{
    while (b->running > 0)
        compile_release(&b->builds[--b->running].compile);
    b->failed_count = 0;
    b->ahead.count = b->ahead.begun = 0;
}

void builder_release(struct builder *b)
{
    disband(b);
    buf_release(&b->headers);
    free(b->builds);
    free(b->failed);
    free(b->ahead.binaries);
    for (int i = 0; i < b->count; i++) {
        free(b->binaries[i]->path);
        free(b->binaries[i]);
    }
    free(b->binaries);
    *b = (struct builder){0};
}

static int make_headers(struct builder *b, struct status *st)
{
    if (b->headers.len > 0)
        return 0;
    if (cache_make_dirs(b->cache, st) != 0)
        return -1;
    return compile_headers(b->toolchain, b->cache, &b->headers, st);
}

static bool being_built(const struct builder *b, const struct binary *binary)
{
    for (int i = 0; i < b->running; i++)
        if (strcmp(b->builds[i].binary->key, binary->key) == 0)
            return true;
    return false;
}

static void fail_once(struct builder *b, struct failure failure)
{
    size_t size = (size_t)b->failed_count + 1;
    b->failed = mem_resize(b->failed, size, sizeof(struct failure));
    b->failed[b->failed_count++] = failure;
}

static bool failed_once(const struct builder *b, const struct binary *binary)
{
    for (int i = 0; i < b->failed_count; i++)
        if (strcmp(b->failed[i].binary->key, binary->key) == 0)
            return true;
    return false;
}

/* Notes what became of the binaries of one source: they were built, or failed for a reason of the
 * source's own. */
static int settle(const struct builder *b, const struct binary *binary, bool built,
                  const struct status *result, struct status *st)
{
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
static void charge(struct builder *b)
{
    double now = clock_seconds();
    for (int i = 0; i < b->running; i++)
        b->builds[i].binary->build_s += (now - b->charged) / b->running;
    b->charged = now;
}

/* Takes what a compiler that has ended leaves. */
static int take(struct builder *b, int ended, struct status *st)
{
    charge(b);
    struct build done = b->builds[ended];
    struct binary *binary = done.binary;
    b->builds[ended] = b->builds[--b->running];
    struct status result = STATUS_INIT;
    int finished = compile_finish(&done.compile, b->toolchain, b->cache, binary->key, &result);
    compile_release(&done.compile);
    if (result.code == STATUS_COMPILE || result.code == STATUS_ENVIRONMENT) {
        fail_once(b, (struct failure){binary, result.code == STATUS_ENVIRONMENT});
        return 0;
    }
    return settle(b, binary, finished == 0, &result, st);
}

/* Waits for one compiler, until a time.  Returns -1 with STATUS_TIMEOUT if that passes, or where
 * the environment or an interrupt ends the work. */
static int collect(struct builder *b, double until, struct status *st)
{
    SCOPED struct process **list = mem_alloc((size_t)b->running, sizeof(struct process *));
    for (int i = 0; i < b->running; i++)
        list[i] = &b->builds[i].compile.process;
    int ended = process_wait_any(list, b->running, until, b->stop, st);
    return ended < 0 ? -1 : take(b, ended, st);
}

/* Compiles a source that failed again, alone, until a time.  Where the machine stops its
 * compiler twice, that says nothing about the source and ends the work. */
static int build_again(struct builder *b, double until, struct status *st)
{
    const struct failure before = b->failed[--b->failed_count];
    struct binary *binary = before.binary;
    struct status result = STATUS_INIT;
    if (binary->built) /* as a choice of the same source, just now */
        return 0;
    SCOPED_BUF text = BUF_INIT;
    binary_source(b, binary, &text);
    double start = clock_seconds();
    int built = compile_source(b->toolchain, b->cache, text.ptr, b->headers.ptr, binary->key,
                               b->deadline_s, until, b->stop, &result);
    binary->build_s += clock_seconds() - start;
    bool late = result.code == STATUS_TIMEOUT && clock_seconds() >= until;
    if (late)
        b->failed[b->failed_count++] = before; /* nothing is known of it */
    if (late || result.code == STATUS_INTERRUPTED)
        return status_set(st, result.code, "%s", result.message);
    if (result.code == STATUS_ENVIRONMENT && !before.machine) {
        fail_once(b, (struct failure){binary, true});
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
    return settle(b, binary, built == 0, &result, st);
}

/* Starts the build of one choice, or finds that it needs none.  *waits: every compiler that may run
 * does. */
static int begin(struct builder *b, struct binary *binary, int niceness, bool *waits,
                 struct status *st)
{
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

    if (being_built(b, binary)) /* its source need not be written once more */
        return 0;
    if (make_headers(b, st) != 0)
        return -1;

    SCOPED_BUF text = BUF_INIT;
    binary_source(b, binary, &text);
    if (binary_in_cache(b, binary) || being_built(b, binary) || failed_once(b, binary))
        return 0; /* it is there, or what becomes of the same source will settle it */
    if (c->impl->library)
        return binary_keep_text(b, binary, &text, st);
    *waits = b->running == b->jobs;
    if (*waits)
        return 0;
    struct build *next = &b->builds[b->running];
    struct toolchain toolchain = *b->toolchain; /* borrows its texts */
    charge(b);
    next->binary = binary;
    toolchain.niceness = niceness;
    if (compile_start(&toolchain, b->cache, text.ptr, b->headers.ptr, b->deadline_s, &next->compile,
                      st) != 0) {
        compile_release(&next->compile);
        return -1;
    }
    b->running++;
    return 0;
}

/* Replaces what is wanted by these choices.  The user may have removed the cache's directories. */
static void want(struct builder *b, const struct choice *choices, int count, struct wanted *out)
{
    out->binaries = mem_resize(out->binaries, (size_t)count + 1, sizeof(struct binary *));
    buf_reset(&b->headers);
    if (b->builds == NULL)
        b->builds = mem_alloc((size_t)b->jobs, sizeof(*b->builds));
    out->count = count;
    out->begun = 0;
    out->niceness = b->toolchain->niceness;
    for (int i = 0; i < count; i++)
        out->binaries[i] = builder_find(b, &choices[i]);
}

static int begin_more(struct builder *b, struct wanted *w, struct status *st)
{
    bool waits = false;
    while (!waits && w->begun < w->count) {
        if (begin(b, w->binaries[w->begun], w->niceness, &waits, st) != 0)
            return -1;
        w->begun += !waits;
    }
    return 0;
}

/* How many of the first ones are built. */
static int built_of(const struct wanted *w, int first)
{
    int count = 0;
    for (int i = 0; i < w->begun && i < first; i++)
        count += w->binaries[i]->built;
    return count;
}

/* Where cores would wait for the last compilers of these, compilers of what is wanted ahead start,
 * unless one has failed: it is tried again when no other one runs. */
static int begin_all(struct builder *b, struct wanted *w, struct status *st)
{
    struct status failed = STATUS_INIT; /* the next user of the binary meets it again */
    if (begin_more(b, w, st) != 0)
        return -1;
    if (w != &b->ahead && b->beside && b->failed_count == 0)
        begin_more(b, &b->ahead, &failed);
    return 0;
}

/* Builds until so many of the first ones are built, or a time: see collect(). */
static int work(struct builder *b, struct wanted *w, int first, int least, double until,
                struct status *st)
{
    while (begin_all(b, w, st) == 0) {
        if (b->running > 0 && b->compiling != NULL)
            b->compiling(b->compiling_ctx);
        step_tell(&b->listener, &(struct step){.phase = "compiling",
                                               .done = built_of(w, w->count),
                                               .total = w->count,
                                               .left_s = NAN});
        if (built_of(w, first) >= least)
            return 0;
        if ((b->running > 0 ? collect(b, until, st) : build_again(b, until, st)) != 0)
            break;
    }
    return -1;
}

int builder_build(struct builder *b, const struct choice *choices, int count, double until,
                  struct status *results, struct status *st)
{
    struct wanted all = {0};
    want(b, choices, count, &all);
    b->busy = true;
    int result = work(b, &all, count, count, until, st);
    b->busy = false;
    if (result != 0)
        disband(b);
    for (int i = 0; i < count && results != NULL; i++)
        results[i] = all.binaries[i]->status;
    free(all.binaries);
    return result;
}

int builder_build_some(struct builder *b, const struct choice *choices, int count, int ahead,
                       double until, struct built *out, struct status *st)
{
    struct wanted *w = &b->ahead;
    int all = count + ahead;
    want(b, choices, all, w);
    b->busy = true;
    int result =
        b->beside ? work(b, w, count, count > 0, until, st) : work(b, w, all, all, until, st);
    b->busy = false;
    for (int i = 0; i < all; i++) {
        bool done = i < w->begun && w->binaries[i]->built;
        out[i] = (struct built){done, done ? w->binaries[i]->status : STATUS_INIT};
    }
    bool late = result != 0 && st->code == STATUS_TIMEOUT;
    if (result != 0 && !(late && b->beside))
        disband(b);
    if (late)
        *st = STATUS_INIT;
    return late ? 0 : result;
}

bool builder_advance(struct builder *b)
{
    struct status failed = STATUS_INIT; /* the next user of the binary meets it again */
    if (b->busy || b->running == 0)
        return false;
    b->busy = true;
    for (int i = b->running - 1; i >= 0 && failed.code == STATUS_OK; i--)
        if (process_over(&b->builds[i].compile.process))
            take(b, i, &failed);
    if (failed.code == STATUS_OK)
        begin_more(b, &b->ahead, &failed);
    b->busy = false;
    if (failed.code != STATUS_OK)
        disband(b);
    return b->running > 0;
}
