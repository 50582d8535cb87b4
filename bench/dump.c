/* Runs a plan once; the worker writes its tensors as .npy. */
#include "bench/bench_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The tensors go to `fresh`, beside dir, which gets the name of dir once all are written. */
static int dump_beside(struct bench *b, const struct candidate *c, const char *fresh,
                       const char *dir, struct status *st)
{
    if (file_make_dirs(fresh, st) != 0)
        return -1;
    json_t *reply = NULL;
    char *whole = realpath(fresh, NULL); /* the worker may run in another directory */
    int result = 0;
    if (whole == NULL)
        whole = mem_strdup(fresh);
    if (!utf8_is_valid(whole)) /* the worker gets it in JSON */
        result = status_set(st, STATUS_ENVIRONMENT, "the name of '%s' is not UTF-8; name another",
                            whole);
    if (result == 0)
        result = run_request(b, c, LOCK_TO_RUN, json_pack("{s:s, s:s}", "do", "dump", "dir", whole),
                             &reply, st);
    json_decref(reply);
    free(whole);
    if (result == 0 && rename(fresh, dir) != 0)
        result = status_set(st, STATUS_ENVIRONMENT, "cannot create '%s': %s; name a new directory",
                            dir, strerror(errno));
    struct status ignored = STATUS_INIT;
    if (result != 0)
        file_remove_all(fresh, &ignored);
    return result;
}

int bench_dump(struct bench *b, const struct candidate *c, const char *dir, struct status *st)
{
    struct buf fresh;
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/')
        len--;
    buf_init(&fresh);
    buf_addf(&fresh, "%.*s.%ld.new", (int)len, dir, (long)getpid());
    int result = dump_beside(b, c, fresh.ptr, dir, st);
    buf_release(&fresh);
    return result;
}
