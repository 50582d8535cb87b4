#include "db/db_int.h"

static int make_id(struct db *db, char id[HASH_TEXT_SIZE], struct status *st)
{
    SCOPED_QUERY q = query_start(db, SQL_SEARCH_ID);
    int row = query_row(&q, st);
    if (row > 0)
        snprintf(id, HASH_TEXT_SIZE, "%s", column_text(&q, 0));
    return row < 0 ? -1 : 0;
}

int db_search_start(struct db *db, int64_t study, const char *strategy, const char *options_json,
                    char id[HASH_TEXT_SIZE], struct status *st)
{
    id[0] = '\0';
    if (make_id(db, id, st) != 0 || db_begin_write(db, st) != 0)
        goto failed;
    char now[CLOCK_UTC_SIZE];
    int result = query_run_of(db, SQL_SEARCH_ADD, st, "%s %jd %s %s %s", id, study, strategy,
                              options_json, clock_utc(now));
    if (db_end(db, result, st) == 0)
        return 0;
failed:
    id[0] = '\0';
    return -1;
}

int db_search_end(struct db *db, const char *id, const char *stopped_by, struct status *st)
{
    if (db_begin_write(db, st) != 0)
        return -1;
    char now[CLOCK_UTC_SIZE];
    int result = query_run_of(db, SQL_SEARCH_END, st, "%s %s %s", stopped_by, clock_utc(now), id);
    if (result == 0 && sqlite3_changes(db->handle) == 0)
        result =
            status_set(st, STATUS_NOT_FOUND, "there is no search '%s' in '%s'", id, db_path(db));
    return db_end(db, result, st);
}

struct db_search db_search_of(const struct query *q)
{
    return (struct db_search){column_text(q, 0), column_text(q, 1), column_text(q, 2),
                              column_text(q, 3), column_text(q, 4), column_text(q, 5)};
}

int db_searches(struct db *db, int64_t study, db_search_row *row, void *ctx, struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_SEARCHES, "%jd", study);
    int found;
    while ((found = query_row(&q, st)) > 0) {
        const struct db_search s = db_search_of(&q);
        row(ctx, &s);
    }
    return found;
}
