#include "db/db_int.h"

static void replace_text(char **text, const char *with)
{
    free(*text);
    *text = mem_strdup(with);
}

/* Reads a row of SQL_BEST_FINAL or SQL_BEST_PLAN. */
static void keep_winner(const struct query *q, bool final, struct db_best *out, int64_t *trial)
{
    *trial = column_int(q, 0);
    out->value = (int)column_int(q, 1);
    out->precision = (unsigned)q->db->precision;
    out->final = final;
    out->ms = (struct interval){column_real(q, 2), column_real(q, 3), column_real(q, 4)};
    replace_text(&out->comparison, column_text(q, 5));
    replace_text(&out->search_options, column_text(q, 6));
    snprintf(out->measured_utc, sizeof(out->measured_utc), "%s", column_text(q, 7));
    replace_text(&out->device, column_text(q, 8));
}

static int read_samples(struct db *db, int64_t trial, double **out, int *count, struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_SAMPLES, "%jd", trial);
    int found;
    *out = NULL;
    *count = 0;
    while ((found = query_row(&q, st)) > 0) {
        *out = mem_room(*out, (size_t)*count, sizeof(**out));
        (*out)[(*count)++] = column_real(&q, 0);
    }
    return found < 0 ? -1 : 0;
}

/* Puts the final that ties with the fastest, `*trial`, and whose plan has the largest value, in
 * its place. */
static int prefer_tie(struct db *db, int64_t study, const struct db_best *fastest, int64_t *trial,
                      struct status *st)
{
    SCOPED double *least = NULL;
    int rounds;
    if (read_samples(db, *trial, &least, &rounds, st) != 0)
        return -1;
    SCOPED_QUERY q = query_of(db, SQL_FINALS_ABOVE, "%jd %d %s %d", study, db->precision,
                              fastest->comparison, fastest->value);
    int found;
    for (bool ties = false; !ties && (found = query_row(&q, st)) > 0;) {
        SCOPED double *other = NULL;
        int count;
        if (read_samples(db, column_int(&q, 0), &other, &count, st) != 0)
            return -1;
        count = count < rounds ? count : rounds;
        ties = count > 0 && stats_median_ratio(other, least, (size_t)count).median <= 1 + DB_TIE;
        if (ties)
            *trial = column_int(&q, 0);
    }
    return found < 0 ? -1 : 0;
}

/* Of the newest comparison the final `only`, or the fastest (0); *own_ms: in its search. */
static int read_final(struct db *db, int64_t study, int64_t only, struct db_best *out,
                      int64_t *trial, double *own_ms, struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_BEST_FINAL, "%jd %d %jd", study, db->precision, only);
    int found = query_row(&q, st);
    if (found > 0) {
        keep_winner(&q, true, out, trial);
        *own_ms = column_real(&q, 9);
        out->packed = column_int(&q, 10) != 0;
    }
    return found;
}

static int final_winner(struct db *db, int64_t study, struct db_best *out, int64_t *trial,
                        double *own_ms, struct status *st)
{
    int found = read_final(db, study, 0, out, trial, own_ms, st);
    const int64_t fastest = *trial;
    double its_ms = INFINITY;
    if (found <= 0 || prefer_tie(db, study, out, trial, st) != 0)
        return found > 0 ? -1 : found;
    if (*trial != fastest && read_final(db, study, *trial, out, trial, &its_ms, st) < 0)
        return -1;
    *own_ms = fmin(*own_ms, its_ms); /* what is stored later has to beat both */
    return found;
}

int db_winner(struct db *db, int64_t study, struct db_best *out, int64_t *trial, struct status *st)
{
    double own_ms = INFINITY;
    char utc[CLOCK_UTC_SIZE] = "";
    int final = final_winner(db, study, out, trial, &own_ms, st);
    if (final < 0)
        return -1;
    if (final > 0)
        snprintf(utc, sizeof(utc), "%s", out->measured_utc);

    SCOPED_QUERY q =
        query_of(db, SQL_BEST_PLAN, "%jd %d %s %jd %g", study, db->precision, utc, *trial, own_ms);
    int later = query_row(&q, st);
    if (later > 0) {
        keep_winner(&q, false, out, trial);
        out->packed = column_int(&q, 9) != 0;
    }
    return later != 0 ? later : final;
}

static int read_choices(struct db *db, int64_t study, int64_t trial, struct db_best *out,
                        struct status *st)
{
    struct query q = query_of(db, SQL_BEST_CHOICES, "%jd %jd", trial, study);
    int count = db_choices_read(&q, out->choices, out->choice_ms, st);
    out->choice_count = count > 0 ? count : 0;
    return count > 0 ? 0 : -1;
}

static int read_counts(struct db *db, int64_t study, struct db_best *out, struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_PLAN_COUNTS, "%jd %d", study, db->precision);
    int found = query_row(&q, st);
    if (found > 0) {
        out->plans_total = column_int(&q, 0);
        out->plans_failed = column_int(&q, 1);
        out->plans_censored = column_int(&q, 2);
    }
    return found < 0 ? -1 : 0;
}

static int read_best(struct db *db, int64_t study, struct db_best *out, struct status *st)
{
    int64_t trial = 0;
    int found = db_winner(db, study, out, &trial, st);
    SCOPED_BUF with = BUF_INIT;
    buf_adds(&with, db->precision != 0 ? " --precision " : "");
    precision_text(db->precision, "", &with);
    if (found == 0)
        return status_set(st, STATUS_NOT_FOUND,
                          "no plan that works is stored in '%s' for this workload%s%s; 'fuseplan "
                          "search%s' measures more",
                          db_path(db), with.len > 0 ? " with" : "", with.ptr, with.ptr);
    if (found < 0 || read_choices(db, study, trial, out, st) != 0)
        return -1;
    return read_counts(db, study, out, st);
}

int db_best(struct db *db, int64_t study, struct db_best *out, struct status *st)
{
    *out = (struct db_best){0};
    if (db_begin_read(db, st) != 0) /* all reads see one snapshot */
        return -1;
    int result = db_end(db, read_best(db, study, out, st), st);
    if (result != 0)
        db_best_release(out);
    return result;
}

int db_rival(struct db *db, int64_t study, int value, const char *comparison, int *rival,
             struct status *st)
{
    SCOPED_QUERY q =
        query_of(db, SQL_RIVAL, "%jd %d %s %d", study, db->precision, comparison, value);
    int found = query_row(&q, st);
    if (found > 0)
        *rival = (int)column_int(&q, 0);
    return found;
}

int db_compared(struct db *db, int64_t study, struct buf *out, struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_COMPARED, "%jd %d", study, db->precision);
    int found = query_row(&q, st);
    if (found > 0)
        buf_adds(out, column_text(&q, 0));
    return found < 0 ? -1 : 0;
}

int db_plan_values(struct db *db, int64_t study, db_value_row *row, void *ctx, struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_PLAN_VALUES, "%jd %d", study, db->precision);
    int found;
    while ((found = query_row(&q, st)) > 0)
        row(ctx, (int)column_int(&q, 0));
    return found;
}

void db_best_release(struct db_best *b)
{
    db_choices_release(b->choices, b->choice_count);
    free(b->comparison);
    free(b->search_options);
    free(b->device);
    *b = (struct db_best){0};
}

/* ---- a plan's time --------------------------------------------------------------------------- */

int db_time(struct db *db, int64_t study, int value, const char *comparison, struct db_time *out,
            struct status *st)
{
    *out = (struct db_time){.ms = NO_INTERVAL};
    const char *kind = db_trial_kind_names[comparison[0] != '\0' ? DB_TRIAL_FINAL : DB_TRIAL_PLAN];
    SCOPED_QUERY q = query_of(db, SQL_PLAN_TIME, "%jd %d %d %s %s", study, value, db->precision,
                              kind, comparison);
    int found = query_row(&q, st);
    int64_t trial = 0;
    if (found > 0) {
        trial = column_int(&q, 0);
        if (strcmp(column_text(&q, 1), "ok") == 0)
            out->ms = (struct interval){column_real(&q, 3), column_real(&q, 4), column_real(&q, 5)};
        out->reason = mem_strdup(column_text(&q, 2));
        snprintf(out->stored_utc, sizeof(out->stored_utc), "%s", column_text(&q, 6));
        out->conditions = mem_strdup(column_text(&q, 7));
        out->packed = column_int(&q, 8) != 0;
    }
    return found > 0 && read_samples(db, trial, &out->samples_ms, &out->sample_count, st) != 0
               ? -1
               : found;
}

void db_time_release(struct db_time *t)
{
    free(t->reason);
    free(t->samples_ms);
    free(t->conditions);
    *t = (struct db_time){.ms = NO_INTERVAL};
}
