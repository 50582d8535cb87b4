#include "db/db_int.h"

/* Reads a row of SQL_STUDIES. */
static struct db_listed listed_of(const struct query *q)
{
    return (struct db_listed){.study = column_int(q, 0),
                              .workload = {.text = column_text(q, 1),
                                           .batch = column_int(q, 2),
                                           .seq_len = column_int(q, 3),
                                           .heads = column_int(q, 4),
                                           .head_size = column_int(q, 5),
                                           .ffn = column_int(q, 6),
                                           .layers = column_int(q, 7),
                                           .eps = column_real(q, 8),
                                           .dtype = column_text(q, 9),
                                           .lengths = column_text(q, 10),
                                           .mask = column_text(q, 11),
                                           .chain = column_text(q, 27),
                                           .seed = (uint64_t)column_int(q, 12),
                                           .init = column_text(q, 13)},
                              .target = {.kind = column_text(q, 14),
                                         .device = column_text(q, 15),
                                         .uuid = column_text(q, 16),
                                         .capability = column_text(q, 17),
                                         .units = column_int(q, 18),
                                         .driver = column_text(q, 19),
                                         .compiler = column_text(q, 20),
                                         .libraries = column_text(q, 21)},
                              .protocol = column_text(q, 22),
                              .created_utc = column_text(q, 23),
                              .trials = column_int(q, 24),
                              .plans = column_int(q, 25),
                              .stored_utc = column_text(q, 26),
                              .value = -1};
}

int db_studies(struct db *db, db_studies_row *row, void *ctx, struct status *st)
{
    struct query q = query_start(db, SQL_STUDIES);
    int found;
    while ((found = query_row(&q, st)) > 0) {
        struct db_listed l = listed_of(&q);
        if (row(ctx, &l, st) != 0) {
            found = -1;
            break;
        }
    }
    query_end(&q);
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
    struct db_best best = {.value = -1};
    int64_t trial = 0;
    int known = db_winner(to->db, l->study, &best, &trial, st);
    if (known > 0) {
        l->value = best.value;
        l->final = best.final;
        l->ms = (struct interval){best.median_ms, best.ci_low_ms, best.ci_high_ms};
    }
    db_best_release(&best);
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
