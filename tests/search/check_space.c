/* A study as strategies see it. */
#include "fake_bench.h"
#include "space_fixture.h"
#include "tests/candidate.h"

enum { LO = 41100, HI = 41163 };

static const struct segment broken = {13, 14};
static struct db *db;
static struct bench *bench;

/* Every plan of LO..HI on a fake bench; ops 13-14 fail. */
static int64_t make_study(void)
{
    struct tune_report report;
    int64_t study;
    bench = fake_open();
    fake.broken = broken;
    OK(db_open(test_path("db"), DB_WRITE, &db, &st));
    struct tune_options o = {.search = {.space_lo = LO, .space_hi = HI, .quantile = 0.1},
                             .rigor = RIGOR_EXHAUSTIVE};
    OK(tune(bench, db, &o, &report, &st));
    tune_report_release(&report);
    OK(study_open(bench, db, &study, &st));
    return study;
}

static void end_study(void)
{
    db_close(db);
    fake_close();
}

static void export_and_read(unsigned lo, unsigned hi)
{
    struct buf text = BUF_INIT;
    OK(db_export(db, &text, &st));
    write_space(&text);
    recorded_space_release(&space);
    OK(recorded_space_read(space_path(), lo, hi, &space, &st));
}

static bool holds(struct plan p, int slot)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    for (int i = 0; i < count; i++)
        if (slots[i] == slot)
            return true;
    return false;
}

TEST(what_was_measured)
{
    make_study();
    export_and_read(LO, HI);
    ck_assert_int_eq(space.target, TARGET_CPU);
    ck_assert_int_eq(space.count, HI - LO + 1);
    double best_ms = INFINITY;
    for (int i = 0; i < space.count; i++) {
        unsigned value = plan_value(space.plans[i]);
        ck_assert_int_eq(space.at[plan_key(space.plans[i])], i);
        ck_assert_int_eq(space.outcomes[i].status,
                         holds(space.plans[i], segment_index(broken)) ? TRIAL_FAILED : TRIAL_OK);
        if (space.outcomes[i].status != TRIAL_OK)
            continue;
        ck_assert_double_eq_tol(space.outcomes[i].ms, made_up_ms(&fake.space, value), 1e-9);
        best_ms = fmin(best_ms, space.outcomes[i].ms);
    }
    ck_assert(recorded_space_is_whole(&space));
    ck_assert_double_eq(space.outcomes[space.best].ms, best_ms);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        bool failed = slot == segment_index(broken), is_in = false;
        for (int i = 0; i < space.count; i++)
            is_in |= holds(space.plans[i], slot);
        ck_assert_int_eq(space.failed[slot], failed);
        ck_assert_int_eq(isnan(space.segments.ms[slot]), failed || !is_in);
    }
    ck_assert(space.segments.ms[SLOT_HANDWRITTEN] > 0);
    recorded_space_release(&space);
    end_study();
}

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
    OK(db_search_start(db, study, "bench", "{}", id, &st));
    OK(comparison_store(db, study, &c, &t, 1, id, id, &st));
}

TEST(what_bench_compared_is_left_out)
{
    bench_one(make_study());
    export_and_read(LO, HI);
    for (int i = 0; i < space.count; i++)
        ck_assert(!(space.outcomes[i].ms > 100));
    recorded_space_release(&space);
    end_study();
}

TEST(a_part_of_the_plans)
{
    make_study();
    export_and_read(LO + 1, LO + 2);
    ck_assert_int_eq(space.count, 2);
    ck_assert_int_eq(space.at[plan_key(plan_from_value(LO))], -1);
    ck_assert(recorded_space_fails(&space, plan_from_value(LO)));
    recorded_space_release(&space);
    end_study();
}

SUITE("search/space", test_dir_setup, test_dir_teardown)
