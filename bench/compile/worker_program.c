#include "bench/compile/compile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
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
            return status_set(st, STATUS_ENVIRONMENT, "cannot tell where this program lies: %s",
                              strerror(errno));
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
    struct buf end;
    buf_init(&end);
    process_describe_end(p.wait_status, &end);
    if (p.overdue)
        status_set(st, STATUS_ENVIRONMENT, "it was stopped after %d s", PROBE_LIMIT_S);
    else if (p.wait_status != 0)
        status_set(st, STATUS_ENVIRONMENT, "it ended with %s", end.ptr);
    else if ((*out = json_loads(p.said.ptr, JSON_DISABLE_EOF_CHECK, NULL)) == NULL)
        status_set(st, STATUS_ENVIRONMENT, "it said '%.*s'", (int)strcspn(p.said.ptr, "\n"),
                   p.said.ptr);
    buf_release(&end);
    process_release(&p);
    return *out != NULL ? 0 : -1;
}
