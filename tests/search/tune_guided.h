/* A guided search of 20 plans on a fake bench, and what it leaves in the database. */
#ifndef FUSEPLAN_TESTS_TUNE_GUIDED_H
#define FUSEPLAN_TESTS_TUNE_GUIDED_H

#include "tune_fixture.h"

static inline void setup(void)
{
    open_all();
    options = (struct tune_options){.search = {.strategy = strategy_find("guided"),
                                               .space_lo = 32768,
                                               .space_hi = 49152,
                                               .budget = 20,
                                               .seed = 1,
                                               .quantile = 0.1,
                                               .stop = &fake.stop},
                                    .baselines = usual_baselines()};
}

static inline void set_mask(const char *mask)
{
    mask_spec_release(&fake.workload.mask_spec);
    OK(mask_parse(mask, &fake.workload.mask_spec, &st));
    OK(workload_check(&fake.workload, &st));
}

/* ---- what is stored -------------------------------------------------------------------------- */

struct stored {
    int segments, plans, finals, failed, packed; /* packed: of all rows */
    bool seen[VALUE_MAX + 1], ok[VALUE_MAX + 1];
    char reason[200]; /* of the last failed plan */
    int comparisons;
    char comparison[100]; /* the newest so far; its rows stand together */
    bool compared[VALUE_MAX + 1];
};

static inline int segment_row(void *ctx, const struct db_trial *row)
{
    struct stored *s = ctx;
    s->segments++;
    s->packed += row->packed;
    ck_assert_int_eq(row->value, -1);
    ck_assert_int_eq(row->choice_count, 1);
    return 0;
}

static inline int plan_row(void *ctx, const struct db_trial *row)
{
    struct stored *s = ctx;
    s->plans++;
    s->packed += row->packed;
    ck_assert_msg(!s->seen[row->value], "%d is stored twice", row->value);
    s->seen[row->value] = true;
    s->ok[row->value] = row->status == TRIAL_OK;
    if (row->status == TRIAL_FAILED) {
        s->failed++;
        snprintf(s->reason, sizeof(s->reason), "%s: %s", row->reason_code, row->reason);
    }
    return 0;
}

static inline int final_row(void *ctx, const struct db_trial *row)
{
    struct stored *s = ctx;
    s->finals++;
    s->packed += row->packed;
    ck_assert_msg(s->ok[row->value], "final %d is no plan that ran", row->value);
    ck_assert_int_eq(row->sample_count, 6);
    ck_assert_str_ne(row->comparison, "");
    if (strcmp(row->comparison, s->comparison) != 0) {
        s->comparisons++;
        snprintf(s->comparison, sizeof(s->comparison), "%s", row->comparison);
        memset(s->compared, 0, sizeof(s->compared));
    }
    ck_assert_msg(!s->compared[row->value], "%d is twice in '%s'", row->value, row->comparison);
    s->compared[row->value] = true;
    return 0;
}

static inline void no_problem(void *ctx, const char *problem)
{
    ck_abort_msg("%s", problem);
}

/* Reads all back; whatever happened before, no trial may be doubled. */
static inline struct stored *read_back(void)
{
    static struct stored s;
    memset(&s, 0, sizeof(s));
    int64_t study;
    int problems;
    OK(study_open(bench, db, &study, &st));
    OK(db_trials(db, study, DB_TRIAL_SEGMENT, segment_row, &s, &st));
    OK(db_trials(db, study, DB_TRIAL_PLAN, plan_row, &s, &st));
    OK(db_trials(db, study, DB_TRIAL_FINAL, final_row, &s, &st));
    OK(db_check(db, no_problem, NULL, &problems, &st));
    return &s;
}

/* Stores a plan as `bench` does, without a search. */
static inline void plant_plan(unsigned value, double ms)
{
    struct candidate c;
    struct trial trial = {.status = TRIAL_OK, .ms = {ms, ms, ms}, .sample_count = 6};
    int64_t study;
    OK(study_open(bench, db, &study, &st));
    const struct choice_source from = {.db = db, .study = study, .target = bench_target(bench)};
    OK(study_candidate(&from, plan_from_value(value), &c, &st));
    OK(trial_store(db, study, DB_TRIAL_PLAN, &c, &trial, "", &st));
}

#endif
