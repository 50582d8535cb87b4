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

struct crew {
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

static struct crew *crew_of(struct builder *b)
{
    if (b->crew == NULL) {
        b->crew = mem_alloc(1, sizeof(*b->crew));
        *b->crew =
            (struct crew){.builder = b, .builds = mem_alloc((size_t)b->jobs, sizeof(struct build))};
        buf_init(&b->crew->headers);
    }
    return b->crew;
}

/* Stops all compilers and forgets what was wanted. */
static void disband(struct crew *crew)
{
    while (crew->running > 0)
        compile_release(&crew->builds[--crew->running].compile);
    crew->failed_count = 0;
    crew->ahead.count = crew->ahead.begun = 0;
}

void crew_free(struct crew *crew)
{
    if (crew == NULL)
        return;
    disband(crew);
    buf_release(&crew->headers);
    free(crew->builds);
    free(crew->failed);
    free(crew->ahead.binaries);
    free(crew);
}

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

static bool being_built(const struct crew *crew, const struct binary *binary)
{
    for (int i = 0; i < crew->running; i++)
        if (strcmp(crew->builds[i].binary->key, binary->key) == 0)
            return true;
    return false;
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

/* Notes what became of the binaries of one source: they were built, or failed for a reason of the
 * source's own. */
static int settle(struct crew *crew, const struct binary *binary, bool built,
                  const struct status *result, struct status *st)
{
    const struct builder *b = crew->builder;
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
static void charge(struct crew *crew)
{
    double now = clock_seconds();
    for (int i = 0; i < crew->running; i++)
        crew->builds[i].binary->build_s += (now - crew->charged) / crew->running;
    crew->charged = now;
}

/* Takes what a compiler that has ended leaves. */
static int take(struct crew *crew, int ended, struct status *st)
{
    struct builder *b = crew->builder;
    charge(crew);
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

/* Waits for one compiler, until a time.  Returns -1 with STATUS_TIMEOUT if that passes, or where
 * the environment or an interrupt ends the work. */
static int collect(struct crew *crew, double until, struct status *st)
{
    struct process **list = mem_alloc((size_t)crew->running, sizeof(struct process *));
    for (int i = 0; i < crew->running; i++)
        list[i] = &crew->builds[i].compile.process;
    int ended = process_wait_any(list, crew->running, until, crew->builder->stop, st);
    free(list);
    return ended < 0 ? -1 : take(crew, ended, st);
}

/* Compiles a source that failed again, alone, until a time.  Where the machine stops its
 * compiler twice, that says nothing about the source and ends the work. */
static int build_again(struct crew *crew, double until, struct status *st)
{
    const struct builder *b = crew->builder;
    const struct failure before = crew->failed[--crew->failed_count];
    struct binary *binary = before.binary;
    struct status result = STATUS_INIT;
    if (binary->built) /* as a choice of the same source, just now */
        return 0;
    struct buf text;
    buf_init(&text);
    binary_source(b, crew->headers.ptr, binary, &text);
    double start = clock_seconds();
    int built = compile_source(b->toolchain, b->cache, text.ptr, crew->headers.ptr, binary->key,
                               b->deadline_s, until, b->stop, &result);
    binary->build_s += clock_seconds() - start;
    buf_release(&text);
    bool late = result.code == STATUS_TIMEOUT && clock_seconds() >= until;
    if (late)
        crew->failed[crew->failed_count++] = before; /* nothing is known of it */
    if (late || result.code == STATUS_INTERRUPTED)
        return status_set(st, result.code, "%s", result.message);
    if (result.code == STATUS_ENVIRONMENT && !before.machine) {
        fail_once(crew, (struct failure){binary, true});
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
    return settle(crew, binary, built == 0, &result, st);
}

/* Starts the build of one choice, or finds that it needs none.  *waits: every compiler that may run
 * does. */
static int begin(struct crew *crew, struct binary *binary, bool *waits, struct status *st)
{
    struct builder *b = crew->builder;
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

    if (make_headers(crew, st) != 0)
        return -1;

    struct buf text;
    buf_init(&text);
    int result = 0;
    binary_source(b, crew->headers.ptr, binary, &text);
    if (binary_in_cache(b, binary) || being_built(crew, binary) || failed_once(crew, binary)) {
        /* it is there, or what becomes of the same source will settle it */
    } else if (c->impl->library) {
        result = binary_keep_text(b, binary, &text, st);
    } else if (crew->running == b->jobs) {
        *waits = true;
    } else {
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

/* Replaces what is wanted by these choices.  The user may have removed the cache's directories. */
static void want(struct builder *b, const struct choice *choices, int count, struct wanted *out)
{
    out->binaries = mem_resize(out->binaries, (size_t)count + 1, sizeof(struct binary *));
    buf_reset(&b->crew->headers);
    out->count = count;
    out->begun = 0;
    for (int i = 0; i < count; i++)
        out->binaries[i] = builder_find(b, &choices[i]);
}

static int begin_more(struct crew *crew, struct wanted *w, struct status *st)
{
    bool waits = false;
    int result = 0;
    while (result == 0 && !waits && w->begun < w->count) {
        result = begin(crew, w->binaries[w->begun], &waits, st);
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
static int work(struct crew *crew, struct wanted *w, int first, int least, double until,
                struct status *st)
{
    int result;
    while ((result = begin_more(crew, w, st)) == 0) {
        step_tell(&crew->builder->listener, &(struct step){.phase = "compiling",
                                                           .done = built_of(w, w->count),
                                                           .total = w->count,
                                                           .left_s = NAN});
        if (built_of(w, first) >= least)
            break;
        result = crew->running > 0 ? collect(crew, until, st) : build_again(crew, until, st);
        if (result != 0)
            break;
    }
    return result;
}

int builder_build(struct builder *b, const struct choice *choices, int count, double until,
                  struct status *results, struct status *st)
{
    struct crew *crew = crew_of(b);
    struct wanted all = {0};
    want(b, choices, count, &all);
    crew->busy = true;
    int result = work(crew, &all, count, count, until, st);
    crew->busy = false;
    if (result != 0)
        disband(crew);
    for (int i = 0; i < count && results != NULL; i++)
        results[i] = all.binaries[i]->status;
    free(all.binaries);
    return result;
}

int builder_build_some(struct builder *b, const struct choice *choices, int count, int ahead,
                       double until, struct built *out, struct status *st)
{
    struct crew *crew = crew_of(b);
    struct wanted *w = &crew->ahead;
    int all = count + ahead;
    want(b, choices, all, w);
    crew->busy = true;
    int result =
        b->beside ? work(crew, w, count, count > 0, until, st) : work(crew, w, all, all, until, st);
    crew->busy = false;
    for (int i = 0; i < all; i++) {
        bool done = i < w->begun && w->binaries[i]->built;
        out[i] = (struct built){done, done ? w->binaries[i]->status : STATUS_INIT};
    }
    bool late = result != 0 && st->code == STATUS_TIMEOUT;
    if (result != 0 && !(late && b->beside))
        disband(crew);
    if (late)
        *st = STATUS_INIT;
    return late ? 0 : result;
}

bool builder_advance(struct builder *b)
{
    struct crew *crew = b->crew;
    struct status failed = STATUS_INIT; /* the next user of the binary meets it again */
    if (crew == NULL || crew->busy || crew->running == 0)
        return false;
    crew->busy = true;
    for (int i = crew->running - 1; i >= 0 && failed.code == STATUS_OK; i--)
        if (process_over(&crew->builds[i].compile.process))
            take(crew, i, &failed);
    if (failed.code == STATUS_OK)
        begin_more(crew, &crew->ahead, &failed);
    crew->busy = false;
    if (failed.code != STATUS_OK)
        disband(crew);
    return crew->running > 0;
}
