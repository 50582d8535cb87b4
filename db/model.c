#include "db/db_int.h"

int db_model_put(struct db *db, int64_t study, const struct db_model *m, struct status *st)
{
    if (db_begin_write(db, st) != 0)
        return -1;
    char now[CLOCK_UTC_SIZE];
    struct query q = query_start(db, SQL_MODEL_PUT);
    query_int(&q, study);
    query_text(&q, m->name);
    query_text(&q, m->kind);
    query_int(&q, m->features_version);
    query_text(&q, m->data_hash);
    query_int(&q, (int64_t)m->seed);
    query_real(&q, m->quantile);
    query_real(&q, m->threshold_ms);
    query_blob(&q, m->bytes, m->len);
    query_text(&q, m->report);
    query_text(&q, clock_utc(now));
    return db_end(db, query_run(&q, st), st);
}

int db_model_get(struct db *db, int64_t study, const char *name, const char *kind,
                 db_model_row *row, void *ctx, struct status *st)
{
    struct query q = query_start(db, SQL_MODEL_GET);
    query_int(&q, study);
    query_text(&q, name);
    query_text(&q, kind);
    int found = query_row(&q, st);
    if (found > 0) {
        const void *bytes = sqlite3_column_blob(q.stmt, 5); /* null if its length is 0 */
        struct db_model m = {.name = name,
                             .kind = kind,
                             .features_version = column_int(&q, 0),
                             .data_hash = column_text(&q, 1),
                             .seed = (uint64_t)column_int(&q, 2),
                             .quantile = column_real(&q, 3),
                             .threshold_ms = column_real(&q, 4),
                             .bytes = bytes != NULL ? bytes : "",
                             .len = (size_t)sqlite3_column_bytes(q.stmt, 5),
                             .report = column_text(&q, 6)};
        row(ctx, &m);
    }
    query_end(&q);
    if (found == 0)
        return status_set(st, STATUS_NOT_FOUND, "there is no %s model '%s' in '%s'", kind, name,
                          db_path(db));
    return found < 0 ? -1 : 0;
}
