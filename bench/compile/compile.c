#include "bench/compile/compile.h"

#include <sys/stat.h>
#include <sys/wait.h>

enum { BINARY_MAX_BYTES = 128 << 20 }; /* a thousand times what a segment takes */

void arguments_add(struct arguments *a, const char *text)
{
    a->items = mem_resize(a->items, (size_t)a->count + 2, sizeof(*a->items));
    a->items[a->count++] = mem_strdup(text);
    a->items[a->count] = NULL;
}

void arguments_add_words(struct arguments *a, const char *words)
{
    SCOPED char *copy = mem_strdup(words);
    char *rest;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        arguments_add(a, word);
}

void arguments_text(const struct arguments *a, struct buf *out)
{
    for (int i = 0; i < a->count; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", a->items[i]);
}

void arguments_release(struct arguments *a)
{
    for (int i = 0; i < a->count; i++)
        free(a->items[i]);
    free(a->items);
    *a = (struct arguments){0};
}

static void add_all(struct arguments *to, const struct arguments *from)
{
    for (int i = 0; i < from->count; i++)
        arguments_add(to, from->items[i]);
}

int compile_start(const struct toolchain *tc, const struct cache *c, const char *text,
                  const char *headers, double limit_s, struct compile *out, struct status *st)
{
    *out = (struct compile){
        .started = clock_seconds(), .process = PROCESS_INIT, .scratch = SCRATCH_INIT};
    if (cache_scratch(c, &out->scratch, st) != 0)
        return -1;
    out->source = buf_text("%s/segment%s", out->scratch.dir, tc->source_suffix);
    out->output = buf_text("%s/segment%s", out->scratch.dir, tc->binary_suffix);
    if (cache_write(out->source, text, strlen(text), st) != 0)
        return -1;

    SCOPED_BY(arguments_release) struct arguments argv = {0};
    arguments_add(&argv, tc->path);
    add_all(&argv, &tc->flags);
    arguments_add(&argv, "-I");
    arguments_add(&argv, headers);
    arguments_add(&argv, "-o");
    arguments_add(&argv, out->output);
    arguments_add(&argv, out->source);
    add_all(&argv, &tc->libs);
    SCOPED char *tmpdir = buf_text("TMPDIR=%s", out->scratch.dir);
    SCOPED char **env = child_environment(CHILD_COMPILER, tmpdir);
    const struct process_spec spec = {.path = tc->path,
                                      .argv = (const char *const *)argv.items,
                                      .env = env,
                                      .fds = {-1, -1},
                                      .limit_s = limit_s,
                                      .niceness = tc->niceness,
                                      .max_memory_bytes = tc->max_memory_bytes,
                                      .may_leave_daemons = true};
    return process_start(&spec, &out->process, st);
}

/* Why a compiler failed, if the reason lies outside of its source: somebody killed it or a program
 * that it started, such as the system where memory ran out, or a resource was used up.  A crash of
 * its own (SIGSEGV, SIGABRT) may be the source's fault.  Points to where its output says so, to the
 * end of the output if it does not say so, or is null. */
static char *machines_fault(const struct process *p)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXCPU, SIGXFSZ};
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, EAGAIN, EIO, EROFS};
    char *said = p->said.ptr, *at;
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        if ((at = strstr(said, strerrordesc_np(errors[i]))) != NULL)
            return at;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        char number[32]; /* collect2 and nvcc write the number, gcc and clang the description */
        snprintf(number, sizeof(number), " signal %d", signals[i]);
        if ((at = strstr(said, number)) != NULL && strchr("0123456789", at[strlen(number)]) == NULL)
            return at;
        if ((at = strstr(said, sigdescr_np(signals[i]))) != NULL)
            return at;
        if (WIFSIGNALED(p->wait_status) && WTERMSIG(p->wait_status) == signals[i])
            return said + strlen(said);
    }
    return NULL;
}

/* The line at a place of the output, else (null) the first line that holds "error", else the first
 * line. */
static const char *cause(struct buf *said, char *at)
{
    if (at == NULL)
        at = strstr(said->ptr, "error");
    while (at != NULL && at > said->ptr && at[-1] != '\n')
        at--;
    if (at == NULL || *at == '\0')
        at = said->ptr;
    at[strcspn(at, "\n")] = '\0';
    return at;
}

int compile_finish(struct compile *job, const struct toolchain *tc, const struct cache *c,
                   const char *key, struct status *st)
{
    struct process *p = &job->process;
    struct stat binary;
    char size[32], most[32];
    if (p->overdue)
        return status_set(st, STATUS_TIMEOUT, "'%s' was stopped after %.0f s", tc->path,
                          clock_seconds() - job->started);
    SCOPED_BUF text = BUF_INIT;
    if (p->wait_status != 0) {
        char *machine = machines_fault(p);
        const char *said = cause(&p->said, machine);
        process_describe_end(p->wait_status, &text);
        return status_set(st, machine != NULL ? STATUS_ENVIRONMENT : STATUS_COMPILE,
                          "'%s' failed (%s)%s%s", tc->path, text.ptr, said[0] != '\0' ? ": " : "",
                          said);
    }
    if (lstat(job->output, &binary) != 0 || !S_ISREG(binary.st_mode))
        return status_set(st, STATUS_COMPILE, "'%s' ended with success but wrote no binary",
                          tc->path);
    if (binary.st_size > BINARY_MAX_BYTES)
        return status_set(st, STATUS_COMPILE, "'%s' wrote a binary of %s; %s are expected at most",
                          tc->path, number_bytes((uint64_t)binary.st_size, size),
                          number_bytes(BINARY_MAX_BYTES, most));
    if (key == NULL)
        return 0;
    /* The log first: whoever finds the binary finds its log too. */
    if (file_read(job->output, 0, &text, st) != 0 ||
        (tc->logs && cache_put(c, CACHE_LOG, key, p->said.ptr, p->said.len, st) != 0))
        return -1;
    return cache_put(c, CACHE_BINARY, key, text.ptr, text.len, st);
}

void compile_release(struct compile *job)
{
    process_release(&job->process);
    scratch_release(&job->scratch);
    free(job->source);
    free(job->output);
    *job = (struct compile){.scratch = SCRATCH_INIT, .process = PROCESS_INIT};
}

int compile_source(const struct toolchain *tc, const struct cache *c, const char *text,
                   const char *headers, const char *key, double limit_s, double until,
                   const volatile sig_atomic_t *stop, struct status *st)
{
    SCOPED_BY(compile_release) struct compile job;
    struct process *const list[] = {&job.process};
    return compile_start(tc, c, text, headers, limit_s, &job, st) != 0 ||
                   process_wait_any(list, 1, until, stop, st) < 0
               ? -1
               : compile_finish(&job, tc, c, key, st);
}

int compile_headers(const struct toolchain *tc, const struct cache *c, struct buf *dir,
                    struct status *st)
{
    const struct kernel_file *files;
    int count = kernel_files(tc->kind, &files);
    return cache_headers(c, files, count, dir, st);
}

/* Compiles the probe, and once more where the machine failed. */
static int build_probe(const struct toolchain *tc, const struct cache *c, const char *headers,
                       const char *key, double until, const volatile sig_atomic_t *stop,
                       struct status *st)
{
    enum { TRIES = 2 };
    struct status failed = STATUS_INIT;
    SCOPED_BUF suspects = BUF_INIT;
    for (int i = 0; i < TRIES && (i == 0 || failed.code == STATUS_ENVIRONMENT); i++) {
        failed = STATUS_INIT;
        if (compile_source(tc, c, tc->probe, headers, key, PROBE_LIMIT_S, until, stop, &failed) ==
            0)
            return 0;
    }
    if (failed.code == STATUS_COMPILE)
        child_suspects(CHILD_COMPILER, failed.message, &suspects);
    status_set(st, failed.code, "%s%s", failed.message, suspects.ptr);
    return failed.code != STATUS_ENVIRONMENT
               ? -1
               : status_prefix(st, "the compiler was tried twice; " MACHINE_QUESTION);
}

int compile_probe(const struct toolchain *tc, const struct cache *c,
                  const struct toolchain_request *request, char key[HASH_TEXT_SIZE],
                  struct status *st)
{
    SCOPED_BUF headers = BUF_INIT;
    if (compile_headers(tc, c, &headers, st) != 0)
        return -1;
    SCOPED char *text = buf_text("%s\n%s\n%s", tc->identity, strrchr(headers.ptr, '/'), tc->probe);
    hash_text(text, strlen(text), key);
    return !request->anew && cache_get(c, CACHE_BINARY, key, NULL, NULL)
               ? 0
               : build_probe(tc, c, headers.ptr, key, INFINITY, request->stop, st);
}

int compile_recheck(const struct toolchain *tc, const struct cache *c, double until,
                    const volatile sig_atomic_t *stop, struct status *st)
{
    struct status failed = STATUS_INIT;
    SCOPED_BUF headers = BUF_INIT;
    if (compile_headers(tc, c, &headers, &failed) == 0 &&
        build_probe(tc, c, headers.ptr, NULL, until, stop, &failed) == 0)
        return 0;
    if (failed.code == STATUS_INTERRUPTED || failed.code == STATUS_ENVIRONMENT ||
        (failed.code == STATUS_TIMEOUT && clock_seconds() >= until))
        return status_set(st, failed.code, "%s", failed.message);
    return status_set(st, STATUS_ENVIRONMENT,
                      "the compiler no longer works (is the disk full, or memory short?): %s",
                      failed.message);
}

int compiler_version(const char *path, const struct arguments *words, const char *advice,
                     const volatile sig_atomic_t *stop, struct buf *out, struct status *st)
{
    SCOPED_BY(arguments_release) struct arguments argv = {0};
    arguments_add(&argv, path);
    if (words != NULL)
        add_all(&argv, words);
    arguments_add(&argv, "--version");
    SCOPED char **env = child_environment(CHILD_COMPILER, NULL);
    const struct process_spec spec = {.path = path,
                                      .argv = (const char *const *)argv.items,
                                      .env = env,
                                      .fds = {-1, -1},
                                      .limit_s = PROBE_LIMIT_S,
                                      .answers = true,
                                      .may_leave_daemons = true};
    SCOPED_BY(process_release) struct process p;
    SCOPED_BUF suspects = BUF_INIT;
    if (process_run(&spec, stop, &p, st) != 0)
        return -1;
    buf_add(out, p.answer.ptr, p.answer.len);
    if (!p.overdue && p.wait_status == 0)
        return 0;
    bool killed = WIFSIGNALED(p.wait_status) && WTERMSIG(p.wait_status) == SIGKILL;
    const char *why = process_failure(&p);
    child_suspects(CHILD_COMPILER, why, &suspects);
    return status_set(st, STATUS_ENVIRONMENT, "'%s --version' failed (%s)%s%s; %s", path, why,
                      killed ? "" : ": not a working compiler", suspects.ptr,
                      killed ? MACHINE_QUESTION : advice);
}

void identity_add_file(const char *path, struct buf *identity)
{
    struct stat info = {0};
    stat(path, &info);
    SCOPED char *real = strchr(path, '/') != NULL ? file_absolute(path) : NULL;
    buf_addf(identity, "%s %lld %lld\n", real != NULL ? real : path, (long long)info.st_size,
             (long long)info.st_mtime);
}

void toolchain_release(struct toolchain *tc)
{
    free(tc->path);
    arguments_release(&tc->flags);
    arguments_release(&tc->libs);
    *tc = (struct toolchain){0};
}
