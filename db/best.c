#include "db/db_int.h"

#include <math.h>
#include <stdlib.h>

/* A winner's row: value, times and comparison. */
static void keep_winner(const struct query *q, bool final, struct db_best *out, int64_t *trial,
                        struct buf *comparison)
{
    *trial = column_int(q, 0);
    out->value = (int)column_int(q, 1);
    out->final = final;
    out->median_ms = column_real(q, 2);
    out->ci_low_ms = column_real(q, 3);
    out->ci_high_ms = column_real(q, 4);
    buf_reset(comparison);
    buf_adds(comparison, column_text(q, 5));
}

/* The newest comparison decides among its plans.  A plan stored since wins over its winner where it
 * was faster in the search: times side by side compare with no others.  1, 0 or -1 as query_row. */
static int read_winner(struct db *db, int64_t study, struct db_best *out, int64_t *trial,
                       struct buf *comparison, struct status *st)
{
    double own_ms = INFINITY; /* the winner's time in the search */
    struct query q = query_start(db, SQL_BEST_FINAL);
    query_int(&q, study);
    int final = query_row(&q, st);
    if (final > 0) {
        keep_winner(&q, true, out, trial, comparison);
        own_ms = column_real(&q, 6);
    }
    query_end(&q);
    if (final < 0)
        return -1;

    q = query_start(db, SQL_BEST_PLAN);
    query_int(&q, study);
    query_int(&q, *trial);
    query_real(&q, own_ms);
    int since = query_row(&q, st);
    if (since > 0)
        keep_winner(&q, false, out, trial, comparison);
    query_end(&q);
    return since != 0 ? since : final;
}

static int read_beside(struct db *db, int64_t study, const struct db_best *best,
                       const char *comparison, int value, struct interval *out, struct status *st)
{
    struct query q = query_start(db, SQL_BESIDE);
    query_int(&q, study);
    query_int(&q, value);
    query_text(&q, db_trial_kind_names[best->final ? DB_TRIAL_FINAL : DB_TRIAL_PLAN]);
    query_text(&q, comparison);
    int found = query_row(&q, st);
    *out = (struct interval){NAN, NAN, NAN};
    if (found > 0)
        *out = (struct interval){column_real(&q, 0), column_real(&q, 1), column_real(&q, 2)};
    query_end(&q);
    return found < 0 ? -1 : 0;
}

static void keep_choice(void *ctx, int i, const struct db_choice *c, const struct query *q)
{
    struct db_best *out = ctx;
    out->choices[i] = (struct db_choice){c->segment, mem_strdup(c->impl), mem_strdup(c->schedule)};
    out->choice_ms[i] = column_real(q, 4);
    out->choice_count = i + 1;
}

static int read_choices(struct db *db, int64_t study, int64_t trial, struct db_best *out,
                        struct status *st)
{
    struct query q = query_start(db, SQL_BEST_CHOICES);
    query_int(&q, trial);
    query_int(&q, study);
    return db_choices_read(&q, keep_choice, out, st) < 0 ? -1 : 0;
}

static int read_counts(struct db *db, int64_t study, struct db_best *out, struct status *st)
{
    struct query q = query_start(db, SQL_PLAN_COUNTS);
    query_int(&q, study);
    int found = query_row(&q, st);
    if (found > 0) {
        out->plans_total = column_int(&q, 0);
        out->plans_failed = column_int(&q, 1);
        out->plans_censored = column_int(&q, 2);
    }
    query_end(&q);
    return found < 0 ? -1 : 0;
}

static int read_best(struct db *db, int64_t study, struct db_best *out, struct status *st)
{
    int64_t trial = 0;
    struct buf comparison;
    buf_init(&comparison);
    int result = -1;
    int found = read_winner(db, study, out, &trial, &comparison, st);
    if (found == 0)
        status_set(st, STATUS_NOT_FOUND,
                   "no plan that works is stored in '%s' for this workload; 'fuseplan search' "
                   "measures more",
                   db_path(db));
    if (found <= 0)
        goto out;
    if (read_beside(db, study, out, comparison.ptr, VALUE_UNFUSED, &out->unfused, st) != 0 ||
        read_beside(db, study, out, comparison.ptr, VALUE_FIRST_VERSION, &out->first_version, st) !=
            0 ||
        read_choices(db, study, trial, out, st) != 0 || read_counts(db, study, out, st) != 0)
        goto out;
    result = 0;
out:
    buf_release(&comparison);
    return result;
}

int db_best(struct db *db, int64_t study, struct db_best *out, struct status *st)
{
    *out = (struct db_best){0};
    if (db_begin_read(db, st) != 0) /* one snapshot for all that is read */
        return -1;
    int result = db_end(db, read_best(db, study, out, st), st);
    if (result != 0)
        db_best_release(out);
    return result;
}

int db_compared(struct db *db, int64_t study, struct buf *out, struct status *st)
{
    struct query q = query_start(db, SQL_COMPARED);
    query_int(&q, study);
    int found = query_row(&q, st);
    if (found > 0)
        buf_adds(out, column_text(&q, 0));
    query_end(&q);
    return found < 0 ? -1 : 0;
}

void db_best_release(struct db_best *b)
{
    for (int i = 0; i < b->choice_count; i++) {
        free((char *)b->choices[i].impl);
        free((char *)b->choices[i].schedule);
    }
    *b = (struct db_best){0};
}
