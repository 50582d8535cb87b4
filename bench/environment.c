#include "bench/bench_int.h"

void env_add(struct env_list *list, const char *subject, bool required, int state,
             const char *advice, const char *found, ...)
{
    va_list args;
    char line[1200];
    va_start(args, found);
    vsnprintf(line, sizeof(line), found, args);
    va_end(args);
    list->rows = mem_resize(list->rows, (size_t)list->count + 1, sizeof(*list->rows));
    list->rows[list->count++] =
        (struct env_check){.subject = mem_strdup(subject),
                           .found = mem_strdup(utf8_mend(line)),
                           .advice = mem_strdup(state != ENV_OK ? advice : ""),
                           .state = state,
                           .required = required};
}

static void check_cache(const struct cache *c, const struct status *problem, struct env_list *out)
{
    char used[32], bound[32];
    if (c == NULL)
        env_add(out, "cache", true, ENV_MISSING, "set FUSEPLAN_CACHE to a directory of yours", "%s",
                problem->message);
    else
        env_add(
            out, "cache", true, file_may_run(c->dir) ? ENV_OK : ENV_WARNING,
            "what is compiled for the CPU cannot be run on a file system that is mounted noexec: "
            "set FUSEPLAN_CACHE to a directory on another one",
            "%s, %s of %s%s", c->dir, number_bytes(cache_bytes(c), used),
            number_bytes(c->max_bytes, bound), file_may_run(c->dir) ? "" : ", mounted noexec");
}

static void check_memory(struct env_list *out)
{
    char text[32];
    uint64_t have = mem_available_bytes();
    env_add(out, "memory", false, ENV_OK, "", "%s available",
            have < UINT64_MAX ? number_bytes(have, text) : "unknown amount");
}

#define MAKE_ADVICE "install it: apt install make"

int env_find_make(struct buf *path, struct status *st)
{
    return process_find("make", path)
               ? 0
               : status_set(st, STATUS_ENVIRONMENT,
                            "make, which builds libraries, is not on PATH; " MAKE_ADVICE);
}

static void check_make(struct env_list *out)
{
    SCOPED_BUF path = BUF_INIT;
    struct status st = STATUS_INIT;
    bool found = env_find_make(&path, &st) == 0;
    env_add(out, "make", false, found ? ENV_OK : ENV_MISSING, MAKE_ADVICE, "%s",
            found ? path.ptr : st.message);
}

static void check_target(enum target_kind kind, const char *worker, const struct cache *c,
                         struct env_list *out)
{
    struct status st = STATUS_INIT;
    SCOPED_BY(toolchain_release) struct toolchain tc = {0};
    const struct target_ops *target = target_ops_of(kind, &st);
    SCOPED char *subject = buf_text("target %s", target_names[kind]);
    if (target == NULL) {
        env_add(out, subject, false, ENV_MISSING, "", "not in this build");
    } else {
        const struct toolchain_request request = {.worker = worker, .anew = true};
        bool works = worker != NULL && c != NULL && target->toolchain(&request, c, &tc, &st) == 0;
        if (st.code == STATUS_OK && !works)
            status_set(&st, STATUS_ENVIRONMENT, "not tried: the worker or the cache is missing");
        target->checks(works ? &tc : NULL, &st, out);
        env_add(out, subject, kind == TARGET_CPU, works ? ENV_OK : ENV_MISSING, "", "%s",
                works ? "builds and runs code" : "not usable");
    }
}

void env_check_all(struct env_list *out)
{
    *out = (struct env_list){0};
    struct status cache_problem = STATUS_INIT, worker_problem = STATUS_INIT;
    SCOPED_BY(cache_release) struct cache cache;
    SCOPED_BUF worker = BUF_INIT;
    bool have_cache = cache_open(NULL, &cache, &cache_problem) == 0;
    bool have_worker = worker_find(NULL, &worker, &worker_problem) == 0;
    env_add(out, "worker", true, have_worker ? ENV_OK : ENV_MISSING, "install fuseplan again", "%s",
            have_worker ? worker.ptr : worker_problem.message);
    check_cache(have_cache ? &cache : NULL, &cache_problem, out);
    check_memory(out);
    check_make(out);
    for (int kind = 0; kind < TARGET_COUNT; kind++)
        check_target((enum target_kind)kind, have_worker ? worker.ptr : NULL,
                     have_cache ? &cache : NULL, out);
}

void env_check_noise(struct target_name target, struct env_list *out)
{
    const struct target_ops *of = target_ops_of(target.kind, STATUS_IGNORED);
    *out = (struct env_list){0};
    if (of != NULL && of->noise != NULL)
        of->noise(out);
}

void env_list_release(struct env_list *list)
{
    for (int i = 0; i < list->count; i++) {
        free(list->rows[i].subject);
        free(list->rows[i].found);
        free(list->rows[i].advice);
    }
    free(list->rows);
}
