/* Failures that were measured again. */
#include "db/db_int.h"

int db_failure_displace(struct db *db, int64_t study, const struct db_trial *t, int64_t schedule,
                        struct status *st)
{
    static const enum db_statement steps[] = {SQL_FAILURE_KEEP, SQL_CHOICES_DELETE,
                                              SQL_TRIAL_DELETE};
    bool segment = t->kind == DB_TRIAL_SEGMENT;
    int64_t trial;
    if (t->kind == DB_TRIAL_FINAL)
        return 0;
    struct query q = query_start(db, segment ? SQL_FAILED_SEGMENT : SQL_FAILED_PLAN);
    query_int(&q, study);
    query_int(&q, segment ? schedule : t->value);
    if (!segment)
        query_int(&q, t->precision);
    int found = query_one_int(&q, &trial, st);
    for (size_t i = 0; i < ARRAY_LEN(steps) && found > 0; i++) {
        q = query_start(db, steps[i]);
        query_int(&q, trial);
        if (query_run(&q, st) != 0)
            return -1;
    }
    return found < 0 ? -1 : 0;
}
