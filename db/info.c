#include "db/db_int.h"

int db_info(struct db *db, struct db_info *out, struct status *st)
{
    *out = (struct db_info){0};
    SCOPED_QUERY q = query_start(db, SQL_INFO);
    int found = query_row(&q, st);
    if (found > 0)
        *out = (struct db_info){.schema_version = column_int(&q, 0),
                                .bytes = column_int(&q, 1),
                                .studies = column_int(&q, 2),
                                .workloads = column_int(&q, 3),
                                .targets = column_int(&q, 4),
                                .trials = column_int(&q, 5),
                                .samples = column_int(&q, 6),
                                .models = column_int(&q, 7),
                                .searches = column_int(&q, 8)};
    return found < 0 ? -1 : 0;
}
