#include "db/text_int.h"

/* Reads a row of SQL_STUDIES. */
static struct db_listed listed_of(const struct query *q)
{
    enum { WORKLOAD = 1, INPUTS = 13, TARGET = 15, STUDY = 23, COUNTS = 25 }; /* columns */
    struct db_listed l = {.study = column_int(q, 0),
                          .trials = column_int(q, COUNTS),
                          .plans = column_int(q, COUNTS + 1),
                          .stored_utc = column_text(q, COUNTS + 2),
                          .value = -1,
                          .ms = NO_INTERVAL};
    text_fields_read(q, WORKLOAD, &text_workload, &l.workload);
    text_fields_read(q, INPUTS, &text_inputs, &l.workload);
    text_fields_read(q, TARGET, &text_target, &l.target);
    text_fields_read(q, STUDY, &text_study, &l);
    return l;
}

int db_studies(struct db *db, db_studies_row *row, void *ctx, struct status *st)
{
    SCOPED_QUERY q = query_start(db, SQL_STUDIES);
    int found;
    while ((found = query_row(&q, st)) > 0) {
        struct db_listed l = listed_of(&q);
        if (row(ctx, &l, st) != 0)
            return -1;
    }
    return found;
}

struct listing {
    struct db *db;
    db_list_row *row;
    void *ctx;
};

static int list_study(void *ctx, struct db_listed *l, struct status *st)
{
    const struct listing *to = ctx;
    SCOPED_BY(db_best_release) struct db_best best = {.value = -1};
    int64_t trial = 0;
    int known = db_winner(to->db, l->study, &best, &trial, st);
    if (known > 0) {
        l->value = best.value;
        l->final = best.final;
        l->ms = best.ms;
    }
    if (known >= 0)
        to->row(to->ctx, l);
    return known < 0 ? -1 : 0;
}

int db_list(struct db *db, db_list_row *row, void *ctx, struct status *st)
{
    struct listing to = {db, row, ctx};
    if (db_begin_read(db, st) != 0) /* all reads see one snapshot */
        return -1;
    return db_end(db, db_studies(db, list_study, &to, st), st);
}
