#include "db/db_int.h"

#include <stdio.h>

int db_search_start(struct db *db, int64_t study, const char *strategy, const char *options_json,
                    char id[HASH_TEXT_SIZE], struct status *st)
{
    id[0] = '\0';
    if (db_begin_write(db, st) != 0)
        return -1;
    char now[CLOCK_UTC_SIZE];
    struct query q = query_start(db, SQL_SEARCH_ADD);
    query_int(&q, study);
    query_text(&q, strategy);
    query_text(&q, options_json);
    query_text(&q, clock_utc(now));
    int row = query_row(&q, st);
    if (row > 0) {
        snprintf(id, HASH_TEXT_SIZE, "%s", column_text(&q, 0));
        row = query_row(&q, st);
    }
    query_end(&q);
    int result = db_end(db, row, st);
    if (result != 0)
        id[0] = '\0';
    return result;
}

int db_search_end(struct db *db, const char *id, const char *stopped_by, struct status *st)
{
    if (db_begin_write(db, st) != 0)
        return -1;
    char now[CLOCK_UTC_SIZE];
    struct query q = query_start(db, SQL_SEARCH_END);
    query_text(&q, stopped_by);
    query_text(&q, clock_utc(now));
    query_text(&q, id);
    int result = query_run(&q, st);
    if (result == 0 && sqlite3_changes(db->handle) == 0)
        result =
            status_set(st, STATUS_NOT_FOUND, "there is no search '%s' in '%s'", id, db_path(db));
    return db_end(db, result, st);
}
