#include "db/db_int.h"

int db_model_put(struct db *db, int64_t study, const struct db_model *m, struct status *st)
{
    if (db_begin_write(db, st) != 0)
        return -1;
    char now[CLOCK_UTC_SIZE];
    struct query q = query_of(db, SQL_MODEL_PUT, "%jd %s %jd %g %s %s", study, m->name,
                              (int64_t)m->seed, m->quantile, m->report, clock_utc(now));
    query_bytes(&q, m->rows);
    return db_end(db, query_run(&q, st), st);
}

int db_model_get(struct db *db, int64_t study, const char *name, struct buf *texts,
                 struct db_model *out, struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_MODEL_GET, "%jd %s", study, name);
    int found = query_row(&q, st);
    if (found > 0) {
        const char *rows = column_text(&q, 2), *report = column_text(&q, 3);
        buf_reset(texts);
        buf_add(texts, rows, strlen(rows) + 1);
        buf_adds(texts, report);
        *out = (struct db_model){.name = name,
                                 .seed = (uint64_t)column_int(&q, 0),
                                 .quantile = column_real(&q, 1),
                                 .rows = texts->ptr,
                                 .report = texts->ptr + strlen(texts->ptr) + 1};
    }
    if (found == 0)
        return status_set(st, STATUS_NOT_FOUND, "there is no model '%s' in '%s'", name,
                          db_path(db));
    return found < 0 ? -1 : 0;
}
