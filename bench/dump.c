/* Runs a plan once; the worker writes its tensors as .npy. */
#include "bench/bench_int.h"

int bench_dump(struct bench *b, const struct candidate *c, const char *dir, bool replace,
               struct status *st)
{
    struct fresh_dir s;
    json_t *reply = NULL;
    int result = -1;
    if (fresh_dir_open(dir, &s, st) != 0)
        return -1;
    if (!utf8_is_valid(s.at)) /* the worker gets it in JSON */
        status_set(st, STATUS_ENVIRONMENT, "the path of '%s' is not UTF-8; name another", dir);
    else
        result = run_request(b, c, LOCK_TO_RUN, json_pack("{s:s, s:s}", "do", "dump", "dir", s.at),
                             &reply, st);
    if (result == 0)
        result = fresh_dir_commit(&s, replace, st);
    json_decref(reply);
    fresh_dir_release(&s);
    return result;
}
