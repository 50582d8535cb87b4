/* Runs a plan or a segment once; the worker writes its tensors as .npy. */
#include "bench/bench_int.h"

#include <float.h>

/* What the arrays do not say: the number of heads, eps, lengths. */
static int write_workload(const struct bench *b, const char *dir, struct status *st)
{
    json_auto_t *object = workload_json(&b->w, b->target.kind);
    SCOPED char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(DBL_DIG));
    SCOPED char *path = buf_text("%s/workload.json", dir);
    SCOPED char *whole = buf_text("%s\n", text);
    return file_write(path, whole, strlen(whole), st);
}

/* A worker that may write there takes the place of the one that runs; on a GPU each may. */
static int dump_to(struct bench *b, struct runnable what, const char *dir, bool whole,
                   struct status *st)
{
    json_auto_t *reply = NULL;
    bool confined = b->target.kind == TARGET_CPU;
    if (confined)
        client_stop(&b->client);
    b->writable = dir;
    int result = run_request(b, what, LOCK_TO_RUN,
                             json_pack("{s:s, s:s, s:b}", "do", "dump", "dir", dir, "whole", whole),
                             &reply, st);
    b->writable = NULL;
    if (confined)
        client_stop(&b->client);
    return result;
}

static int dump(struct bench *b, struct runnable what, const char *dir, bool replace, bool whole,
                struct status *st)
{
    SCOPED_BY(fresh_dir_release) struct fresh_dir s;
    if (fresh_dir_open(dir, &s, st) != 0)
        return -1;
    if (!utf8_is_valid(s.staging.dir)) /* the worker gets it in JSON */
        return status_set(st, STATUS_ENVIRONMENT, "the path of '%s' is not UTF-8; name another",
                          dir);
    if (dump_to(b, what, s.staging.dir, whole, st) != 0 ||
        (whole && write_workload(b, s.staging.dir, st) != 0))
        return -1;
    return fresh_dir_commit(&s, replace, st);
}

int bench_dump(struct bench *b, const struct candidate *c, const char *dir, bool replace,
               struct status *st)
{
    return dump(b, runnable_of(c), dir, replace, true, st);
}

int bench_dump_flow(struct bench *b, const struct candidate *c, const char *dir, struct status *st)
{
    return dump(b, runnable_of(c), dir, false, false, st);
}

int bench_dump_segment(struct bench *b, const struct choice *c, const char *dir, bool replace,
                       struct status *st)
{
    return dump(b, (struct runnable){.choices = c, .count = 1, .alone = true}, dir, replace, true,
                st);
}
