/* A study as a recorded space, there and back. */
#include "fake_bench.h"
#include "space_fixture.h"

#include <math.h>

enum { LO = 40000, HI = 40063 };

static struct db *db;
static struct bench *bench;

/* Every plan of LO..HI on a fake bench; ops 8-9 fail. */
static int64_t make_study(void)
{
    struct tune_report report;
    int64_t study;
    bench = fake_open();
    fake.seconds_per_build = 0.5;
    fake.seconds_per_segment = 0.25;
    fake.seconds_per_plan = 0.125;
    fake.verify_s = 0.0625;
    fake.broken = (struct segment){8, 9};
    ck_assert_int_eq(db_open(test_path("db"), DB_WRITE, &db, &st), 0);
    struct tune_options o = {.search = {.space_lo = LO, .space_hi = HI, .quantile = 0.1},
                             .rigor = RIGOR_EXHAUSTIVE};
    ck_assert_int_eq(tune(bench, db, &o, &report, &st), 0);
    tune_report_release(&report);
    ck_assert_int_eq(study_open(bench, db, &study, &st), 0);
    return study;
}

static void end_study(void)
{
    db_close(db);
    fake_close();
}

static void export_to(struct buf *out, int64_t study)
{
    int result = space_export(db, study, TARGET_CPU, "{\"batch\":1}", LO, HI, out, &st);
    ck_assert_msg(result == 0, "%s", st.message);
}

/* Medians are rounded to 10 ns. */
static void check_us(double ms, double expected_ms)
{
    ck_assert_double_le(fabs(ms - expected_ms), 0.51e-5);
}

static bool holds_layernorm(struct plan p)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    for (int i = 0; i < count; i++)
        if (slots[i] == segment_index((struct segment){8, 9}))
            return true;
    return false;
}

START_TEST(there_and_back)
{
    struct buf bytes;
    buf_init(&bytes);
    export_to(&bytes, make_study());
    write_bytes(bytes.ptr, bytes.len);
    read_space(space_path());
    ck_assert_str_eq(space.workload, "{\"batch\":1}");
    ck_assert_str_eq(space.target.device, "a made-up device");
    ck_assert_int_eq(space.target.units, 2);
    ck_assert_str_eq(space.protocol, "1");
    ck_assert_uint_eq(space.lo, LO);
    ck_assert_uint_eq(space.hi, HI);
    ck_assert_int_eq(space.count, HI - LO + 1);
    double best_ms = INFINITY;
    for (int i = 0; i < space.count; i++) {
        ck_assert_uint_eq(plan_value(space.plans[i]), LO + (unsigned)i);
        ck_assert_int_eq(space.outcomes[i].status,
                         holds_layernorm(space.plans[i]) ? TRIAL_FAILED : TRIAL_OK);
        if (space.outcomes[i].status != TRIAL_OK)
            continue;
        check_us(space.outcomes[i].ms, made_up_ms(&fake.space, LO + (unsigned)i));
        best_ms = fmin(best_ms, space.outcomes[i].ms);
        ck_assert_double_eq_tol(space.seconds[i], 0.125 + 0.0625, 1e-4);
    }
    ck_assert(space.has_seconds);
    ck_assert_double_eq(space.outcomes[space.best].ms, best_ms);
    for (int i = 0; i < SEGMENT_COUNT; i++) {
        bool failed = i == segment_index((struct segment){8, 9});
        ck_assert_int_eq(space.failed[i], failed);
        ck_assert_int_eq(isnan(space.segments.ms[i]), failed);
    }
    ck_assert(space.segments.ms[SLOT_HANDWRITTEN] > 0);
    ck_assert_int_eq(space.attempt_count, fake.segments);
    for (int i = 0; i < space.attempt_count; i++) {
        const struct recorded_attempt *a = &space.attempts[i];
        ck_assert_double_eq(a->build_s, 0.5);
        ck_assert_double_eq(a->time_s, 0.25);
        ck_assert(!(a->us < 1e3 * space.segments.ms[a->slot] - 1e-9));
    }
    recorded_space_release(&space);
    buf_release(&bytes);
    end_study();
}
END_TEST

/* Later and slower than all the others. */
static void bench_one(int64_t study)
{
    char id[HASH_TEXT_SIZE];
    double ms[] = {900, 900, 900, 900, 900, 900};
    struct candidate c;
    struct trial t = {.status = TRIAL_OK,
                      .ms = {900, 900, 900},
                      .sample_count = 6,
                      .samples_ms = ms,
                      .layers_timed = 12};
    candidate_default(bench_target(bench), plan_from_value(LO), &c);
    ck_assert_int_eq(db_search_start(db, study, "bench", "{}", id, &st), 0);
    ck_assert_int_eq(comparison_store(db, study, &c, &t, 1, id, id, &st), 0);
}

START_TEST(what_bench_compared_is_left_out)
{
    struct buf before, after;
    buf_init(&before);
    buf_init(&after);
    int64_t study = make_study();
    export_to(&before, study);
    bench_one(study);
    export_to(&after, study);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_int_eq(memcmp(before.ptr, after.ptr, before.len), 0);
    buf_release(&before);
    buf_release(&after);
    end_study();
}
END_TEST

START_TEST(equal_studies_give_equal_bytes)
{
    struct buf a, b;
    buf_init(&a);
    buf_init(&b);
    int64_t study = make_study();
    export_to(&a, study);
    export_to(&b, study);
    ck_assert_uint_eq(a.len, b.len);
    ck_assert_int_eq(memcmp(a.ptr, b.ptr, a.len), 0);
    ck_assert_int_eq(memcmp(a.ptr + 4, "\0\0\0\0", 4), 0); /* RFC 1952: no time */
    buf_release(&a);
    buf_release(&b);
    end_study();
}
END_TEST

/* A compiler's message as an earlier version stored it, cut within a character, in a study without
 * segments. */
START_TEST(reason_in_no_encoding)
{
    struct buf bytes;
    struct candidate c;
    struct trial ok = {.status = TRIAL_OK, .ms = {1, 1, 1}};
    struct trial failed = {
        .status = TRIAL_FAILED,
        .reason = {.code = STATUS_COMPILE, .message = "expected \xe2\x80\x98;\xe2\x80"}};
    int64_t study;
    make_study();
    fake.inputs.seed = 1;
    ck_assert_int_eq(study_open(bench, db, &study, &st), 0);
    candidate_default(bench_target(bench), plan_from_value(LO), &c);
    ck_assert_int_eq(trial_store(db, study, DB_TRIAL_PLAN, &c, &ok, "", &st), 0);
    candidate_default(bench_target(bench), plan_from_value(LO + 1), &c);
    ck_assert_int_eq(trial_store(db, study, DB_TRIAL_PLAN, &c, &failed, "", &st), 0);
    buf_init(&bytes);
    export_to(&bytes, study);
    write_bytes(bytes.ptr, bytes.len);
    read_space(space_path());
    ck_assert_int_eq(space.count, 2);
    ck_assert_uint_eq(plan_value(space.plans[space.best]), LO);
    ck_assert_int_eq(space.outcomes[1].status, TRIAL_FAILED);
    ck_assert(isnan(space.segments.ms[0]));
    recorded_space_release(&space);
    buf_release(&bytes);
    end_study();
}
END_TEST

START_TEST(nothing_to_record)
{
    struct buf bytes;
    buf_init(&bytes);
    int64_t study = make_study();
    FAILS(space_export(db, study, TARGET_CPU, "{}", 50, 60, &bytes, &st), STATUS_NOT_FOUND, "");
    ck_assert_uint_eq(bytes.len, 0);
    buf_release(&bytes);
    end_study();
    st = STATUS_INIT;
}
END_TEST

SUITE("search/space", test_dir_setup, test_dir_teardown, ONCE(there_and_back),
      ONCE(equal_studies_give_equal_bytes), ONCE(what_bench_compared_is_left_out),
      ONCE(reason_in_no_encoding), ONCE(nothing_to_record))
