#include "bench/compile/compile.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char worker_name[] = "fuseplan-worker";

int worker_find(const char *option, struct buf *path, struct status *st)
{
    buf_reset(path);
    if (option != NULL) {
        buf_adds(path, option);
    } else {
        char self[4096];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n < 0)
            return status_set(st, STATUS_ENVIRONMENT,
                              "cannot find the directory of this program: %s", strerror(errno));
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        buf_addf(path, "%s/%s", self, worker_name);
        if (!file_exists(path->ptr)) {
            buf_reset(path);
            buf_addf(path, "%s/../libexec/fuseplan/%s", self, worker_name);
        }
    }
    if (access(path->ptr, X_OK) == 0)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT, "no worker program at '%s'; install fuseplan again",
                      path->ptr);
}

int worker_ask(const struct toolchain_request *from, const char *question, const char *argument,
               json_t **out, struct status *st)
{
    const char *const argv[] = {from->worker, question, argument, NULL};
    const struct process_spec spec = {
        .path = from->worker, .argv = argv, .fds = {-1, -1}, .limit_s = PROBE_LIMIT_S};
    struct process p;
    *out = NULL;
    if (process_run(&spec, from->stop, &p, st) != 0)
        return -1;
    if (!p.overdue && p.wait_status == 0)
        *out = json_loads(p.said.ptr, JSON_DISABLE_EOF_CHECK, NULL);
    bool killed = WIFSIGNALED(p.wait_status) &&
                  (WTERMSIG(p.wait_status) == SIGKILL || WTERMSIG(p.wait_status) == SIGTERM);
    if (*out == NULL)
        status_set(st, p.overdue || killed ? STATUS_ENVIRONMENT : STATUS_NOT_FOUND,
                   "it failed (%s)", process_failure(&p));
    process_release(&p);
    return *out != NULL ? 0 : -1;
}
