#include "cmd/db_int.h"

#include <stdlib.h>

static const struct column space_columns[] = {
    {"path", NULL, 0}, {"bytes", NULL, 0}, {"plans", NULL, 0}, {"best", NULL, 0}};

static int pack_space(const struct options *o, const struct session *s, struct buf *bytes,
                      struct status *st)
{
    json_t *object = workload_json(&s->workload, s->target.kind);
    char *workload = json_dumps(object, JSON_COMPACT);
    int result = space_export(s->db, s->study, s->target.kind, workload, o->space[0], o->space[1],
                              bytes, st);
    free(workload);
    json_decref(object);
    return result;
}

/* Prints what the bytes give when they are read back. */
int db_export_space_run(const struct options *o, struct session *s, struct status *st)
{
    struct buf bytes;
    struct recorded_space *space = mem_alloc(1, sizeof(*space));
    int code = -1;
    buf_init(&bytes);
    if (file_check_writable("--output", o->output, st) == 0 && pack_space(o, s, &bytes, st) == 0 &&
        recorded_space_unpack(&bytes, space, st) == 0 &&
        file_write(o->output, bytes.ptr, bytes.len, st) == 0) {
        note(o, "measured on %s until %s", space->target.device, space->measured_utc);
        db_print_object(o, space_columns, ARRAY_LEN(space_columns),
                        json_pack("{so sI si si}", "path", json_text(o->output), "bytes",
                                  (json_int_t)bytes.len, "plans", space->count, "best",
                                  (int)plan_value(space->plans[space->best])));
        code = EXIT_SUCCESS;
    }
    recorded_space_release(space);
    buf_release(&bytes);
    free(space);
    return code;
}

int db_import_space_run(const struct options *o, struct session *s, struct status *st)
{
    const char *const *path = o->operands + 1;
    struct recorded_space *space = mem_alloc(1, sizeof(*space));
    struct db_moved moved;
    int code = -1;
    int read = recorded_space_read(*path, space, st);
    if (read == 0 && space_import(space, o->db, &s->db, &moved, st) == 0) {
        note(o, "measured on %s until %s", space->target.device, space->measured_utc);
        db_print_moved(o, path, &moved, 1);
        code = EXIT_SUCCESS;
    } else if (read == 0) {
        status_prefix(st, "'%s'", *path);
    }
    if (read == 0)
        recorded_space_release(space);
    free(space);
    return code;
}
