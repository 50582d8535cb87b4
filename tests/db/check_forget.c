#include "tests/db/move_fixture.h"

static struct db *db;
static int64_t of_protocol[3]; /* 1, 2 and 10 */
static int64_t of_other;       /* another workload, protocol 2 */

static void setup(void)
{
    static const char *const protocols[] = {"1", "2", "10"};
    struct db_workload other = a_workload;
    memory_dir_setup();
    db = open_named("t.db", &of_protocol[0]);
    for (size_t i = 0; i < ARRAY_LEN(protocols); i++) {
        OK(db_study(db, &a_workload, &a_target, protocols[i], &of_protocol[i], &st));
        fill(db, of_protocol[i]);
    }
    other.text = "other";
    OK(db_study(db, &other, &a_target, "2", &of_other, &st));
    fill(db, of_other);
    /* as version 0.2.0 stored */
    exec_sql(db->handle, "INSERT INTO model (study, name, features, seed, quantile, report,"
                         " trained_utc, rows) SELECT id, 'plans', 1, 0, 0.1, '{}',"
                         " '2026-11-20T00:00:00.000Z', '' FROM study");
}

static void teardown(void)
{
    db_close(db);
    test_dir_teardown();
}

struct forgotten {
    int studies;
    int64_t trials;
};

static void count(void *ctx, const struct db_listed *l, int64_t trials)
{
    struct forgotten *f = ctx;
    ck_assert_int_ge(l->trials, trials);
    f->studies++;
    f->trials += trials;
}

/* Dry first: then nothing changes, and the same is counted. */
static void forget(struct db_forget what, int studies, int64_t trials)
{
    struct forgotten dry = {0, 0}, wet = {0, 0};
    SCOPED char *before = text_of(db);
    what.dry_run = true;
    OK(db_forget(db, &what, count, &dry, &st));
    SCOPED char *after = text_of(db);
    ck_assert_str_eq(before, after);
    what.dry_run = false;
    OK(db_forget(db, &what, count, &wet, &st));
    ck_assert_int_eq(dry.studies, studies);
    ck_assert_int_eq(wet.studies, studies);
    ck_assert_int_eq(dry.trials, trials);
    ck_assert_int_eq(wet.trials, trials);
    assert_whole(db);
}

static int rows(const char *table)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
    return count_sql(db->handle, sql);
}

TEST(a_workload_with_all_it_has)
{
    forget((struct db_forget){.workload = a_workload.text, .target_kind = "cuda"}, 0, 0);
    ck_assert_int_eq(rows("study"), 4);
    forget((struct db_forget){.workload = a_workload.text, .target_kind = "cpu"}, 3, 12);
    ck_assert_int_eq(rows("study"), 1);
    ck_assert_int_eq(rows("workload"), 1);
    ck_assert_int_eq(rows("target"), 1);
    ck_assert_int_eq(rows("search"), 2);
    ck_assert_int_eq(rows("model"), 1);
    ck_assert_int_eq(rows("trial"), 4);
    ck_assert_int_eq(rows("sample"), (int)ARRAY_LEN(some_samples));
    forget((struct db_forget){.workload = "other", .target_kind = "cpu"}, 1, 4);
    ck_assert_int_eq(rows("target"), 0);
}

/* The reasons of failures that were measured again go with the failures, and with the workload. */
TEST(kept_failures_too)
{
    for (int i = 0; i < 2; i++) {
        struct db_trial failed = failed_trial(60 + i, "compile"), again = plan_trial(60 + i, 3);
        OK(db_trial_add(db, i == 0 ? of_other : of_protocol[0], &failed, &st));
        OK(db_trial_add(db, i == 0 ? of_other : of_protocol[0], &again, &st));
    }
    ck_assert_int_eq(rows("failure"), 2);
    forget((struct db_forget){.workload = "other", .target_kind = "cpu", .failed = true}, 1, 1);
    ck_assert_int_eq(rows("failure"), 1);
    forget((struct db_forget){.workload = a_workload.text, .target_kind = "cpu"}, 3, 13);
    ck_assert_int_eq(rows("failure"), 0);
}

SUITE("db/forget", setup, teardown)
