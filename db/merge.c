/* Results of other databases and of texts, of all of them or of none.  A database is read as its
 * text, so that both ways agree. */
#include "db/text_read_int.h"

/* Opens the text of a database's results. */
static int open_database(struct db *db, struct text_reader *r, const char *path, struct status *st)
{
    SCOPED_BY(db_close_at) struct db *from = NULL;
    *r = (struct text_reader){.path = path, .database = true};
    buf_init(&r->text);
    if (db_open(path, DB_READ, &from, st) != 0)
        return -1;
    db_listen(from, db->listener);
    if (db_export(from, &r->text, st) != 0)
        return -1;
    r->bytes = (int64_t)r->text.len;
    r->in = fmemopen(r->text.ptr, r->text.len, "r");
    return r->in != NULL
               ? 0
               : status_set(st, STATUS_ENVIRONMENT, "cannot read '%s': %s", path, strerror(errno));
}

/* What opens it reports to the listener of db. */
typedef int open_source(struct db *db, struct text_reader *r, const char *path, struct status *st);

static int move(struct db *db, open_source *open, const char *const *paths, int count,
                struct db_moved *out, struct status *st)
{
    if (db_begin_write(db, st) != 0)
        return -1;
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        SCOPED_BY(text_close) struct text_reader from = {.in = NULL};
        if (count > 1)
            step_tell(&db->listener, &(struct step){"files", i, count, NAN});
        result = open(db, &from, paths[i], st);
        if (result == 0)
            result = import_text(db, &from, &out[i], st);
    }
    return db_end(db, result, st);
}

static int open_text(struct db *db, struct text_reader *r, const char *path, struct status *st)
{
    (void)db;
    return text_open(r, path, st);
}

int db_import_workload(struct db *db, const char *path, const char *workload, struct status *st)
{
    SCOPED_BY(text_close) struct text_reader from = {.in = NULL};
    struct db_moved moved;
    json_auto_t *text = json_string(workload);
    SCOPED char *dumped = json_dumps(text, JSON_ENCODE_ANY);
    if (db_begin_write(db, st) != 0)
        return -1;
    int result = text_open(&from, path, st);
    buf_addf(&from.only, "\"text\":%s", dumped);
    if (result == 0)
        result = import_text(db, &from, &moved, st);
    return db_end(db, result, st);
}

int db_import(struct db *db, const char *const *paths, int count, struct db_moved *out,
              struct status *st)
{
    return move(db, open_text, paths, count, out, st);
}

int db_merge(struct db *db, const char *const *paths, int count, struct db_moved *out,
             struct status *st)
{
    return move(db, open_database, paths, count, out, st);
}
