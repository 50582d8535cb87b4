#include "db/text_int.h"

struct db_workload db_workload_of(const struct workload *w, struct buf *text)
{
    /* Four texts in one buffer, each ended by a NUL.  It moves while it grows. */
    size_t key = text->len;
    workload_text(w, text);
    buf_add(text, "", 1);
    size_t lengths = text->len;
    lengths_text(w, text);
    buf_add(text, "", 1);
    size_t mask = text->len;
    mask_text(&w->mask_spec, text);
    buf_add(text, "", 1);
    size_t chain = text->len;
    chain_text(w, text);
    return (struct db_workload){.text = text->ptr + key,
                                .batch = w->batch,
                                .seq_len = w->seq_len,
                                .heads = w->heads,
                                .head_size = w->head_size,
                                .ffn = w->ffn,
                                .layers = w->layers,
                                .eps = w->eps,
                                .dtype = dtypes[w->dtype].name,
                                .lengths = text->ptr + lengths,
                                .mask = text->ptr + mask,
                                .chain = text->ptr + chain};
}

/* Adds what a table describes, or finds it; 1 or -1. */
static int add(struct db *db, enum db_statement statement, const struct text_table *t,
               const void *object, int64_t *id, struct status *st)
{
    struct query q = query_start(db, statement);
    text_fields_bind(&q, t, object);
    return query_one_int(&q, id, st);
}

int db_study_put(struct db *db, const struct db_workload *w, const struct db_target *t,
                 const char *protocol, const char *created_utc, int64_t *study, struct status *st)
{
    int64_t workload = 0, target = 0;
    if (add(db, SQL_WORKLOAD_ADD, &text_workload, w, &workload, st) < 0 ||
        add(db, SQL_TARGET_ADD, &text_target, t, &target, st) < 0)
        return -1;
    struct query q =
        query_of(db, SQL_STUDY_ADD, "%jd %jd %s %s", workload, target, protocol, created_utc);
    text_fields_bind(&q, &text_inputs, w);
    return query_one_int(&q, study, st) < 0 ? -1 : 0;
}

int db_study(struct db *db, const struct db_workload *w, const struct db_target *t,
             const char *protocol, int64_t *study, struct status *st)
{
    char now[CLOCK_UTC_SIZE];
    *study = 0;
    if (db_begin_write(db, st) != 0)
        return -1;
    return db_end(db, db_study_put(db, w, t, protocol, clock_utc(now), study, st), st);
}

int db_study_find(struct db *db, const char *workload_text, const char *target_kind,
                  const struct db_study *near, int64_t *study, struct status *st)
{
    static const struct db_study any = {
        /* no stored study has these parts */
        .target = {.device = "", .uuid = "", .capability = "", .driver = ""},
        .protocol = "",
        .init = ""};
    const struct db_study *n = near != NULL ? near : &any;
    *study = 0;
    struct query q = query_of(db, SQL_STUDY_NEAREST, "%s %s %s %s %s %jd %s %s %s", workload_text,
                              target_kind, n->target.device, n->target.uuid, n->target.capability,
                              n->target.units, n->target.driver, n->protocol, n->init);
    if (near != NULL)
        query_int(&q, (int64_t)n->seed);
    else
        query_null(&q);
    int found = query_one_int(&q, study, st);
    if (found == 0)
        return status_set(st, STATUS_NOT_FOUND, "nothing is stored in '%s' for %s on %s",
                          db_path(db), workload_text, target_kind);
    return found < 0 ? -1 : 0;
}

/* Takes copies of a study's texts. */
static void keep_texts(struct db_study *s, struct buf *texts)
{
    struct db_target *t = &s->target;
    const char **const all[] = {&t->kind,   &t->device,   &t->uuid,      &t->capability,
                                &t->driver, &t->compiler, &t->libraries, &s->protocol,
                                &s->init,   &s->mask};
    buf_reset(texts);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_add(texts, *all[i], strlen(*all[i]) + 1);
    const char *at = texts->ptr;
    for (size_t i = 0; i < ARRAY_LEN(all); i++, at += strlen(at) + 1)
        *all[i] = at;
}

int db_study_read(struct db *db, int64_t study, struct buf *texts, struct db_study *out,
                  struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_STUDY_READ, "%jd", study);
    int found = query_row(&q, st);
    if (found > 0) {
        *out = (struct db_study){.protocol = column_text(&q, 8),
                                 .init = column_text(&q, 9),
                                 .seed = (uint64_t)column_int(&q, 10),
                                 .mask = column_text(&q, 11)};
        text_fields_read(&q, 0, &text_target, &out->target);
        keep_texts(out, texts);
    }
    if (found == 0)
        return status_set(st, STATUS_NOT_FOUND, "there is no study %lld in '%s'", (long long)study,
                          db_path(db));
    return found < 0 ? -1 : 0;
}

int db_studies_beside(struct db *db, int64_t study, db_study_beside *row, void *ctx,
                      struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_STUDIES_BESIDE, "%jd", study);
    int found;
    while ((found = query_row(&q, st)) > 0)
        row(ctx, column_int(&q, 0), column_text(&q, 1));
    return found;
}

int db_workloads(struct db *db, db_workload_row *row, void *ctx, struct status *st)
{
    SCOPED_QUERY q = query_start(db, SQL_WORKLOADS);
    int found;
    while ((found = query_row(&q, st)) > 0) {
        struct db_workload w = {.text = NULL};
        text_fields_read(&q, 0, &text_workload, &w);
        row(ctx, &w, column_text(&q, 12));
    }
    return found;
}
