/* tune() with every plan measured, on a fake bench. */
#include "tune_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SPACE_LO = 40000, SPACE_HI = 40063, PLANS = SPACE_HI - SPACE_LO + 1, BESIDE = 2 };

static void setup(void)
{
    open_all();
    options = (struct tune_options){.search = {.space_lo = SPACE_LO,
                                               .space_hi = SPACE_HI,
                                               .seed = 1,
                                               .quantile = 0.1,
                                               .stop = &fake.stop},
                                    .rigor = RIGOR_EXHAUSTIVE,
                                    .baselines = usual_baselines()};
}

/* ---- what is stored -------------------------------------------------------------------------- */

enum { ROWS_MAX = 200 };

struct stored {
    int count, failed;
    int values[ROWS_MAX];
    char comparisons[ROWS_MAX][64];
    bool seen[VALUE_MAX + 1];
    struct db_choice used[OP_COUNT][OP_COUNT]; /* [first][last]: of the plans, owned texts */
    char reason[200];                          /* of the last that failed */
};

/* All plans run a segment by the same choice. */
static void check_choice(struct stored *s, const struct db_choice *c)
{
    struct db_choice *used = &s->used[c->segment.first][c->segment.last];
    if (used->impl == NULL)
        *used = (struct db_choice){c->segment, mem_strdup(c->impl), mem_strdup(c->schedule)};
    if (segment_is_attention(c->segment)) /* generated or written by hand */
        return;
    ck_assert_str_eq(used->impl, c->impl);
    ck_assert_str_eq(used->schedule, c->schedule);
}

static int row(void *ctx, const struct db_trial *t)
{
    struct stored *s = ctx;
    ck_assert_int_lt(s->count, ROWS_MAX);
    ck_assert_int_ne(t->status, TRIAL_CENSORED);
    s->seen[t->value] = true;
    snprintf(s->comparisons[s->count], sizeof(s->comparisons[0]), "%s", t->comparison);
    s->values[s->count++] = t->value;
    if (t->status == TRIAL_FAILED) {
        s->failed++;
        snprintf(s->reason, sizeof(s->reason), "%s", t->reason);
        return 0;
    }
    for (int i = 0; i < t->choice_count; i++)
        check_choice(s, &t->choices[i]);
    return 0;
}

static void release(struct stored *s)
{
    for (int first = 0; first < OP_COUNT; first++)
        for (int last = 0; last < OP_COUNT; last++) {
            free((char *)s->used[first][last].impl);
            free((char *)s->used[first][last].schedule);
        }
    memset(s, 0, sizeof(*s));
}

static const struct stored *read_back(enum db_trial_kind kind)
{
    static struct stored s;
    int64_t study;
    release(&s);
    ck_assert_int_eq(study_open(bench, db, &study, &st), 0);
    ck_assert_int_eq(db_trials(db, study, kind, row, &s, &st), 0);
    return &s;
}

static void check_all_measured(void)
{
    const struct stored *s = read_back(DB_TRIAL_PLAN);
    ck_assert_int_eq(s->count, PLANS + BESIDE);
    for (int value = SPACE_LO; value <= SPACE_HI; value++)
        ck_assert_msg(s->seen[value], "%d was not measured", value);
    ck_assert_str_eq(report.stopped_by, "space");
    ck_assert_int_eq(report.space_trials, report.space);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(every_plan_is_measured)
{
    fake.slow_value = 40011; /* not given up either */
    run();
    check_all_measured();
    ck_assert_int_eq(fake.plans, PLANS + BESIDE);
    ck_assert_int_eq(report.new_trials, PLANS + BESIDE);
    ck_assert(isnan(report.expected_faster_share)); /* no plan is left to predict */
    ck_assert(isnan(report.model_spearman));
    double best_ms = INFINITY;
    const struct stored *s = read_back(DB_TRIAL_PLAN);
    for (int i = 0; i < s->count; i++)
        best_ms = fmin(best_ms, made_up_ms(&fake.space, (unsigned)s->values[i]));
    ck_assert_double_eq(report.best.median_ms, best_ms);
    int calls = fake.calls;
    run();
    ck_assert_int_eq(fake.calls, calls);
    ck_assert_str_eq(report.stopped_by, "space");
}
END_TEST

/* So that neither drift nor a budget follows the value. */
START_TEST(order_is_drawn)
{
    run();
    const struct stored *s = read_back(DB_TRIAL_PLAN);
    int rising = 0;
    for (int i = BESIDE + 1; i < s->count; i++)
        rising += s->values[i] > s->values[i - 1];
    ck_assert_int_gt(rising, PLANS / 4);
    ck_assert_int_lt(rising, 3 * PLANS / 4);
}
END_TEST

START_TEST(two_comparisons)
{
    run();
    ck_assert_int_eq(fake.fits, 0); /* all plans run the same schedules */
    ck_assert_int_eq(fake.compares, 2);
    const struct stored *s = read_back(DB_TRIAL_FINAL);
    int refined = 0;
    while (refined < s->count && strcmp(s->comparisons[refined], s->comparisons[0]) == 0)
        refined++;
    ck_assert_int_eq(refined, PLANS + BESIDE);
    for (int i = refined; i < s->count; i++)
        ck_assert_str_eq(s->comparisons[i], s->comparisons[refined]);
    ck_assert_int_ge(s->count - refined, 4 + BESIDE);
    ck_assert_int_le(s->count - refined, 4 + BESIDE + 1);
    ck_assert(report.best.final);
    ck_assert(!isnan(report.baselines[0].ms.median) && !isnan(report.baselines[1].ms.median));
}
END_TEST

static bool among(const struct stored *s, int from, int to, unsigned value)
{
    for (int i = from; i < to; i++)
        if (s->values[i] == (int)value)
            return true;
    return false;
}

/* What was fast in the search by chance is found out by the first comparison. */
START_TEST(finals_are_of_what_the_first_comparison_found)
{
    fake.lucky_value = SPACE_LO;
    for (unsigned value = SPACE_LO; value <= SPACE_HI; value++)
        if (made_up_ms(&fake.space, value) > made_up_ms(&fake.space, fake.lucky_value))
            fake.lucky_value = value; /* the slowest */
    run();
    const struct stored *s = read_back(DB_TRIAL_FINAL);
    int refined = fake.compared[0].plans;
    ck_assert(among(s, 0, refined, fake.lucky_value));
    ck_assert_int_gt(s->count, refined);
    ck_assert(!among(s, refined, s->count, fake.lucky_value));
}
END_TEST

/* Fourteen rounds of all plans, the fewest that are worth it, take 3 s. */
static void slow_down(void)
{
    double round_ms = made_up_ms(&fake.space, VALUE_UNFUSED) + made_up_ms(&fake.space, 41115);
    for (unsigned value = SPACE_LO; value <= SPACE_HI; value++)
        round_ms += made_up_ms(&fake.space, value);
    fake.speed = 14 * round_ms / 3000;
}

/* Where there is the time for all of it, and once. _i: the budget is spent. */
START_TEST(comparison_cut_short_is_widened)
{
    slow_down();
    options.search.time_limit_s = 4;
    run();
    options.search.budget = _i * (PLANS + BESIDE);
    run();
    ck_assert_int_eq(fake.compares, 2);
    options.search.time_limit_s = 0;
    run();
    ck_assert_int_eq(fake.compares, 4);
    ck_assert_int_eq(fake.compared[2].plans, PLANS + BESIDE);
    ck_assert_int_eq(report.new_trials, 0);
    run();
    ck_assert_int_eq(fake.compares, 4);
}
END_TEST

/* No plan with it is built, and each says why. */
START_TEST(broken_segment_fails_its_plans)
{
    fake.broken = (struct segment){8, 9};
    run();
    check_all_measured();
    const struct stored *s = read_back(DB_TRIAL_PLAN);
    int broken = 0;
    for (int i = 0; i < s->count; i++) {
        struct segment segments[OP_COUNT];
        int count = plan_segments(plan_from_value((unsigned)s->values[i]), segments);
        for (int k = 0; k < count; k++)
            broken += segments[k].first == 8 && segments[k].last == 9;
    }
    ck_assert_int_gt(broken, 1);
    ck_assert_int_eq(s->failed, broken);
    ck_assert_int_eq(report.failed_trials, broken);
    ck_assert_int_eq(fake.plans, PLANS + BESIDE - broken);
    ck_assert_int_eq(fake.broken_in_plan, 0);
    ck_assert_ptr_nonnull(strstr(s->reason, "ops 8-9 fail alone: row 3 is wrong"));
}
END_TEST

/* The finals are made up for, among the plans that were compared before them. */
START_TEST(interrupt_between_comparisons)
{
    run();
    int calls = fake.calls;
    teardown();
    setup();
    fake.stop_at_call = calls; /* the finals */
    run();
    ck_assert_str_eq(report.stopped_by, "interrupted");
    ck_assert_int_eq(fake.compares, 1);
    fake.stop = 0;
    options.search.budget = _i * (PLANS + BESIDE); /* spent, or none */
    run();
    ck_assert_int_eq(fake.compares, 2);
    ck_assert_int_eq(fake.plans, PLANS + BESIDE);
    ck_assert_int_le(read_back(DB_TRIAL_FINAL)->count, PLANS + BESIDE + 4 + BESIDE + 1);
    ck_assert(report.best.final);
    run();
    ck_assert_int_eq(fake.compares, 2);
}
END_TEST

/* No plan runs before its segments' choices are final, so that all plans share them. */
START_TEST(short_time_measures_no_plan)
{
    fake.seconds_per_segment = 0.02;
    options.search.time_limit_s = 0.5;
    run();
    ck_assert_str_eq(report.stopped_by, "time");
    ck_assert_int_gt(fake.segments, 0);
    ck_assert_int_eq(fake.plans, 0);
    fake.seconds_per_segment = 0;
    options.search.time_limit_s = 0;
    run();
    check_all_measured();
}
END_TEST

SUITE("search/exhaustive", setup, teardown, ONCE(every_plan_is_measured), ONCE(order_is_drawn),
      ONCE(two_comparisons), ONCE(finals_are_of_what_the_first_comparison_found),
      LOOP(comparison_cut_short_is_widened, 0, 2), ONCE(broken_segment_fails_its_plans),
      LOOP(interrupt_between_comparisons, 0, 2), ONCE(short_time_measures_no_plan))
