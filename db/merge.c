/* Results of other databases and of texts, of all of them or of none.  A database is read as its
 * text, so that both ways agree. */
#include "db/text_read_int.h"

#include <errno.h>
#include <string.h>

static int write_text(void *ctx, const char *text, size_t len, struct status *st)
{
    return fwrite(text, 1, len, ctx) == len
               ? 0
               : status_set(st, STATUS_ENVIRONMENT, "cannot write a temporary file: %s",
                            strerror(errno));
}

/* Opens the text of a database's results, in a file that nobody else sees. */
static int open_database(struct db *db, struct text_reader *r, const char *path, struct status *st)
{
    struct db *from;
    *r = (struct text_reader){.path = path, .database = true, .in = tmpfile()};
    if (r->in == NULL)
        return status_set(st, STATUS_ENVIRONMENT, "cannot make a temporary file: %s",
                          strerror(errno));
    int result = db_open(path, DB_READ, &from, st);
    if (result == 0)
        db_listen(from, db->listener);
    if (result == 0)
        result = db_export(from, write_text, r->in, st);
    db_close(from);
    if (result == 0 && fseek(r->in, 0, SEEK_SET) != 0)
        result = status_set(st, STATUS_ENVIRONMENT, "cannot write a temporary file: %s",
                            strerror(errno));
    return result;
}

/* What opens it reports to the listener of db. */
typedef int open_source(struct db *db, struct text_reader *r, const char *path, struct status *st);

static int move(struct db *db, open_source *open, const char *const *paths, int count,
                struct db_moved *out, struct status *st)
{
    if (db_put_begin(db, st) != 0)
        return -1;
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        struct text_reader from;
        result = open(db, &from, paths[i], st);
        if (result == 0)
            result = import_text(db, &from, &out[i], st);
        else
            text_close(&from);
    }
    return db_put_end(db, result, st);
}

static int open_text(struct db *db, struct text_reader *r, const char *path, struct status *st)
{
    (void)db;
    return text_open(r, path, st);
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
