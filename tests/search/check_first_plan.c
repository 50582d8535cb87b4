/* The first plan of tune(), and what is compiled before it, on a fake bench. */
#include "search/best_first_int.h"
#include "search/tuner_int.h"
#include "tests/workload.h"
#include "tune_guided.h"

/* Stage 1 would take 20 s, and a plan of 15 segments 3.75 s. */
TEST(first_plan_comes_before_segments)
{
    fake.seconds_per_build = 0.25;
    fake.speed = 100;
    options.search.time_limit_s = 4;
    run();
    ck_assert_str_eq(report.stopped_by, "time");
    ck_assert_int_eq(report.best.value, 41115);
    ck_assert(report.best.final);
    ck_assert_double_le(report.seconds, 4.01);
    ck_assert(isnan(report.baselines[0].ms.median));
    ck_assert_int_le(said_times("no time is left"), 1);
    options.search.time_limit_s = 0;
    fake.seconds_per_build = 0;
    run();
    ck_assert(!isnan(report.baselines[0].ms.median));
}

/* On a Hopper GPU this plan is expected to be the fastest.  Its segments are QKV's GEMM, its bias
 * with all of attention, and three GEMMs with the operators that follow them. */
enum { EXPECTED_VALUE = 48920 };

static void expect_times(void)
{
    fake.hopper = true;
    fake.workload.seq_len = 128;
    fake.workload.dtype = DTYPE_FP16;
    workload_ready(&fake.workload, "causal", NULL, NULL);
}

TEST(expected_plan_is_the_first)
{
    expect_times();
    fake.stop_at_call = 2;
    run();
    ck_assert_int_eq(report.best.value, EXPECTED_VALUE);
    ck_assert_int_eq(report.new_trials, 1);
    fake.stop = 0;
    run();
    ck_assert_double_eq(fake.compared[0].how.min_seconds, 0.06); /* nothing disturbs a GPU */
    ck_assert_int_eq(fake.compared[0].how.min_samples, SAMPLES_OF_AN_INTERVAL);
    ck_assert_double_lt(0.06, sampling_final.min_seconds);
}

/* Whether schedules were tried. */
static void note_schedules(void *ctx, const struct tune_state *state)
{
    *(bool *)ctx |= strcmp(state->step.phase, "schedules") == 0;
}

/* Half of the limit is spent on one baseline and these, so that none is left for the other one. */
TEST(schedules_of_the_expected_plan_come_next)
{
    bool tried = false;
    expect_times();
    fake.seconds_per_segment = 0.02;
    fake.speed = 1000;
    options.search.time_limit_s = 1;
    options.step = note_schedules;
    options.ctx = &tried;
    run();
    ck_assert(tried);
    for (int i = 0; i < report.best.choice_count; i++)
        ck_assert(!isnan(report.best.choice_ms[i]));
    ck_assert(isnan(report.baselines[0].ms.median));
    ck_assert(!isnan(report.baselines[1].ms.median));
    ck_assert_double_le(report.seconds, 1.01);
}

/* Whether schedules were tried before both baselines had a time. */
static void note_early_schedules(void *ctx, const struct tune_state *state)
{
    *(bool *)ctx |= strcmp(state->step.phase, "schedules") == 0 && fake.plans < 3;
}

/* _i > 0: compilers run beside, and are done with them later. */
TEST_LOOP(schedules_wait_for_compilers_and_not_for_a_limit, 0, 2)
{
    bool early = false;
    expect_times();
    fake.beside = _i > 0;
    options.step = note_early_schedules;
    options.ctx = &early;
    run();
    ck_assert_int_eq(early, _i == 0);
}

/* _i > 0: on a GPU. */
TEST_LOOP(a_gpu_converges_sooner, 0, 2)
{
    if (_i > 0)
        expect_times();
    options.search.budget = 0;
    run();
    ck_assert_str_eq(report.stopped_by, "converged");
    ck_assert_int_eq(report.new_trials <= CONVERGED_PATIENCE, _i > 0);
}

/* A baseline takes its place as the first plan. */
TEST(expected_plan_that_fails)
{
    expect_times();
    fake.broken_value = EXPECTED_VALUE;
    fake.stop_at_call = 4;
    run();
    ck_assert_str_eq(report.stopped_by, "interrupted");
    ck_assert_int_eq(report.best.value, 41115);
}

/* _i > 0: on a GPU.  There the first plan runs at another clock than those after it. */
TEST_LOOP(first_plan_is_timed_again_on_a_gpu, 0, 2)
{
    SCOPED_BY(db_time_release) struct db_time first;
    int64_t study;
    bool gpu = _i > 0;
    unsigned value = gpu ? EXPECTED_VALUE : 41115;
    if (gpu)
        expect_times();
    options.baselines = (struct baselines){1, {plan_from_value(value)}};
    fake.slow_from_plan = fake.slow_plans = 1;
    run();
    OK(study_open(bench, db, &study, &st));
    ck_assert_int_eq(db_time(db, study, value, "", &first, &st), 1);
    ck_assert_double_eq(first.ms.median, (gpu ? 1 : 3) * made_up_ms(&fake.space, value));
}

/* Nothing is expected on a CPU: the best plan of another mask comes first, by its schedules there,
 * and of a workload of four times as many tokens a baseline. */
TEST_LOOP(plan_of_the_nearest_workload_is_the_first, 0, 2)
{
    bool near = _i == 0;
    run();
    int best = report.best.value, first = near ? best : 41115;
    ck_assert_int_ne(best, 41115);
    fake.workload.seq_len *= near ? 1 : 4;
    set_mask("causal");
    fake.stop_at_call = fake.calls + 2;
    run();
    ck_assert_str_eq(report.stopped_by, "interrupted");
    ck_assert_int_eq(report.best.value, first);
    ck_assert_int_eq(report.new_trials, 1);
}

/* By its neighbour, unless that one was interrupted before its finals, a search finds the same plan
 * after fewer others. */
TEST_LOOP(neighbour_teaches, 0, 3)
{
    enum { ASKED, NOT_ASKED, INTERRUPTED };
    options.search.budget = 0;
    fake.stop_at_call = _i == INTERRUPTED ? 20 : 0;
    run();
    int best = report.best.value;
    fake.stop = 0;
    fake.stop_at_call = 0;
    set_mask("causal");
    options.by_neighbour = _i != NOT_ASKED;
    run();
    ck_assert_str_eq(report.stopped_by, "converged");
    ck_assert(report.best.value == best || _i == INTERRUPTED);
    ck_assert_int_eq(report.new_trials < CONVERGED_PATIENCE, _i == ASKED);
}

static int segments_of_another_mask(const char *mask, bool by_neighbour)
{
    const int before = fake.segments;
    set_mask(mask);
    options.by_neighbour = by_neighbour;
    run();
    ck_assert_str_eq(report.stopped_by, "converged");
    return fake.segments - before;
}

/* It times no segment that hopes for less than its parts take, and draws none. */
TEST(neighbour_saves_segments)
{
    options.search.budget = 0;
    run();
    int taught = segments_of_another_mask("causal", true);
    ck_assert_int_lt(taught, segments_of_another_mask("sliding:w=2", false));
}

/* Of the segments that generated code alone serves, in several stages, how many were timed. */
static int timed_that_wait(void)
{
    SCOPED_BY(segment_table_release) struct segment_table table;
    struct best_first b;
    SCOPED struct plan *space = mem_alloc(PLAN_SPACE, sizeof(*space));
    int64_t study;
    int timed = 0, count = plan_space(0, VALUE_MAX, space);
    segment_table_init(&table, bench_target(bench));
    OK(study_open(bench, db, &study, &st));
    OK(segment_table_read(&table, db, study, &st));
    best_first_init(&b, &table, space, count, 1);
    for (int i = 0; i < SLOT_COUNT; i++)
        timed += b.waits[i] && !isnan(table.times.ms[i]);
    return timed;
}

/* Nor are any drawn where a model knows the target: no best plan of its whole spaces had one.  Nine
 * are timed for their hopes. */
TEST(model_saves_segments)
{
    expect_times();
    run();
    ck_assert_int_eq(timed_that_wait(), 9);
}

/* ---- what is compiled beforehand ------------------------------------------------------------- */

/* How many of the choices are of a slot; all of them are distinct. */
static int of_slot(const struct choice *choices, int count, int slot)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        n += slot_of(choices[i].segment, choices[i].impl->handwritten) == slot;
        for (int k = 0; k < i; k++)
            ck_assert(!choice_equal(&choices[i], &choices[k]));
    }
    return n;
}

static int ahead(struct choice **out)
{
    return choices_ahead(bench, &options, out);
}

/* The defaults of the segments that are timed first, and all that a step changes of the expected
 * plan's. */
TEST(expected_plan_is_compiled_beforehand)
{
    SCOPED struct choice *choices;
    int slots[OP_COUNT], steps = 0;
    expect_times();
    int count = ahead(&choices), n = plan_slots(plan_from_value(EXPECTED_VALUE), slots);
    for (int i = 0; i < n; i++) {
        ck_assert_int_ge(of_slot(choices, count, slots[i]), 1);
        steps += of_slot(choices, count, slots[i]) > 3;
    }
    ck_assert_int_ge(steps, 2);
    n = plan_slots(plan_from_value(VALUE_UNFUSED), slots);
    for (int i = 0; i < n; i++)
        ck_assert_int_ge(of_slot(choices, count, slots[i]), 1);
    ck_assert_int_eq(of_slot(choices, count, slot_of((struct segment){7, 14}, false)), 0);
}

/* Where nothing is expected any segment of the space may be wanted, by its defaults alone. */
TEST(all_segments_are_compiled_beforehand_where_nothing_is_expected)
{
    struct choice *choices;
    int count = ahead(&choices);
    ck_assert_int_ge(of_slot(choices, count, slot_of((struct segment){7, 14}, false)), 1);
    free(choices);
    options.search.space_lo = options.search.space_hi = VALUE_UNFUSED;
    options.baselines.count = 0;
    int slots[OP_COUNT], n = plan_slots(plan_from_value(VALUE_UNFUSED), slots), own = 0;
    count = ahead(&choices);
    for (int i = 0; i < n; i++)
        own += of_slot(choices, count, slots[i]);
    ck_assert_int_eq(own, count);
    free(choices);
}

/* ---- a plan that was found elsewhere --------------------------------------------------------- */

enum { GIVEN_VALUE = 40804 };

/* The plan by the last choice of each segment, which is no default where there are several. */
static struct candidate by_last_choices(void)
{
    enum { MOST = 512 };
    static struct choice choices[MOST];
    struct candidate c = {.plan = plan_from_value(GIVEN_VALUE)};
    int slots[OP_COUNT];
    c.count = plan_slots(c.plan, slots);
    for (int i = 0; i < c.count; i++) {
        int n = choices_for(bench_target(bench), slot_segment(slots[i]),
                            slots[i] == SLOT_HANDWRITTEN, MOST, choices);
        ck_assert_int_le(n, MOST);
        c.choices[i] = choices[n - 1];
    }
    return c;
}

struct looking {
    const struct candidate *given;
    bool timed[OP_COUNT]; /* of its choices */
};

static int note_timed(void *ctx, const struct db_trial *row)
{
    struct looking *l = ctx;
    for (int i = 0; i < l->given->count; i++) {
        SCOPED_BUF schedule = BUF_INIT;
        schedule_text(l->given->choices[i].impl, &l->given->choices[i].schedule, &schedule);
        l->timed[i] |=
            segment_index(row->choices[0].segment) == segment_index(l->given->choices[i].segment) &&
            strcmp(row->choices[0].impl, l->given->choices[i].impl->name) == 0 &&
            strcmp(row->choices[0].schedule, schedule.ptr) == 0;
    }
    return 0;
}

TEST(given_plan_is_the_first)
{
    const struct candidate given = by_last_choices();
    struct looking looking = {.given = &given};
    int64_t study;
    options.first = &given;
    fake.stop_at_call = 2;
    run();
    ck_assert_int_eq(report.best.value, GIVEN_VALUE);
    for (int i = 0; i < given.count; i++) {
        SCOPED_BUF schedule = BUF_INIT;
        schedule_text(given.choices[i].impl, &given.choices[i].schedule, &schedule);
        ck_assert_str_eq(report.best.choices[i].schedule, schedule.ptr);
    }
    fake.stop = 0;
    db_close(db);
    OK(db_open(test_path("another"), DB_WRITE, &db, &st));
    run();
    OK(study_open(bench, db, &study, &st));
    OK(db_trials(db, study, DB_TRIAL_SEGMENT, note_timed, &looking, &st));
    for (int i = 0; i < given.count; i++)
        ck_assert_msg(looking.timed[i], "the choice of segment %d was not timed alone", i);
}

/* _i: it fails; it is outside of the space; a plan is known. */
TEST_LOOP(given_plan_that_does_not_serve, 0, 3)
{
    const struct candidate given = by_last_choices();
    options.first = &given;
    if (_i == 0)
        fake.broken_value = GIVEN_VALUE;
    if (_i == 1)
        options.search.space_lo = options.search.space_hi = 41115;
    if (_i == 2) {
        options.first = NULL;
        fake.stop_at_call = 2;
        run();
        fake.calls = fake.stop = 0;
        options.first = &given;
    }
    fake.stop_at_call = _i == 0 ? 3 : 2;
    run();
    ck_assert_int_eq(report.best.value, 41115);
}

SUITE("search/first_plan", setup, teardown)
