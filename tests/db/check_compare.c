#include "tests/db/move_fixture.h"

static struct db *a, *b;
static int64_t study_a, study_b;

static void setup(void)
{
    struct db_target newer = a_target;
    test_dir_setup();
    a = open_named("a.db", &study_a);
    OK(db_open(test_path("b.db"), DB_WRITE, &b, &st));
    newer.compiler = "gcc 13";
    newer.uuid = "another of its kind";
    OK(db_study(b, &a_workload, &newer, "1", &study_b, &st));
}

static void teardown(void)
{
    db_close(a);
    db_close(b);
    test_dir_teardown();
}

/* "41115 slower 1.5 [1.2, 1.9] plan; ": each row. */
static void add_row(void *ctx, const struct db_change_row *r)
{
    static const char *const names[] = {"same", "faster", "slower", "fixed", "broken"};
    buf_addf(ctx, "%d %s %.3g [%.3g, %.3g]%s; ", r->value, names[r->change], r->ratio.median,
             r->ratio.low, r->ratio.high, r->final ? " final" : "");
    ck_assert(db_is_utc(r->before_utc) && db_is_utc(r->after_utc));
}

static void check(struct db *other, const char *time, const char *expected)
{
    struct buf found;
    buf_init(&found);
    OK(db_compare(a, other, time, add_row, &found, &st));
    ck_assert_str_eq(found.ptr, expected);
    buf_release(&found);
}

#define OLD "2026-01-01T00:00:00.000Z"
#define NEW "2026-02-01T00:00:00.000Z"

static void add_failed(struct db *to, int64_t study, unsigned value, const char *utc)
{
    struct db_choice choices[OP_COUNT];
    struct db_trial t = trial_of_plan(value, choices);
    t.status = TRIAL_FAILED;
    t.reason_code = "launch";
    t.median_ms = t.ci_low_ms = t.ci_high_ms = NAN;
    t.stored_utc = utc;
    OK(db_trial_add(to, study, &t, &st));
}

/* Intervals are +-0.125. */
START_TEST(intervals_decide)
{
    add_plan_at(a, study_a, 32768, 2, OLD);
    add_plan_at(b, study_b, 32768, 2.25, NEW); /* they touch */
    add_plan_at(a, study_a, 32769, 2, OLD);
    add_plan_at(b, study_b, 32769, 2.5, NEW);
    add_plan_at(a, study_a, 32770, 2, OLD);
    add_plan_at(b, study_b, 32770, 1, NEW);
    add_plan_at(a, study_a, 32771, 2, OLD); /* on one side */
    add_plan_at(b, study_b, 32772, 2, NEW);
    add_plan_at(a, study_a, 32773, 2, OLD);
    add_failed(b, study_b, 32773, NEW);
    add_failed(a, study_a, 32774, OLD);
    add_plan_at(b, study_b, 32774, 2, NEW);
    check(b, NULL,
          "32773 broken nan [nan, nan]; 32769 slower 1.25 [1.12, 1.4]; "
          "32768 same 1.12 [1, 1.27]; 32770 faster 0.5 [0.412, 0.6]; 32774 fixed nan [nan, nan]; ");
}
END_TEST

START_TEST(finals_count_where_both_have_some)
{
    struct db_choice choices[OP_COUNT];
    struct db_trial final = trial_of_plan(32768, choices);
    final.kind = DB_TRIAL_FINAL;
    final.comparison = "x";
    add_plan_at(a, study_a, 32768, 2, OLD);
    add_plan_at(b, study_b, 32768, 4, NEW);
    OK(db_trial_add(a, study_a, &final, &st));
    check(b, NULL, "32768 slower 2 [1.82, 2.2]; ");
    final.stored_utc = OLD;
    final.median_ms = final.ci_low_ms = final.ci_high_ms = 3;
    OK(db_trial_add(b, study_b, &final, &st));
    final.stored_utc = NEW; /* the newest counts */
    final.median_ms = final.ci_low_ms = final.ci_high_ms = 2;
    OK(db_trial_add(b, study_b, &final, &st));
    check(b, NULL, "32768 same 1 [0.941, 1.07] final; ");
}
END_TEST

START_TEST(a_time_parts_one_database)
{
    struct db_target newer = a_target;
    int64_t later;
    newer.driver = "new";
    OK(db_study(a, &a_workload, &newer, "1", &later, &st));
    add_plan_at(a, study_a, 32768, 2, OLD);
    add_plan_at(a, study_a, 32769, 2, NEW); /* not before */
    add_plan_at(a, later, 32768, 3, NEW);
    add_plan_at(a, later, 32769, 3, NEW);
    check(NULL, NEW, "32768 slower 1.5 [1.35, 1.67]; ");
    struct buf found;
    buf_init(&found);
    FAILS(db_compare(a, NULL, OLD, add_row, &found, &st), STATUS_NOT_FOUND, "no plan was measured");
    ck_assert_uint_eq(found.len, 0);
    buf_release(&found);
}
END_TEST

START_TEST(other_protocols_do_not_compare)
{
    struct buf found;
    int64_t other;
    buf_init(&found);
    OK(db_study(b, &a_workload, &a_target, "2", &other, &st));
    add_plan_at(a, study_a, 32768, 2, OLD);
    add_plan_at(b, other, 32768, 3, NEW);
    FAILS(db_compare(a, b, NULL, add_row, &found, &st), STATUS_NOT_FOUND, "b.db");
    buf_release(&found);
}
END_TEST

START_TEST(times_are_read)
{
    static const struct {
        const char *text, *utc; /* null: refused */
    } times[] = {
        {"2026-01-31", "2026-01-31T00:00:00.000Z"},
        {"2026-01-31T12:34", "2026-01-31T12:34:00.000Z"},
        {"2026-01-31 12:34:56", "2026-01-31T12:34:56.000Z"},
        {"2026-01-31T12:34:56Z", "2026-01-31T12:34:56.000Z"},
        {"2026-01-31T12:34:56.789Z", "2026-01-31T12:34:56.789Z"},
        {"2026-13-31", NULL},
        {"2026-1-31", NULL},
        {"yesterday", NULL},
        {"", NULL},
        {"2026-01-31T25:00", NULL},
        {"2026-01-31x12:34", NULL},
        {"2026-01-31T12:34:56.7", NULL},
        {"+026-01-31", NULL},
    };
    char utc[CLOCK_UTC_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        if (times[i].utc != NULL) {
            OK(db_time_parse(times[i].text, utc, &st));
            ck_assert_str_eq(utc, times[i].utc);
        } else {
            FAILS(db_time_parse(times[i].text, utc, &st), STATUS_USAGE, "is no time");
        }
}
END_TEST

SUITE("db/compare", setup, teardown, ONCE(intervals_decide),
      ONCE(finals_count_where_both_have_some), ONCE(a_time_parts_one_database),
      ONCE(other_protocols_do_not_compare), ONCE(times_are_read))
