/* Recorded spaces: written, read back, damaged, and searched. */
#include "fake_bench.h"
#include "search/search_int.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char dir[] = "/tmp/fuseplan-check-space-XXXXXX", path[64];
static struct recorded_space space; /* 300 KB: not on the stack */
static struct status st;

static void setup(void)
{
    st = STATUS_INIT;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a.space.gz", dir);
}

static void teardown(void)
{
    ck_assert_int_eq(file_remove_all(dir, &st), 0);
}

static void write_bytes(const void *bytes, size_t len)
{
    ck_assert_int_eq(file_write(path, bytes, len, &st), 0);
}

static void write_packed(const char *text)
{
    struct buf packed;
    buf_init(&packed);
    gzip_pack(text, strlen(text), &packed);
    write_bytes(packed.ptr, packed.len);
    buf_release(&packed);
}

static void read_space(const char *from)
{
    int rc = recorded_space_read(from, &space, &st);
    ck_assert_msg(rc == 0, "%s", st.message);
}

/* ---- a study, there and back ----------------------------------------------------------------- */

enum { LO = 40000, HI = 40063 };

static struct db *db;
static struct bench *bench;

/* Every plan of LO..HI on a fake bench; ops 8-9 fail. */
static int64_t make_study(void)
{
    char db_file[64];
    struct tune_report report;
    int64_t study;
    bench = fake_open();
    fake.broken = (struct segment){8, 9};
    snprintf(db_file, sizeof(db_file), "%s/db", dir);
    ck_assert_int_eq(db_open(db_file, DB_WRITE, &db, &st), 0);
    struct tune_options o = {.search = {.space_lo = LO, .space_hi = HI, .quantile = 0.1},
                             .rigor = RIGOR_EXHAUSTIVE};
    ck_assert_int_eq(tune(bench, db, &o, &report, &st), 0);
    tune_report_release(&report);
    ck_assert_int_eq(study_open(bench, db, 0, false, &study, &st), 0);
    return study;
}

static void end_study(void)
{
    db_close(db);
    fake_close();
}

static void export_to(struct buf *out, int64_t study)
{
    int rc = space_export(db, study, TARGET_CPU, "{\"batch\":1}", LO, HI, out, &st);
    ck_assert_msg(rc == 0, "%s", st.message);
}

/* Medians are rounded to 10 ns. */
static void check_us(double ms, double expected_ms)
{
    ck_assert_double_le(fabs(ms - expected_ms), 0.51e-5);
}

static bool holds_layernorm(unsigned value)
{
    int slots[OP_COUNT], count = plan_slots(plan_from_value(value), slots);
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
    read_space(path);
    ck_assert_str_eq(space.workload, "{\"batch\":1}");
    ck_assert_str_eq(space.target.device, "a made-up device");
    ck_assert_int_eq(space.target.units, 2);
    ck_assert_str_eq(space.protocol, "1");
    ck_assert_uint_eq(space.lo, LO);
    ck_assert_uint_eq(space.hi, HI);
    ck_assert_int_eq(space.count, HI - LO + 1);
    double best_ms = INFINITY;
    for (int i = 0; i < space.count; i++) {
        ck_assert_uint_eq(space.values[i], LO + (unsigned)i);
        ck_assert_int_eq(space.outcomes[i].status,
                         holds_layernorm(space.values[i]) ? OUTCOME_FAILED : OUTCOME_OK);
        if (space.outcomes[i].status != OUTCOME_OK)
            continue;
        check_us(space.outcomes[i].ms, made_up_ms(&fake.space, space.values[i]));
        best_ms = fmin(best_ms, space.outcomes[i].ms);
    }
    ck_assert_double_eq(space.outcomes[space.best].ms, best_ms);
    for (int i = 0; i < SEGMENT_COUNT; i++) {
        bool failed = i == segment_index((struct segment){8, 9});
        ck_assert_int_eq(space.failed[i], failed);
        ck_assert_int_eq(isnan(space.segments.ms[i]), failed);
    }
    ck_assert(space.segments.handwritten_ms > 0);
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
    ck_assert_int_eq(trials_store(db, study, DB_TRIAL_FINAL, &c, &t, 1, id, &st), 0);
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
    ck_assert_int_eq(study_open(bench, db, 1, false, &study, &st), 0);
    candidate_default(bench_target(bench), plan_from_value(LO), &c);
    ck_assert_int_eq(trial_store(db, study, DB_TRIAL_PLAN, &c, &ok, "", &st), 0);
    candidate_default(bench_target(bench), plan_from_value(LO + 1), &c);
    ck_assert_int_eq(trial_store(db, study, DB_TRIAL_PLAN, &c, &failed, "", &st), 0);
    buf_init(&bytes);
    export_to(&bytes, study);
    write_bytes(bytes.ptr, bytes.len);
    read_space(path);
    ck_assert_int_eq(space.count, 2);
    ck_assert_uint_eq(space.values[space.best], LO);
    ck_assert_int_eq(space.outcomes[1].status, OUTCOME_FAILED);
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
    ck_assert_int_eq(space_export(db, study, TARGET_CPU, "{}", 50, 60, &bytes, &st), -1);
    ck_assert_int_eq(st.code, STATUS_NOT_FOUND);
    ck_assert_uint_eq(bytes.len, 0);
    buf_release(&bytes);
    end_study();
    st = STATUS_INIT;
}
END_TEST

/* ---- files that are not as they should be ---------------------------------------------------- */

#define HEADER_OF(format, version, plans, best)                                                    \
    "{\"format\":\"" format "\",\"version\":" version ",\"workload\":{},\"target\":{\"kind\":"     \
    "\"cpu\",\"device\":\"d\",\"uuid\":\"u\",\"capability\":\"c\",\"units\":2,\"driver\":\"r\","   \
    "\"compiler\":\"g\",\"libraries\":\"l\"},\"protocol\":\"1\",\"space\":[40000,40010],"          \
    "\"counts\":{\"segments\":1,\"plans\":" plans "},\"best\":{\"value\":" best "},"               \
    "\"measured_utc\":\"2026-01-31T12:34:56.789Z\"}\n"
#define HEADER  HEADER_OF("fuseplan space", "1", "2", "40000")
#define SEGMENT "{\"ops\":[0,0],\"handwritten\":false,\"us\":7.5}\n"
#define PLAN_0  "[40000,500.00,499.00,501.00]\n"
#define PLAN_1  "[40001,null,\"wrong: row 3\"]\n"

static const struct {
    const char *text, *says;
} damaged[] = {
    {"", "line 1: the file ends before it"},
    {"hello\n", "line 1 is not JSON"},
    {"{}\n", "its format is '', expected 'fuseplan space'"},
    {HEADER_OF("notes", "1", "2", "40000"), "its format is 'notes'"},
    {HEADER_OF("fuseplan space", "2", "2", "40000"), "its version is 2, this fuseplan reads 1"},
    {HEADER_OF("fuseplan space", "1", "20000", "40000"), "cannot be"},
    {"{\"format\":\"fuseplan space\",\"version\":1}\n", "line 1: "},
    {HEADER SEGMENT PLAN_0, "line 4: the file ends before it"},
    {HEADER SEGMENT PLAN_0 "[40001,5", "line 4: the file ends before it"},
    {HEADER SEGMENT PLAN_0 "[40001,5\n", "line 4 is not JSON"},
    {HEADER SEGMENT PLAN_0 PLAN_1 PLAN_1, "more lines"},
    {HEADER SEGMENT PLAN_0 PLAN_0, "line 4: the plan was on a line before"},
    {HEADER SEGMENT PLAN_0 "[40011,1,1,1]\n", "no canonical value of the space"},
    {HEADER SEGMENT PLAN_0 "[\"40001\",1,1,1]\n", "no canonical value"},
    {HEADER SEGMENT PLAN_0 "[40001,0,1,1]\n", "not above 0"},
    {HEADER SEGMENT PLAN_0 "[40001,-5,1,1]\n", "not above 0"},
    {HEADER SEGMENT PLAN_0 "[40001,1,1]\n", "is no plan's"},
    {HEADER SEGMENT PLAN_0 "[40001]\n", "is no plan's"},
    {HEADER SEGMENT PLAN_0 "{}\n", "no canonical value"},
    {HEADER "{\"ops\":[0,15],\"handwritten\":false,\"us\":7.5}\n" PLAN_0 PLAN_1, "is no segment's"},
    {HEADER "{\"ops\":[3,2],\"handwritten\":false,\"us\":7.5}\n" PLAN_0 PLAN_1, "is no segment's"},
    {HEADER "{\"ops\":[1,6],\"handwritten\":true,\"us\":7.5}\n" PLAN_0 PLAN_1, "is no segment's"},
    {HEADER "{\"ops\":[0,0],\"handwritten\":false}\n" PLAN_0 PLAN_1, "reason why it failed"},
    {HEADER "{\"ops\":[0,0],\"handwritten\":false,\"us\":0}\n" PLAN_0 PLAN_1, "above 0"},
    {HEADER_OF("fuseplan space", "1", "2", "40001") SEGMENT PLAN_0 PLAN_1, "its best plan, 40001"},
    {HEADER_OF("fuseplan space", "1", "2", "-1") SEGMENT PLAN_0 PLAN_1, "its best plan"},
};

static void check_refused(const char *says)
{
    ck_assert_int_eq(recorded_space_read(path, &space, &st), -1);
    ck_assert_int_eq(st.code, STATUS_USAGE);
    ck_assert_msg(strstr(st.message, says), "'%s' lacks '%s'", st.message, says);
    ck_assert_ptr_nonnull(strstr(st.message, path));
    ck_assert_ptr_nonnull(strstr(st.message, "export it again"));
    ck_assert_int_eq(space.count, 0);
    ck_assert_ptr_null(space.values);
    st = STATUS_INIT;
}

START_TEST(damaged_lines)
{
    write_packed(damaged[_i].text);
    check_refused(damaged[_i].says);
}
END_TEST

START_TEST(whole_file)
{
    write_packed(HEADER SEGMENT PLAN_0 PLAN_1);
    read_space(path);
    ck_assert_int_eq(space.count, 2);
    ck_assert_int_eq(space.outcomes[1].status, OUTCOME_FAILED);
    recorded_space_release(&space);
}
END_TEST

START_TEST(damaged_bytes)
{
    struct buf packed;
    buf_init(&packed);
    const char *text = HEADER SEGMENT PLAN_0 PLAN_1;
    gzip_pack(text, strlen(text), &packed);
    for (size_t len = 0; len < packed.len; len += 7) { /* cut short */
        write_bytes(packed.ptr, len);
        check_refused("ends early");
    }
    packed.ptr[packed.len - 6] ^= 1; /* its checksum */
    write_bytes(packed.ptr, packed.len);
    check_refused("damaged");
    write_bytes(text, strlen(text)); /* not packed at all */
    check_refused("no gzip file");
    buf_release(&packed);
}
END_TEST

START_TEST(missing_file)
{
    ck_assert_int_eq(recorded_space_read("/nowhere/a.space.gz", &space, &st), -1);
    ck_assert_ptr_nonnull(strstr(st.message, "/nowhere/a.space.gz"));
    st = STATUS_INIT;
}
END_TEST

/* ---- what it gives --------------------------------------------------------------------------- */

/* Timed again: 1.1, 1.2 and 1.3 times as long; so the fourth would have taken 1.2 times as long. */
START_TEST(one_scale)
{
    write_packed(HEADER_OF("fuseplan space", "1", "5", "40000") SEGMENT
                 "[40000,500,499,501,550,549,551]\n[40001,600,599,601,720,719,721]\n"
                 "[40002,700,699,701,910,909,911]\n[40003,1000,999,1001]\n"
                 "[40004,2000,\"censored\"]\n");
    read_space(path);
    static const double ms[] = {0.55, 0.72, 0.91, 1.2, 2.4};
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq_tol(space.outcomes[i].ms, ms[i], 1e-12);
    ck_assert_int_eq(space.outcomes[4].status, OUTCOME_CENSORED);

    struct evaluator e = recorded_space_evaluator(&space);
    struct outcome o;
    ck_assert_int_eq(e.measure(e.ctx, 40003, &o, &st), 0);
    ck_assert_double_eq_tol(o.ms, 1.2, 1e-12);
    ck_assert(!e.fails(e.ctx, 40003));
    ck_assert(e.fails(e.ctx, 40005)); /* was not recorded */
    ck_assert_int_eq(e.measure(e.ctx, 40005, &o, &st), -1);
    ck_assert_int_eq(st.code, STATUS_NOT_FOUND);
    st = STATUS_INIT;
    ck_assert_double_eq(e.segments(e.ctx)->ms[0], 7.5e-3);
    recorded_space_release(&space);
}
END_TEST

/* ---- searching ------------------------------------------------------------------------------- */

/* `guided` converges long before: at what a user gets without a budget. */
enum { SEEDS = 3, BUDGET = 500 };

/* How much slower the best plan found is than the best of the space. */
static double regret(const char *strategy, uint64_t seed)
{
    static struct history history;
    struct evaluator e = recorded_space_evaluator(&space);
    struct search_options o = {.strategy = strategy_find(strategy),
                               .space_lo = space.lo,
                               .space_hi = space.hi,
                               .budget = BUDGET,
                               .seed = seed,
                               .quantile = 0.1};
    struct search_result result;
    int rc = search_loop(&o, &e, &history, NULL, NULL, &result, &st);
    ck_assert_msg(rc == 0, "%s", st.message);
    double ms = history.items[result.best].outcome.ms;
    history_release(&history);
    return ms / space.outcomes[space.best].ms - 1;
}

static void check_strategies(const char *from)
{
    double guided = 0, random = 0;
    read_space(from);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        double r = regret("guided", seed);
        ck_assert_msg(r <= 0.01, "%s: seed %d ends %.2f %% above the best", from, (int)seed,
                      100 * r);
        guided += r;
        random += regret("random", seed);
    }
    ck_assert_double_lt(guided, random);
    recorded_space_release(&space);
}

static void write_made_up(void)
{
    static struct made_up m;
    struct buf text;
    buf_init(&text);
    made_up_init(&m, 1, 32768, 49152);
    buf_addf(&text,
             "{\"format\":\"fuseplan space\",\"version\":1,\"workload\":{},\"target\":{\"kind\":"
             "\"cpu\",\"device\":\"\",\"uuid\":\"\",\"capability\":\"\",\"units\":1,\"driver\":"
             "\"\",\"compiler\":\"\",\"libraries\":\"\"},\"protocol\":\"1\",\"space\":[32768,49152]"
             ",\"counts\":{\"segments\":%d,\"plans\":%d},\"best\":{\"value\":%u},\"measured_utc\":"
             "\"\"}\n",
             SEGMENT_COUNT + 1, m.count, m.space[m.best]);
    for (int i = 0; i <= SEGMENT_COUNT; i++)
        buf_addf(&text, "{\"ops\":[%d,%d],\"handwritten\":%s,\"us\":%.2f}\n", slot_segment(i).first,
                 slot_segment(i).last, i == SEGMENT_COUNT ? "true" : "false",
                 1e3 * (i == SEGMENT_COUNT ? m.times.handwritten_ms : m.times.ms[i]));
    for (int i = 0; i < m.count; i++)
        buf_addf(&text, "[%d,%.2f,%.2f,%.2f]\n", m.space[i], 1e3 * m.ms[i], 0.999e3 * m.ms[i],
                 1.001e3 * m.ms[i]);
    write_packed(text.ptr);
    buf_release(&text);
}

START_TEST(strategies_on_a_made_up_space)
{
    write_made_up();
    check_strategies(path);
}
END_TEST

/* Paths from the build, each with a comma behind it; none to begin with. */
static const char *const recorded[] = {RECORDED_SPACES NULL};

START_TEST(strategies_on_recorded_spaces)
{
    check_strategies(recorded[_i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("search/space");
    TCase *t = tcase_create("space");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, there_and_back);
    tcase_add_test(t, equal_studies_give_equal_bytes);
    tcase_add_test(t, what_bench_compared_is_left_out);
    tcase_add_test(t, reason_in_no_encoding);
    tcase_add_test(t, nothing_to_record);
    tcase_add_loop_test(t, damaged_lines, 0, (int)ARRAY_LEN(damaged));
    tcase_add_test(t, whole_file);
    tcase_add_test(t, damaged_bytes);
    tcase_add_test(t, missing_file);
    tcase_add_test(t, one_scale);
    suite_add_tcase(s, t);
    TCase *searches = tcase_create("searches");
    tcase_set_timeout(searches, 60); /* six of them, 2 s on an idle core */
    tcase_add_checked_fixture(searches, setup, teardown);
    tcase_add_test(searches, strategies_on_a_made_up_space);
    tcase_add_loop_test(searches, strategies_on_recorded_spaces, 0, (int)ARRAY_LEN(recorded) - 1);
    suite_add_tcase(s, searches);
    return suite_run(s);
}
