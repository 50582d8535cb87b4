#include "db/db_int.h"

int db_model_put(struct db *db, const struct db_model *m, const char *report, struct status *st)
{
    if (db_begin_write(db, st) != 0)
        return -1;
    char now[CLOCK_UTC_SIZE];
    struct query q = query_of(db, SQL_MODEL_PUT, "%s %jd %g %s %s", m->name, (int64_t)m->seed,
                              m->quantile, report, clock_utc(now));
    query_bytes(&q, m->rows);
    return db_end(db, query_run(&q, st), st);
}

int db_model_get(struct db *db, const char *name, struct buf *rows, struct db_model *out,
                 struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_MODEL_GET, "%s", name);
    int found = query_row(&q, st);
    if (found > 0) {
        buf_reset(rows);
        buf_adds(rows, column_text(&q, 2));
        *out = (struct db_model){.name = name,
                                 .seed = (uint64_t)column_int(&q, 0),
                                 .quantile = column_real(&q, 1),
                                 .rows = rows->ptr};
    }
    if (found == 0)
        return status_set(st, STATUS_NOT_FOUND, "there is no model '%s' in '%s'", name,
                          db_path(db));
    return found < 0 ? -1 : 0;
}
