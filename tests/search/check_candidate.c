/* Which of a segment's stored choices a plan takes. */
#include "search/search.h"
#include "tests/candidate.h"
#include "tests/db/fixture.h"

/* Of segment 0-0 in fp16, from the fastest.  By shared memory 128x192 runs on sm_80, not on
 * sm_86. */
static const struct {
    const char *impl, *schedule;
} stored[] = {
    {"hopper_gemm", "tile=128x192 split=1 norm=cluster"},
    {"generated", "tile=128x192 split=1 norm=barrier resident=1"},
    {"generated", "tile=32x64 split=1 norm=barrier resident=1"},
    {"generated", "tile=64x64 split=1 norm=barrier resident=1"},
    {"library", "algorithm=0"},
};

/* Faster, but of a version that had these tiles and splits. */
static const char *const gone[] = {"tile=128x96 split=1 norm=cluster",
                                   "tile=64x64 split=8 norm=cluster"};

static struct db *open_stored(int64_t *study)
{
    struct db *db = open_fresh(study);
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        const struct db_choice choice = {{0, 0}, "hopper_gemm", gone[i]};
        const struct db_trial trial = segment_trial(&choice, 0.5);
        OK(db_trial_add(db, *study, &trial, &st));
    }
    for (size_t i = 0; i < ARRAY_LEN(stored); i++) {
        const struct db_choice choice = {{0, 0}, stored[i].impl, stored[i].schedule};
        const struct db_trial trial = segment_trial(&choice, 1 + (double)i);
        OK(db_trial_add(db, *study, &trial, &st));
    }
    return db;
}

static void assert_choice(const struct choice *c, const char *impl, const char *schedule)
{
    SCOPED_BUF text = BUF_INIT;
    schedule_text(c->impl, &c->schedule, &text);
    ck_assert_str_eq(c->impl->name, impl);
    ck_assert_str_eq(text.ptr, schedule);
}

static const struct build_target hopper = {HOPPER_FP16, .library = true};

static const struct {
    struct arch_list archs;
    int fastest; /* of stored */
} lists[] = {
    {{1, {90}}, 0}, {{2, {80, 90}}, 1}, {{1, {80}}, 1}, {{2, {80, 86}}, 2}, {{3, {80, 86, 90}}, 2},
};

TEST_LOOP(fastest_that_runs_on_all_architectures, 0, ARRAY_LEN(lists))
{
    const struct arch_list *archs = &lists[_i].archs;
    struct build_target target = hopper;
    struct candidate c;
    int64_t study;
    SCOPED_BY(db_close_at) struct db *db = open_stored(&study);
    target.arch = archs->arch[0];
    const struct choice_source from = {.db = db, .study = study, .target = &target, .archs = archs};
    OK(study_candidate(&from, plan_from_value(VALUE_UNFUSED), &c, &st));
    ck_assert_int_eq(c.count, OP_COUNT);
    assert_choice(&c.choices[0], stored[lists[_i].fastest].impl,
                  stored[lists[_i].fastest].schedule);
    /* It won at a product, so the next product runs by it, too. */
    ck_assert_str_eq(c.choices[7].impl->name, stored[lists[_i].fastest].impl);
}

enum { HOPPER_GEMM = 0, GENERATED = 1, LIBRARY = 4, NOTHING = -1 }; /* of stored */

/* What was timed of 0-0, from the fastest, and what runs a segment that was not timed: a GEMM the
 * implementation that won over another at a GEMM. */
static const struct {
    int timed[2];
    struct segment of;
    const char *impl;
} elsewhere[] = {
    {{LIBRARY, NOTHING}, {10, 10}, "hopper_gemm"}, /* it had no rival */
    {{LIBRARY, HOPPER_GEMM}, {10, 10}, "library"},
    {{LIBRARY, HOPPER_GEMM}, {10, 11}, "library"},
    {{GENERATED, HOPPER_GEMM}, {10, 10}, "generated"},
    {{GENERATED, HOPPER_GEMM}, {1, 6}, "hopper_attention"}, /* no GEMM */
};

TEST_LOOP(implementation_that_won_elsewhere, 0, ARRAY_LEN(elsewhere))
{
    struct segment of = elsewhere[_i].of;
    struct candidate c;
    int64_t study;
    SCOPED_BY(db_close_at) struct db *db = open_fresh(&study);
    for (int i = 0; i < 2 && elsewhere[_i].timed[i] != NOTHING; i++) {
        int n = elsewhere[_i].timed[i];
        const struct db_choice choice = {{0, 0}, stored[n].impl, stored[n].schedule};
        const struct db_trial trial = segment_trial(&choice, 1 + i);
        OK(db_trial_add(db, study, &trial, &st));
    }
    const struct choice_source from = {.db = db, .study = study, .target = &hopper};
    struct plan p = plan_of((uint16_t)((1U << of.last) - (1U << of.first)), false);
    OK(study_candidate(&from, p, &c, &st));
    ck_assert_str_eq(c.choices[of.first].impl->name, elsewhere[_i].impl);
}

/* The unfused plan ran 0-0 in its finals by another tile than the fastest alone. */
static struct db *open_compared(int64_t *study, const struct build_target *target, int segments)
{
    struct db_choice choices[OP_COUNT];
    struct buf texts[OP_COUNT];
    struct candidate usual;
    struct db *db = open_stored(study);
    struct db_trial final = final_trial(VALUE_UNFUSED, 1, "a comparison");
    candidate_default(target, plan_from_value(VALUE_UNFUSED), &usual);
    for (int i = 0; i < OP_COUNT; i++) {
        buf_init(&texts[i]);
        schedule_text(usual.choices[i].impl, &usual.choices[i].schedule, &texts[i]);
        choices[i] =
            (struct db_choice){usual.choices[i].segment, usual.choices[i].impl->name, texts[i].ptr};
    }
    choices[0] = (struct db_choice){{0, 0}, "hopper_gemm", "tile=64x64 split=1 norm=cluster"};
    choices[segments - 1].segment.last = OP_COUNT - 1;
    final.choices = choices;
    final.choice_count = segments;
    OK(db_trial_add(db, *study, &final, &st));
    for (int i = 0; i < OP_COUNT; i++)
        buf_release(&texts[i]);
    return db;
}

static const struct {
    struct arch_list archs;
    int segments; /* of the stored finals */
    bool alone;
    const char *impl, *schedule;
} fitted[] = {
    {{1, {90}}, OP_COUNT, false, "hopper_gemm", "tile=64x64 split=1 norm=cluster"},
    {{1, {90}}, OP_COUNT, true, "hopper_gemm", "tile=128x192 split=1 norm=cluster"},
    {{2, {80, 90}}, OP_COUNT, false, "generated", "tile=128x192 split=1 norm=barrier resident=1"},
    /* Segments of another plan than the row's: no choices of this one. */
    {{1, {90}}, OP_COUNT - 1, false, "hopper_gemm", "tile=128x192 split=1 norm=cluster"},
};

TEST_LOOP(as_in_the_finals_where_that_runs, 0, ARRAY_LEN(fitted))
{
    struct candidate c;
    int64_t study;
    SCOPED_BY(db_close_at) struct db *db = open_compared(&study, &hopper, fitted[_i].segments);
    const struct choice_source from = {.db = db,
                                       .study = study,
                                       .target = &hopper,
                                       .archs = &fitted[_i].archs,
                                       .alone = fitted[_i].alone};
    OK(study_candidate(&from, plan_from_value(VALUE_UNFUSED), &c, &st));
    ck_assert_int_eq(c.count, OP_COUNT);
    assert_choice(&c.choices[0], fitted[_i].impl, fitted[_i].schedule);
}

SUITE("search/candidate", test_dir_setup, test_dir_teardown)
