#include "db/db_int.h"

struct forgetting {
    struct db *db;
    const struct db_forget *what;
    db_forget_row *row;
    void *ctx;
    int64_t *studies; /* (count) owned */
    size_t count;
};

/* wanted: null agrees with all. */
static bool agrees(const char *wanted, const char *text)
{
    return wanted == NULL || strcmp(wanted, text) == 0;
}

static bool is_meant(const struct db_forget *what, const struct db_listed *l)
{
    return agrees(what->workload, l->workload.text) && agrees(what->target_kind, l->target.kind) &&
           agrees(what->init, l->workload.init) &&
           (what->seed == NULL || *what->seed == l->workload.seed) &&
           (what->older_than == NULL ||
            strtoll(l->protocol, NULL, 10) < strtoll(what->older_than, NULL, 10));
}

static int find_study(void *ctx, struct db_listed *l, struct status *st)
{
    struct forgetting *f = ctx;
    int64_t trials = l->trials;
    if (!is_meant(f->what, l))
        return 0;
    if (f->what->failed) {
        if (query_one_int_of(f->db, SQL_FAILED_COUNT, &trials, st, "%jd", l->study) < 0)
            return -1;
        if (trials == 0)
            return 0;
    }
    f->studies = mem_room(f->studies, f->count, sizeof(*f->studies));
    f->studies[f->count++] = l->study;
    f->row(f->ctx, l, trials);
    return 0;
}

/* Rows before the rows that they refer to; which statement takes the study and whether failures
 * alone are meant. */
static int forget_study(struct db *db, int64_t study, bool failed, struct status *st)
{
    static const enum db_statement trials[] = {SQL_FORGET_SAMPLES, SQL_FORGET_CHOICES,
                                               SQL_FORGET_TRIALS};
    static const enum db_statement others[] = {SQL_FORGET_FAILURES, SQL_FORGET_MODELS,
                                               SQL_FORGET_SEARCHES, SQL_FORGET_STUDY};
    for (size_t i = 0; i < ARRAY_LEN(trials); i++)
        if (query_run_of(db, trials[i], st, "%jd %d", study, failed) != 0)
            return -1;
    size_t count = failed ? 1 : ARRAY_LEN(others);
    for (size_t i = 0; i < count; i++)
        if (query_run_of(db, others[i], st, "%jd", study) != 0)
            return -1;
    return 0;
}

static int forget(struct forgetting *f, struct status *st)
{
    if (db_studies(f->db, find_study, f, st) != 0)
        return -1;
    for (size_t i = 0; i < f->count && !f->what->dry_run; i++)
        if (forget_study(f->db, f->studies[i], f->what->failed, st) != 0)
            return -1;
    if (f->what->dry_run)
        return 0;
    /* Workloads and targets of which no study is left. */
    struct query q = query_start(f->db, SQL_FORGET_WORKLOADS);
    if (query_run(&q, st) != 0)
        return -1;
    q = query_start(f->db, SQL_FORGET_TARGETS);
    return query_run(&q, st);
}

int db_forget(struct db *db, const struct db_forget *what, db_forget_row *row, void *ctx,
              struct status *st)
{
    struct forgetting f = {.db = db, .what = what, .row = row, .ctx = ctx};
    if ((what->dry_run ? db_begin_read(db, st) : db_begin_write(db, st)) != 0)
        return -1;
    int result = forget(&f, st);
    result = db_end(db, result, st);
    free(f.studies);
    return result;
}
