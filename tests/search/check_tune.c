#include "tune_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void setup(void)
{
    open_all();
    options = (struct tune_options){.search = {.strategy = strategy_find("guided"),
                                               .space_lo = 32768,
                                               .space_hi = 49152,
                                               .budget = 20,
                                               .seed = 1,
                                               .quantile = 0.1,
                                               .stop = &fake.stop}};
}

/* ---- what is stored ------------------------------------------------------------------------ */

struct stored {
    int segments, plans, finals, failed;
    bool seen[VALUE_MAX + 1], ok[VALUE_MAX + 1];
    char reason[200]; /* of the last failed plan */
};

static int segment_row(void *ctx, const struct db_trial *row)
{
    struct stored *s = ctx;
    s->segments++;
    ck_assert_int_eq(row->value, -1);
    ck_assert_int_eq(row->choice_count, 1);
    return 0;
}

static int plan_row(void *ctx, const struct db_trial *row)
{
    struct stored *s = ctx;
    s->plans++;
    ck_assert_msg(!s->seen[row->value], "%d is stored twice", row->value);
    s->seen[row->value] = true;
    s->ok[row->value] = strcmp(row->status, "ok") == 0;
    if (strcmp(row->status, "failed") == 0) {
        s->failed++;
        snprintf(s->reason, sizeof(s->reason), "%s: %s", row->reason_code, row->reason);
    }
    return 0;
}

static int final_row(void *ctx, const struct db_trial *row)
{
    struct stored *s = ctx;
    s->finals++;
    ck_assert_msg(s->ok[row->value], "final %d is no plan that ran", row->value);
    ck_assert_int_eq(row->sample_count, 6);
    ck_assert_str_ne(row->comparison, "");
    return 0;
}

static void no_problem(void *ctx, const char *problem)
{
    (void)ctx;
    ck_abort_msg("%s", problem);
}

/* Reads all back; whatever happened before, no trial may be doubled. */
static struct stored *read_back(void)
{
    static struct stored s;
    memset(&s, 0, sizeof(s));
    int64_t study;
    int problems;
    ck_assert_int_eq(study_open(bench, db, 0, false, &study, &st), 0);
    ck_assert_int_eq(db_trials(db, study, DB_TRIAL_SEGMENT, segment_row, &s, &st), 0);
    ck_assert_int_eq(db_trials(db, study, DB_TRIAL_PLAN, plan_row, &s, &st), 0);
    ck_assert_int_eq(db_trials(db, study, DB_TRIAL_FINAL, final_row, &s, &st), 0);
    ck_assert_int_eq(db_check(db, no_problem, NULL, &problems, &st), 0);
    return &s;
}

/* ---- tests --------------------------------------------------------------------------------- */

START_TEST(finds_stores_and_reports)
{
    run();
    struct stored *s = read_back();
    ck_assert_int_eq(s->plans, 20);
    ck_assert_int_eq(s->segments, fake.segments);
    ck_assert_int_eq(fake.built, fake.segments);
    ck_assert_int_eq(fake.compares, 1);
    ck_assert_int_ge(s->finals, 6); /* four, and two references that do not win here */
    ck_assert(s->seen[VALUE_UNFUSED] && s->seen[VALUE_FIRST_VERSION]);
    ck_assert_int_eq(report.new_trials, 20);
    ck_assert_int_eq(report.total_trials, 20);
    ck_assert_int_eq(report.failed_trials, 0);
    ck_assert_int_eq(report.space, 16384);
    ck_assert_str_eq(report.stopped_by, "budget");
    ck_assert(report.best.final);
    double best_ms = INFINITY;
    for (int v = 0; v <= VALUE_MAX; v++)
        if (s->ok[v])
            best_ms = fmin(best_ms, made_up_ms(&fake.space, (unsigned)v));
    ck_assert_double_eq(report.best.median_ms, best_ms);
    double unfused_ms = made_up_ms(&fake.space, VALUE_UNFUSED);
    ck_assert_double_eq(report.best.unfused.median, unfused_ms);
    ck_assert_double_eq(report.best.unfused.low, 0.99 * unfused_ms);
    ck_assert_double_eq(report.best.first_version.median,
                        made_up_ms(&fake.space, VALUE_FIRST_VERSION));
    ck_assert_int_ge(report.additive_value, 0);
    ck_assert(!isnan(report.model_spearman));
}
END_TEST

START_TEST(spent_budget_measures_nothing)
{
    run();
    int value = report.best.value, calls = fake.calls;
    double ms = report.best.median_ms;
    run();
    ck_assert_int_eq(fake.calls, calls);
    ck_assert_int_eq(report.new_trials, 0);
    ck_assert_int_eq(report.total_trials, 20);
    ck_assert_int_eq(report.best.value, value);
    ck_assert_double_eq(report.best.median_ms, ms);
    ck_assert(!isnan(report.best.unfused.median));
    ck_assert_str_eq(report.stopped_by, "budget");
}
END_TEST

START_TEST(larger_budget_goes_on)
{
    run();
    int segments = fake.segments;
    options.search.budget = 30;
    run();
    ck_assert_int_eq(fake.segments, segments);
    ck_assert_int_eq(report.new_trials, 10);
    ck_assert_int_eq(read_back()->plans, 30);
    ck_assert_int_eq(fake.compares, 2);
}
END_TEST

START_TEST(converged_search_stays_so)
{
    options.search.budget = 0;
    run();
    ck_assert_str_eq(report.stopped_by, "converged");
    int calls = fake.calls;
    run();
    ck_assert_str_eq(report.stopped_by, "converged");
    ck_assert_int_eq(fake.calls, calls);
}
END_TEST

START_TEST(tiny_budgets)
{
    for (int budget = 1; budget <= 3; budget++) {
        options.search.budget = budget;
        run();
        struct stored *s = read_back();
        ck_assert_int_eq(s->plans, budget);
        ck_assert(s->seen[VALUE_UNFUSED]);
        ck_assert_int_eq(s->seen[VALUE_FIRST_VERSION], budget > 1);
    }
}
END_TEST

/* Only the climbed segments were timed with more than their defaults, and the plans use what won.
 */
START_TEST(schedules_are_climbed)
{
    run();
    int defaults = SEGMENT_COUNT + 1;
    ck_assert_int_gt(fake.segments, defaults);
    bool off_default = false;
    for (int i = 0; i < report.best.choice_count; i++) {
        const struct db_choice *c = &report.best.choices[i];
        const struct impl *impl = impl_find(TARGET_CPU, c->impl);
        struct choice choice = {.impl = impl};
        ck_assert_int_eq(schedule_parse(impl, c->schedule, &choice.schedule, &st), 0);
        for (int k = 0; k < impl->knob_count; k++)
            off_default |= choice.schedule.pick[k] != 0;
        ck_assert(!isnan(report.best.choice_ms[i]));
    }
    ck_assert(off_default);
}
END_TEST

static const struct segment attention = {2, 6}, layernorm = {8, 9};

/* 41115 holds both; ops 2-6 are the hand-written ones there. */
START_TEST(broken_segment_breaks_its_plans_unbuilt)
{
    fake.broken = _i % 2 == 0 ? layernorm : attention;
    fake.broken_at_build = _i / 2;
    run();
    struct stored *s = read_back();
    ck_assert(!fake.broken_in_plan);
    ck_assert_int_eq(s->plans, 20);
    ck_assert_int_eq(s->failed, 1);
    ck_assert_int_eq(report.failed_trials, 1);
    ck_assert(s->seen[VALUE_FIRST_VERSION] && !s->ok[VALUE_FIRST_VERSION]);
    ck_assert_ptr_nonnull(strstr(s->reason, _i % 2 == 0 ? "ops 8-9" : "ops 2-6"));
    ck_assert_ptr_nonnull(strstr(s->reason, _i / 2 ? "syntax error" : "row 3 is wrong"));
    ck_assert(isnan(report.best.first_version.median));
    ck_assert(!isnan(report.best.unfused.median));
    int calls = fake.calls;
    run();
    ck_assert_int_eq(fake.calls, calls);
}
END_TEST

START_TEST(plan_that_fails_alone_is_no_end)
{
    fake.broken_value = VALUE_FIRST_VERSION;
    run();
    struct stored *s = read_back();
    ck_assert_int_eq(s->plans, 20);
    ck_assert_str_eq(s->reason, "wrong: layer 0 is wrong");
    ck_assert(report.best.value >= 0);
}
END_TEST

/* The references are wanted however slow they are, all other plans are not. */
START_TEST(hopeless_plan_is_censored)
{
    options.search.space_lo = options.search.space_hi = fake.slow_value = 40011;
    run();
    ck_assert_int_eq(report.censored_trials, 1);
    ck_assert_int_eq(fake.plans, 4); /* the best once more */
    fake.slow_value = VALUE_FIRST_VERSION;
    options.input_seed = 1;
    run();
    ck_assert_int_eq(report.censored_trials, 0);
    ck_assert_double_gt(report.best.first_version.median, 4 * report.best.unfused.median);
}
END_TEST

/* Stores a plan as `bench` does, without a search. */
static void plant_plan(unsigned value, double ms)
{
    struct candidate c;
    struct trial trial = {.status = TRIAL_OK, .ms = {ms, ms, ms}, .sample_count = 6};
    int64_t study;
    ck_assert_int_eq(study_open(bench, db, 0, false, &study, &st), 0);
    ck_assert_int_eq(
        study_candidate(db, study, bench_target(bench), plan_from_value(value), &c, &st), 0);
    ck_assert_int_eq(trial_store(db, study, DB_TRIAL_PLAN, &c, &trial, "", &st), 0);
}

START_TEST(finalist_that_broke_is_dropped)
{
    plant_plan(VALUE_FIRST_VERSION, 1e-3);
    fake.broken = layernorm;
    run();
    ck_assert_int_eq(fake.compares, 1);
    ck_assert(!fake.broken_in_plan);
    ck_assert(report.best.final);
    ck_assert_int_ne(report.best.value, VALUE_FIRST_VERSION);
}
END_TEST

START_TEST(references_are_measured_whatever_is_known)
{
    uint16_t space[PLAN_SPACE];
    ck_assert_int_ge(plan_space(32768, 49152, space), 90);
    for (int i = 0, planted = 0; planted < 80; i++)
        if (space[i] != VALUE_UNFUSED && space[i] != VALUE_FIRST_VERSION) {
            plant_plan(space[i], 1e-3);
            planted++;
        }
    options.search.budget = 0;
    run();
    struct stored *s = read_back();
    ck_assert(s->seen[VALUE_UNFUSED] && s->seen[VALUE_FIRST_VERSION]);
    ck_assert_int_eq(fake.compares, 1);
}
END_TEST

/* The finals of an interrupted search are made up for. */
START_TEST(missed_finals_are_made_up_for)
{
    run();
    plant_plan(report.best.value == 40011 ? 40012 : 40011, 1e-3);
    options.search.budget = 21 * _i; /* spent, or none */
    options.search.space_lo = options.search.space_hi = VALUE_UNFUSED;
    run();
    ck_assert_int_eq(report.new_trials, 0);
    ck_assert_int_eq(fake.compares, 2);
    run();
    ck_assert_int_eq(fake.compares, 2);
}
END_TEST

START_TEST(slower_machine_makes_no_plan_hopeless)
{
    fake.slow_from_plan = 8;
    run();
    ck_assert_int_eq(report.censored_trials, 0);
    ck_assert_int_eq(read_back()->plans, 20);
}
END_TEST

START_TEST(nothing_runs)
{
    fake.all_plans_fail = true;
    run();
    ck_assert_int_eq(report.best.value, -1);
    ck_assert_int_eq(report.failed_trials, 20);
    ck_assert_int_eq(fake.compares, 0);
    ck_assert(isnan(report.best.unfused.median));
}
END_TEST

/* Every call may be the last before a Ctrl-C. */
START_TEST(interrupt_keeps_all)
{
    options.search.budget = 9;
    fake.stop_at_call = 1 + 34 * _i;
    run();
    ck_assert_str_eq(report.stopped_by, "interrupted");
    struct stored *s = read_back();
    ck_assert_int_eq(s->plans, fake.plans);
    ck_assert_int_eq(s->segments, fake.segments);
    ck_assert_int_eq(report.new_trials, fake.plans);
    ck_assert_int_eq(report.best.value >= 0, fake.plans > 0);
    fake.stop = 0;
    run();
    ck_assert_int_eq(read_back()->plans, 9);
    ck_assert_int_eq(fake.plans, 9);
}
END_TEST

/* The child dies at the call; the parent goes on where it stopped. */
START_TEST(killed_search_resumes)
{
    options.search.budget = 9;
    db_close(db);
    pid_t child = fork();
    if (child == 0) {
        fake.kill_at_call = 1 + 43 * _i;
        if (db_open(path, DB_WRITE, &db, &st) == 0)
            tune(bench, db, &options, &report, &st);
        _exit(1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_eq(db_open(path, DB_WRITE, &db, &st), 0);
    int before = read_back()->plans, segments = read_back()->segments;
    run();
    struct stored *s = read_back();
    ck_assert_int_eq(s->plans, 9);
    ck_assert_int_eq(fake.plans, 9 - before);
    ck_assert_int_eq(s->segments, segments + fake.segments);
}
END_TEST

START_TEST(broken_environment_ends_the_search)
{
    fake.fail_at_call = 40;
    ck_assert_int_eq(tune(bench, db, &options, &report, &st), -1);
    ck_assert_int_eq(st.code, STATUS_ENVIRONMENT);
    ck_assert_int_eq(report.best.choice_count, 0);
    st = STATUS_INIT;
    ck_assert_int_eq(read_back()->segments, fake.segments);
}
END_TEST

/* Eleven more layers of finalists would take 1.1 s to verify, or their samples 2 s. */
START_TEST(time_limit_covers_finals)
{
    fake.verify_s = _i == 0 ? 0.1 : 0;
    fake.speed = _i == 0 ? 100 : 1;
    options.search.time_limit_s = 1;
    run();
    ck_assert_int_gt(fake.plans, 0);
    ck_assert_int_eq(fake.compares, 0);
    ck_assert(!report.best.final);
    options.search.time_limit_s = 0;
    run();
    ck_assert_int_eq(fake.compares, 1);
}
END_TEST

/* Learning from 20 plans takes 32 ms, from a whole space half a minute. */
START_TEST(time_limit_covers_learning)
{
    options.search.time_limit_s = 0.5;
    run();
    ck_assert(isnan(report.model_spearman));
    options.search.time_limit_s = 0;
    run();
    ck_assert(!isnan(report.model_spearman));
}
END_TEST

/* 121 segments of 20 ms do not fit into half of 2 s: the search goes on with those that did. */
START_TEST(time_limit_covers_everything)
{
    fake.seconds_per_segment = 0.02;
    fake.speed = 100;
    options.search.budget = 0;
    options.search.time_limit_s = 2;
    run();
    ck_assert_double_lt(report.seconds, 4);
    ck_assert_int_lt(fake.segments, SEGMENT_COUNT);
    ck_assert_int_gt(fake.plans, 2);
    ck_assert_int_eq(fake.compares, 1);
    ck_assert(report.best.final);
    int segments = fake.segments;
    fake.seconds_per_segment = 0;
    options.search.budget = fake.plans + 2;
    options.search.time_limit_s = 0; /* and without a limit the rest is made up for */
    run();
    ck_assert_int_gt(read_back()->segments, segments);
    ck_assert_int_ge(fake.segments, SEGMENT_COUNT + 1);
}
END_TEST

START_TEST(no_time_at_all)
{
    options.search.time_limit_s = 1e-9;
    run();
    ck_assert_str_eq(report.stopped_by, "time");
    ck_assert_int_eq(report.best.value, -1);
    ck_assert_int_eq(fake.calls, 0);
}
END_TEST

/* The references lie outside, and are measured all the same. */
START_TEST(space_of_one_value)
{
    options.search.space_lo = options.search.space_hi = 40011;
    run();
    struct stored *s = read_back();
    ck_assert_int_eq(s->plans, 3);
    ck_assert(s->seen[40011]);
    ck_assert_int_eq(report.space, 1);
    ck_assert_int_eq(report.space_trials, 1);
    ck_assert_int_eq(report.total_trials, 3);
    ck_assert_str_eq(report.stopped_by, "space");
}
END_TEST

START_TEST(model_is_kept)
{
    struct model *model;
    int64_t study;
    run();
    ck_assert_int_eq(study_open(bench, db, 0, false, &study, &st), 0);
    ck_assert_int_eq(model_fetch(db, study, STUDY_MODEL, &model, &st), 0);
    struct segment_times times;
    ck_assert_int_eq(study_segments(db, study, bench_target(bench), &times, &st), 0);
    double ms[2];
    unsigned values[] = {VALUE_UNFUSED, (unsigned)report.best.value};
    ck_assert_int_eq(model_predict(model, values, 2, &times, ms, NULL, &st), 0);
    ck_assert_double_lt(ms[1], ms[0]);
    model_free(model);
}
END_TEST

START_TEST(other_inputs_are_another_study)
{
    run();
    options.input_seed = 7;
    run();
    ck_assert_int_eq(report.new_trials, 20);
    options.notes_init = true;
    run();
    ck_assert_int_eq(report.new_trials, 20);
}
END_TEST

/* All lines that people are told, one after another. */
static void collect(void *ctx, const char *line)
{
    buf_addf(ctx, "%s\n", line);
}

static int count_in(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

START_TEST(disturbances_are_told_once)
{
    struct buf said;
    buf_init(&said);
    options.say = collect;
    options.ctx = &said;
    options.search.budget = 4;
    run();
    ck_assert_int_eq(count_in(said.ptr, "note: "), 0);
    buf_reset(&said);
    fake.disturbance =
        (struct disturbance){.measured = 10, .slowed = 3, .slowed_by = 0x20, .other_processes = 2};
    options.search.budget = 8;
    run();
    ck_assert_int_eq(count_in(said.ptr, "note: "), 2);
    ck_assert_int_eq(count_in(said.ptr, "note: 2 other processes"), 1);
    ck_assert_int_eq(count_in(said.ptr, "note: the GPU slowed itself down during 3 of 10"), 1);
    buf_release(&said);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("search/tune");
    TCase *t = tcase_create("tune");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, finds_stores_and_reports);
    tcase_add_test(t, spent_budget_measures_nothing);
    tcase_add_test(t, larger_budget_goes_on);
    tcase_add_test(t, converged_search_stays_so);
    tcase_add_test(t, tiny_budgets);
    tcase_add_test(t, schedules_are_climbed);
    tcase_add_loop_test(t, broken_segment_breaks_its_plans_unbuilt, 0, 4);
    tcase_add_test(t, plan_that_fails_alone_is_no_end);
    tcase_add_test(t, hopeless_plan_is_censored);
    tcase_add_test(t, finalist_that_broke_is_dropped);
    tcase_add_test(t, references_are_measured_whatever_is_known);
    tcase_add_loop_test(t, missed_finals_are_made_up_for, 0, 2);
    tcase_add_test(t, slower_machine_makes_no_plan_hopeless);
    tcase_add_test(t, nothing_runs);
    tcase_add_loop_test(t, interrupt_keeps_all, 0, 6);
    tcase_add_loop_test(t, killed_search_resumes, 0, 5);
    tcase_add_test(t, broken_environment_ends_the_search);
    tcase_add_test(t, time_limit_covers_everything);
    tcase_add_loop_test(t, time_limit_covers_finals, 0, 2);
    tcase_add_test(t, time_limit_covers_learning);
    tcase_add_test(t, no_time_at_all);
    tcase_add_test(t, space_of_one_value);
    tcase_add_test(t, model_is_kept);
    tcase_add_test(t, other_inputs_are_another_study);
    tcase_add_test(t, disturbances_are_told_once);
    suite_add_tcase(s, t);
    return suite_run(s);
}
