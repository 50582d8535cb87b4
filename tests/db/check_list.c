/* The list of studies, and the system's database beside the user's. */
#include "tests/db/one_fixture.h"

struct found {
    int count, values[4];
    bool final[4];
    int64_t trials[4], plans[4];
    double ms[4];
    char utc[4][CLOCK_UTC_SIZE], mask[4][32];
};

static void keep_row(void *ctx, const struct db_listed *l)
{
    struct found *f = ctx;
    ck_assert_int_lt(f->count, (int)ARRAY_LEN(f->values));
    f->values[f->count] = l->value;
    f->final[f->count] = l->final;
    f->trials[f->count] = l->trials;
    f->plans[f->count] = l->plans;
    f->ms[f->count] = l->ms.median;
    snprintf(f->utc[f->count], sizeof(f->utc[0]), "%s", l->stored_utc);
    snprintf(f->mask[f->count], sizeof(f->mask[0]), "%s", l->workload.mask);
    ck_assert_str_eq(l->target.device, a_target.device);
    ck_assert_uint_eq(l->workload.seed, a_workload.seed);
    f->count++;
}

static void add_at(int64_t to, struct db_trial t, const char *utc)
{
    t.stored_utc = utc;
    OK(db_trial_add(db, to, &t, &st));
}

START_TEST(studies_by_time_with_their_best)
{
    struct found f = {.count = 0};
    struct db_workload other = a_workload;
    int64_t second, empty;
    other.text = "b=1 s=128 mask=full";
    other.mask = "full";
    OK(db_study(db, &other, &a_target, "1", &second, &st));
    OK(db_study(db, &other, &a_target, "2", &empty, &st));
    add_at(study, plan_trial(50, 2), "2026-01-01T00:00:00.000Z");
    add_at(study, failed_trial(51, "wrong"), "2026-01-01T00:00:01.000Z");
    add_at(study, final_trial(50, 3, "a"), "2026-01-01T00:00:02.000Z");
    add_at(second, segment_trial(&some_choices[0], 1), "2026-01-01T00:00:03.000Z");

    OK(db_list(db, keep_row, &f, &st));
    ck_assert_int_eq(f.count, 3);
    ck_assert_str_eq(f.mask[0], "full");
    ck_assert_str_eq(f.utc[0], "2026-01-01T00:00:03.000Z");
    ck_assert_int_eq(f.values[0], -1);
    ck_assert_int_eq(f.trials[0], 1);
    ck_assert_int_eq(f.plans[0], 0);
    ck_assert_str_eq(f.mask[1], "causal");
    ck_assert_str_eq(f.utc[1], "2026-01-01T00:00:02.000Z");
    ck_assert_int_eq(f.values[1], 50);
    ck_assert(f.final[1]);
    ck_assert_double_eq(f.ms[1], 3);
    ck_assert_int_eq(f.trials[1], 3);
    ck_assert_int_eq(f.plans[1], 2);
    ck_assert_str_eq(f.utc[2], "");
    ck_assert_int_eq(f.trials[2], 0);
}
END_TEST

START_TEST(counts_follow_what_is_removed)
{
    struct found f = {.count = 0};
    add_at(study, plan_trial(50, 2), "2026-01-01T00:00:00.000Z");
    add_at(study, segment_trial(&some_choices[0], 1), "2026-01-01T00:00:03.000Z");
    exec_sql(db->handle, "DELETE FROM choice; DELETE FROM trial WHERE kind = 'plan'");
    OK(db_list(db, keep_row, &f, &st));
    ck_assert_int_eq(f.trials[0], 1);
    ck_assert_int_eq(f.plans[0], 0);
    assert_whole(db);
}
END_TEST

static void add_value(void *ctx, int value)
{
    buf_addf(ctx, "%d ", value);
}

START_TEST(plan_values_are_told_once)
{
    add_at(study, plan_trial(5, 2), NULL);
    add_at(study, final_trial(5, 2, "a"), NULL);
    add_at(study, failed_trial(3, "wrong"), NULL);
    add_at(study, segment_trial(&some_choices[0], 1), NULL);
    struct buf text;
    buf_init(&text);
    OK(db_plan_values(db, study, add_value, &text, &st));
    ck_assert_str_eq(text.ptr, "3 5 ");
    buf_release(&text);
}
END_TEST

SUITE("db/list", setup, teardown, ONCE(studies_by_time_with_their_best),
      ONCE(counts_follow_what_is_removed), ONCE(plan_values_are_told_once))
