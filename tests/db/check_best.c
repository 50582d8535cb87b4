#include "tests/db/one_fixture.h"

#include "codegen/codegen.h"

static struct db_best best;

static void add(struct db_trial t)
{
    OK(db_trial_add(db, study, &t, &st));
}

/* Of db_best(), whose answer stays in `best`. */
static void check_best(int value, bool final, double median_ms, const char *comparison)
{
    db_best_release(&best);
    OK(db_best(db, study, &best, &st));
    ck_assert_int_eq(best.value, value);
    ck_assert_int_eq(best.final, final);
    ck_assert_double_eq(best.ms.median, median_ms);
    ck_assert_str_eq(best.comparison, comparison);
}

static void check_compared(const char *comparison)
{
    SCOPED_BUF found = BUF_INIT;
    OK(db_compared(db, study, &found, &st));
    ck_assert_str_eq(found.ptr, comparison);
}

/* Of one comparison; where it is empty, of a search. */
static struct interval time_of(int value, const char *comparison)
{
    SCOPED_BY(db_time_release) struct db_time t;
    int found = db_time(db, study, value, comparison, &t, &st);
    ck_assert_msg(found >= 0, "%s", st.message);
    ck_assert_int_eq(found > 0, t.stored_utc[0] != '\0');
    return t.ms;
}

TEST(nothing_known_is_not_found)
{
    FAILS(db_best(db, study, &best, &st), STATUS_NOT_FOUND, "no plan");
    add(failed_trial(43690, "wrong"));
    add(segment_trial(some_choices, 1));
    best.choice_count = 99;
    FAILS(db_best(db, study, &best, &st), STATUS_NOT_FOUND, "no plan");
    ck_assert_int_eq(best.choice_count, 0);
    db_set_precision(db, 5);
    FAILS(db_best(db, study, &best, &st), STATUS_NOT_FOUND,
          "for this workload with --precision qkv,ffn1; 'fuseplan search --precision qkv,ffn1' "
          "measures more");
}

TEST(fastest_plan_before_finals)
{
    struct db_trial censored = plan_trial(40000, 0.5);
    censored.status = TRIAL_CENSORED;
    add(plan_trial(VALUE_UNFUSED, 4));
    add(plan_trial(50, 2));
    add(plan_trial(51, 3));
    add(censored);
    add(failed_trial(52, "compile"));

    check_best(50, false, 2, "");
    ck_assert_double_eq(best.ms.low, 1.875);
    ck_assert_double_eq(best.ms.high, 2.125);
    ck_assert_double_eq(time_of(VALUE_UNFUSED, "").median, 4);
    ck_assert(isnan(time_of(40000, "").median));
    ck_assert(isnan(time_of(52, "").median));
    ck_assert(isnan(time_of(53, "").median));
    ck_assert_int_eq(best.plans_total, 5);
    ck_assert_int_eq(best.plans_failed, 1);
    ck_assert_int_eq(best.plans_censored, 1);
}

TEST(finals_decide)
{
    int64_t other;
    OK(db_study(db, &a_workload, &a_target, "2", &other, &st));
    struct db_trial foreign = final_trial(7, 0.25, "a");
    OK(db_trial_add(db, other, &foreign, &st));
    add(plan_trial(50, 1));
    add(final_trial(VALUE_UNFUSED, 1.5, "b")); /* another day, another speed */
    add(final_trial(51, 1, "b"));
    add(final_trial(51, 3, "a"));
    add(final_trial(52, 2, "a"));
    add(final_trial(VALUE_UNFUSED, 6, "a"));
    add(final_trial(41115, 5, "a"));

    check_best(52, true, 2, "a");
    struct interval unfused = time_of(VALUE_UNFUSED, best.comparison);
    ck_assert_double_eq(unfused.median, 6);
    ck_assert_double_eq(unfused.low, 5.875);
    ck_assert_double_eq(unfused.high, 6.125);
    ck_assert_double_eq(time_of(VALUE_UNFUSED, "b").median, 1.5);
    int rival = 52;
    ck_assert_int_eq(db_rival(db, study, 52, "c", &rival, &st), 0);
    ck_assert_int_eq(rival, 52);
    ck_assert_int_eq(db_rival(db, study, 52, "a", &rival, &st), 1);
    ck_assert_int_eq(rival, 51);
    ck_assert(isnan(time_of(VALUE_UNFUSED, "").median));
    ck_assert_int_eq(best.plans_total, 5);
}

/* Of plans within half a percent of the fastest the one of the largest value, in the rounds that
 * both have.  What a search measured later still counts. */
TEST(of_ties_the_largest_value_wins)
{
    struct db_trial bare = final_trial(90, 2, "a");
    add(final_trial(50, 2, "a"));
    add(final_trial(60, 2.008, "a"));
    add(final_trial(70, 2.02, "a"));
    add(final_trial(40, 2.001, "a"));
    check_best(60, true, 2.008, "a");
    bare.sample_count = 0; /* another version stored it */
    add(bare);
    check_best(60, true, 2.008, "a");
    add(final_trial(80, 2.007, "a"));
    check_best(80, true, 2.007, "a");
    add(plan_trial(80, 3));
    add(plan_trial(50, 2.5));
    add(plan_trial(55, 2.9)); /* the fastest of the finals took less */
    check_best(80, true, 2.007, "a");
    add(plan_trial(56, 2.4));
    check_best(56, false, 2.4, "");
}

TEST(packed_is_of_the_fastest)
{
    struct db_trial final = final_trial(52, 2, "a"), plan = plan_trial(60, 1);
    final.packed = 1;
    add(plan_trial(52, 3));
    add(final);
    add(final_trial(50, 4, "a"));
    check_best(52, true, 2, "a");
    ck_assert(best.packed);
    add(plan); /* a faster plan of a search, which ran with padding */
    check_best(60, false, 1, "");
    ck_assert(!best.packed);
    plan = plan_trial(61, 0.5);
    plan.packed = 1;
    add(plan);
    check_best(61, false, 0.5, "");
    ck_assert(best.packed);
}

/* A study has a plan in each precision, and a reader sees those of one. */
TEST(precisions_do_not_mix)
{
    struct db_trial plan = plan_trial(60, 1), final = final_trial(50, 1.5, "b");
    plan.precision = GEMM_ALL;
    final.precision = 1 << GEMM_FFN1;
    add(plan_trial(60, 3));
    add(plan_trial(61, 4));
    add(plan); /* a faster plan of another precision */
    add(final);
    add(failed_trial(62, "wrong"));
    check_best(60, false, 3, "");
    ck_assert_uint_eq(best.precision, 0);
    ck_assert_int_eq(best.plans_total, 3);
    check_compared("");
    db_set_precision(db, GEMM_ALL);
    check_best(60, false, 1, "");
    ck_assert_uint_eq(best.precision, GEMM_ALL);
    ck_assert_int_eq(best.plans_total, 1);
    ck_assert_double_eq(time_of(60, "").median, 1);
    ck_assert(isnan(time_of(61, "").median));
    db_set_precision(db, 1 << GEMM_FFN1);
    check_best(50, true, 1.5, "b");
    check_compared("b");
    db_set_precision(db, 1 << GEMM_QKV);
    db_best_release(&best);
    FAILS(db_best(db, study, &best, &st), STATUS_NOT_FOUND, "no plan");
    plan = failed_trial(70, "launch");
    plan.precision = 1 << GEMM_OUT;
    add(plan);
    add(plan_trial(70, 9));
    expect_sql(db->handle, 0, "SELECT count(*) FROM failure");
    plan = plan_trial(70, 9);
    plan.precision = 1 << GEMM_OUT;
    add(plan);
    expect_sql(db->handle, 1, "SELECT count(*) FROM failure WHERE precision = 2");
    assert_whole(db);
}

/* In the finals of a search for plans in e4m3 the plans in fp16 are baselines. */
TEST(baselines_of_another_precision)
{
    struct db_trial final = final_trial(50, 1, "b");
    char search[HASH_TEXT_SIZE];
    final.precision = GEMM_ALL;
    add(plan_trial(60, 3));
    add(final_trial(60, 3, "a"));
    add(final_trial(41, 5, "a"));
    OK(db_search_start(db, study, "guided", "{}", search, &st));
    final.search = search;
    add(final);
    final = final_trial(41, 5, "b");
    final.search = search;
    add(final);
    check_best(60, true, 3, "a");
    check_compared("a");
    OK(db_search_start(db, study, "precisions", "{}", search, &st)); /* compares fp16's best, too */
    final = final_trial(50, 1, "c");
    final.precision = GEMM_ALL;
    final.search = search;
    add(final);
    final = final_trial(60, 3.5, "c");
    final.search = search;
    add(final);
    check_best(60, true, 3.5, "c");
    assert_whole(db);
}

/* What is stored last counts as the newest, though the clock went back: another search compares
 * anew, and a faster plan of a search comes after that. */
TEST(clock_may_go_back)
{
    struct db_trial early = final_trial(52, 2, "a");
    early.stored_utc = "2999-01-01T00:00:00.000Z";
    add(plan_trial(52, 3));
    add(plan_trial(50, 4));
    add(early);
    add(final_trial(50, 1, "b"));
    check_best(50, true, 1, "b");
    add(plan_trial(60, 0.5));
    check_best(60, false, 0.5, "");
}

TEST(time_has_its_reason_or_its_samples)
{
    struct db_time t;
    struct db_trial failed = failed_trial(51, "launch");
    failed.kind = DB_TRIAL_FINAL;
    failed.comparison = "a";
    add(failed);
    add(final_trial(52, 2, "a"));
    ck_assert_int_eq(db_time(db, study, 51, "a", &t, &st), 1);
    ck_assert(isnan(t.ms.median));
    ck_assert_str_eq(t.reason, "because");
    db_time_release(&t);
    ck_assert_int_eq(db_time(db, study, 52, "a", &t, &st), 1);
    ck_assert_int_eq(t.sample_count, ARRAY_LEN(some_samples));
    for (int i = 0; i < t.sample_count; i++)
        ck_assert_double_eq(t.samples_ms[i], 2 * some_samples[i]);
    db_time_release(&t);
    OK(db_time(db, study, 52, "b", &t, &st));
    db_time_release(&t);
}

/* What a search finds after a comparison, and is stopped before the next. */
TEST(faster_plan_since_wins)
{
    check_compared("");
    add(plan_trial(49, 1));
    add(plan_trial(50, 2));
    struct db_trial failed = failed_trial(50, "launch");
    failed.kind = DB_TRIAL_FINAL;
    failed.comparison = "none ran";
    add(failed);
    check_compared("");
    add(final_trial(50, 3, "a"));
    add(final_trial(49, 4, "a"));
    check_compared("a");
    add(plan_trial(51, 2.5)); /* faster than the final, slower than its plan's trial */
    check_compared("");
    check_best(50, true, 3, "a");
    add(plan_trial(52, 1.5));
    check_best(52, false, 1.5, "");
}

static struct db_trial stored_at(struct db_trial t, const char *utc)
{
    t.stored_utc = utc;
    return t;
}

/* Merging stores old trials after newer ones. */
TEST(time_decides_and_not_the_order_of_storing)
{
    struct db_study s = {
        .target = a_target, .protocol = "1", .init = "uniform", .seed = UINT64_MAX};
    int64_t found;
    add(stored_at(plan_trial(50, 3), "2026-02-02T00:00:00.000Z"));
    add(stored_at(final_trial(50, 2, "new"), "2026-02-02T00:00:01.000Z"));
    add(stored_at(plan_trial(51, 2), "2026-01-01T00:00:00.000Z"));
    add(stored_at(final_trial(51, 1, "old"), "2026-01-01T00:00:01.000Z"));
    check_compared("new");
    check_best(50, true, 2, "new");

    struct db_trial final = stored_at(final_trial(51, 1, "new"), "2026-02-02T00:00:01.000Z");
    final.comparison = "new";
    add(final);
    add(stored_at(final_trial(51, 4, "new"), "2026-01-01T00:00:00.000Z"));
    ck_assert_double_eq(time_of(51, "new").median, 1);

    struct db_target twin = a_target;
    twin.uuid = "4321";
    s.target.uuid = ""; /* as near to the one as to the other */
    OK(db_study(db, &a_workload, &twin, "1", &found, &st));
    struct db_trial older = stored_at(plan_trial(50, 3), "2026-02-01T00:00:00.000Z");
    OK(db_trial_add(db, found, &older, &st));
    OK(db_study_find(db, a_workload.text, "cpu", &s, &found, &st));
    ck_assert_int_eq(found, study);
}

/* One may ask for the times of slow plans only. */
TEST(bench_decides_nothing)
{
    char id[HASH_TEXT_SIZE];
    struct db_trial final = final_trial(VALUE_UNFUSED, 4, "a");
    OK(db_search_start(db, study, "bench", "{\"a\": 1}", id, &st));
    final.search = id;
    struct db_trial plan = plan_trial(50, 2);
    plan.search = id;
    add(plan_trial(VALUE_UNFUSED, 4));
    add(plan);
    add(final);
    check_best(50, false, 2, "");
    ck_assert_str_eq(best.search_options, "{\"a\": 1}");
    check_compared("");
}

TEST(choices_carry_their_segments_time)
{
    struct db_choice other = some_choices[0];
    other.schedule = "mb=128";
    add(segment_trial(&some_choices[0], 0.5));
    add(segment_trial(&other, 0.25));
    add(segment_trial(&some_choices[1], 0.75));
    add(plan_trial(50, 2));

    OK(db_best(db, study, &best, &st));
    ck_assert_int_eq(best.choice_count, ARRAY_LEN(some_choices));
    for (int i = 0; i < best.choice_count; i++) {
        ck_assert_int_eq(best.choices[i].segment.first, some_choices[i].segment.first);
        ck_assert_int_eq(best.choices[i].segment.last, some_choices[i].segment.last);
        ck_assert_str_eq(best.choices[i].impl, some_choices[i].impl);
        ck_assert_str_eq(best.choices[i].schedule, some_choices[i].schedule);
    }
    ck_assert_double_eq(best.choice_ms[0], 0.5);
    ck_assert_double_eq(best.choice_ms[1], 0.75);
    ck_assert(isnan(best.choice_ms[2]));
}

TEST(plans_are_counted_once)
{
    struct db_trial censored = plan_trial(2, 5);
    censored.status = TRIAL_CENSORED;
    struct db_trial failed_final = failed_trial(2, "timeout");
    failed_final.kind = DB_TRIAL_FINAL;
    add(failed_trial(1, "launch"));
    add(final_trial(1, 3, "a"));
    add(censored);
    add(failed_final);
    add(failed_final);
    OK(db_best(db, study, &best, &st));
    ck_assert_int_eq(best.plans_total, 2);
    ck_assert_int_eq(best.plans_failed, 2);
    ck_assert_int_eq(best.plans_censored, 1);
}

SUITE("db/best", setup, teardown)
