#include "base/threads.h"
#include "bench/compile/compile.h"
#include "bench/wire/wire.h"

#include <sys/wait.h>
#include <unistd.h>

static const char worker_name[] = "fuseplan-worker";

int worker_find(const char *option, struct buf *path, struct status *st)
{
    buf_reset(path);
    if (option != NULL) {
        buf_adds(path, option);
    } else {
        if (program_directory(path, st) != 0)
            return -1;
        size_t directory = path->len;
        buf_addf(path, "/%s", worker_name);
        if (!file_exists(path->ptr)) {
            path->len = directory;
            buf_addf(path, "/../libexec/fuseplan/%s", worker_name);
        }
    }
    if (access(path->ptr, X_OK) == 0)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT, "no worker program at '%s'; install fuseplan again",
                      path->ptr);
}

char **worker_environment(bool bound, char *preload)
{
    SCOPED char **passed = child_environment(CHILD_WORKER, preload);
    return fp_thread_environment(passed, cpu_threads(), bound);
}

static json_t *read_answer(const char *printed)
{
    static const char mark[] = "\n" WORKER_ANSWER;
    const char *line = strstr(printed, mark);
    return line != NULL ? json_loads(line + strlen(mark), JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

/* A question's process.  The caller frees env. */
static struct process_spec spec_of(const char *const argv[], char **env)
{
    return (struct process_spec){.path = argv[0],
                                 .argv = argv,
                                 .env = env,
                                 .fds = {-1, -1},
                                 .limit_s = PROBE_LIMIT_S,
                                 .answers = true};
}

int worker_ask(const struct toolchain_request *from, const char *question, const char *argument,
               bool bound, json_t **out, struct status *st)
{
    const char *const argv[] = {from->worker, question, argument, NULL};
    SCOPED char **env = worker_environment(bound, NULL);
    const struct process_spec spec = spec_of(argv, env);
    SCOPED_BY(process_release) struct process p;
    *out = NULL;
    if (process_run(&spec, from->stop, &p, st) != 0)
        return -1;
    if (!p.overdue && p.wait_status == 0)
        *out = read_answer(p.answer.ptr);
    if (*out != NULL)
        return 0;
    bool killed = WIFSIGNALED(p.wait_status) &&
                  (WTERMSIG(p.wait_status) == SIGKILL || WTERMSIG(p.wait_status) == SIGTERM);
    const char *why = process_failure(&p);
    SCOPED_BUF suspects = BUF_INIT;
    child_suspects(CHILD_WORKER, why, &suspects);
    return status_set(st, p.overdue || killed ? STATUS_ENVIRONMENT : STATUS_NOT_FOUND,
                      "it gave no answer (%s)%s", why, suspects.ptr);
}

void worker_ask_early(const struct toolchain_request *from, const char *question,
                      struct process *out)
{
    const char *const argv[] = {from->worker, question, NULL};
    SCOPED char **env = worker_environment(false, NULL);
    const struct process_spec spec = spec_of(argv, env);
    process_start(&spec, out, STATUS_IGNORED); /* worker_answer() asks again */
}

int worker_answer(const struct toolchain_request *from, const char *question, struct process *asked,
                  json_t **out, struct status *st)
{
    struct process *const list[] = {asked};
    *out = NULL;
    if (asked->pid > 0 && process_wait_any(list, 1, INFINITY, from->stop, STATUS_IGNORED) == 0 &&
        !asked->overdue && asked->wait_status == 0)
        *out = read_answer(asked->answer.ptr);
    process_release(asked);
    return *out != NULL ? 0 : worker_ask(from, question, NULL, false, out, st);
}
