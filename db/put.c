#include "db/db_int.h"

int db_search_put(struct db *db, int64_t study, const struct db_search *s, struct status *st)
{
    int64_t found = 0;
    if (query_run_of(db, SQL_SEARCH_PUT, st, "%s %jd %s %s %s", s->id, study, s->strategy,
                     s->options, s->started_utc) != 0 ||
        query_run_of(db, SQL_SEARCH_PUT_END, st, "%s %s %s", s->id, s->ended_utc, s->stopped_by) !=
            0 ||
        query_one_int_of(db, SQL_SEARCH_STUDY, &found, st, "%s", s->id) < 0)
        return -1;
    if (found != study)
        return status_set(st, STATUS_DATABASE, "search '%s' belongs to another study in '%s'",
                          s->id, db_path(db));
    return 0;
}

/* ---- trials ---------------------------------------------------------------------------------- */

/* NaN, which is not stored, before all numbers. */
static int compare_real(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

/* By time, then by anything that is the same in all databases.  A row of SQL_TWIN_*.  Results that
 * agree in all of it are one. */
static int compare_twin(const struct db_trial *t, const struct query *q)
{
    int order = strcmp(t->stored_utc, column_text(q, 1));
    if (order == 0)
        order = strcmp(trial_status_name(t->status), column_text(q, 2));
    const double reals[] = {t->median_ms, t->ci_low_ms, t->ci_high_ms, t->time_s};
    for (int i = 0; i < (int)ARRAY_LEN(reals) && order == 0; i++)
        order = compare_real(reals[i], column_real(q, 3 + i));
    return order;
}

/* Finds the stored result for the same thing: its id, and how t compares with it; 1, 0 or -1 as
 * query_row. */
static int find_twin(struct db *db, int64_t study, const struct db_trial *t, int64_t schedule,
                     int64_t *id, int *order, struct status *st)
{
    bool segment = t->kind == DB_TRIAL_SEGMENT;
    SCOPED_QUERY q = segment ? query_of(db, SQL_TWIN_SEGMENT, "%jd %jd", study, schedule)
                             : query_of(db, SQL_TWIN_PLAN, "%jd %d %d %s %s", study, t->value,
                                        t->precision, db_trial_kind_names[t->kind], t->comparison);
    int found = query_row(&q, st);
    if (found > 0) {
        *id = column_int(&q, 0);
        *order = compare_twin(t, &q);
    }
    return found;
}

int db_trial_put(struct db *db, int64_t study, const struct db_trial *t, struct db_moved *moved,
                 struct status *st)
{
    int64_t schedules[OP_COUNT] = {0}, twin = 0;
    int order = 0;
    moved->results++;
    if (db_trial_prepare(db, t, schedules, st) != 0)
        return -1;
    int found = find_twin(db, study, t, schedules[0], &twin, &order, st);
    if (found < 0)
        return -1;
    moved->added += found == 0;
    moved->same += found > 0 && order == 0;
    moved->conflicts += found > 0 && order != 0;
    moved->replaced += found > 0 && order > 0;
    if (found > 0 && order <= 0)
        return 0;
    if (found > 0 && (db_failure_displace(db, study, t, schedules[0], st) != 0 ||
                      query_run_of(db, SQL_SAMPLES_DELETE, st, "%jd", twin) != 0 ||
                      query_run_of(db, SQL_CHOICES_DELETE, st, "%jd", twin) != 0 ||
                      query_run_of(db, SQL_TRIAL_DELETE, st, "%jd", twin) != 0))
        return -1;
    return db_trial_insert_as(db, study, t, schedules, st);
}
