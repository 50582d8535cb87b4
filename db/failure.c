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
    int found =
        segment ? query_one_int_of(db, SQL_FAILED_SEGMENT, &trial, st, "%jd %jd", study, schedule)
                : query_one_int_of(db, SQL_FAILED_PLAN, &trial, st, "%jd %d %d", study, t->value,
                                   t->precision);
    for (size_t i = 0; i < ARRAY_LEN(steps) && found > 0; i++)
        if (query_run_of(db, steps[i], st, "%jd", trial) != 0)
            return -1;
    return found < 0 ? -1 : 0;
}
