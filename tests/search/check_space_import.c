/* Recorded spaces as results in a database: there and back, refused, and beside what was known. */
#include "fake_bench.h"
#include "space_fixture.h"

#include <math.h>

enum { LO = 40000, HI = 40063 };

#define WORKLOAD                                                                                   \
    "{\"batch\":1,\"seq_len\":8,\"mask\":\"causal\",\"heads\":1,\"head_size\":16,\"ffn\":64,"      \
    "\"layers\":2,\"eps\":1e-5,\"dtype\":\"fp32\",\"target\":\"cpu\",\"lengths\":null}"
#define HEADER_WITH(workload, protocol, inputs, best, utc)                                         \
    "{\"format\":\"fuseplan space\",\"version\":1,\"workload\":" workload                          \
    ",\"target\":{\"kind\":\"cpu\",\"device\":\"d\",\"uuid\":\"u\",\"capability\":\"c\","          \
    "\"units\":2,\"driver\":\"r\",\"compiler\":\"g\",\"libraries\":\"l\"},\"protocol\":"           \
    "\"" protocol "\",\"inputs\":" inputs                                                          \
    ",\"space\":[40000,40010],\"counts\":{\"segments\":1,\"plans\":3},"                            \
    "\"best\":" best ",\"measured_utc\":\"" utc "\"}\n"
#define INPUTS "{\"seed\":0,\"init\":\"notes\"}"
#define UTC    "2026-01-31T12:34:56.789Z"
#define BEST   "{\"value\":40000,\"median_us\":500}"
#define HEADER HEADER_WITH(WORKLOAD, "1", INPUTS, BEST, UTC)
#define SEGMENT                                                                                    \
    "{\"ops\":[0,1],\"handwritten\":false,\"implementation\":\"generated\",\"schedule\":\"rows="   \
    "8\","                                                                                         \
    "\"us\":7.5}\n"
#define PLAN_0 "[40000,500.00,499.00,501.00]\n"
#define PLAN_1 "[40001,null,\"wrong: row 3\"]\n"
#define PLAN_2 "[40002,900,\"censored\"]\n"
#define PLANS  PLAN_0 PLAN_1 PLAN_2

static struct db_moved moved;

static void write_text(const char *text)
{
    write_bytes(text, strlen(text));
}

/* The caller closes *db. */
static int import_file(const char *name, struct db **db)
{
    *db = NULL;
    read_space(space_path());
    int result = space_import(&space, test_path(name), db, &moved, &st);
    recorded_space_release(&space);
    return result;
}

static struct db *imported(const char *name)
{
    struct db *db;
    int result = import_file(name, &db);
    ck_assert_msg(result == 0, "%s", st.message);
    return db;
}

static void keep_study(void *ctx, const struct db_listed *l)
{
    *(int64_t *)ctx = l->study;
}

static int64_t only_study(struct db *db)
{
    int64_t study = 0;
    ck_assert_int_eq(db_list(db, keep_study, &study, &st), 0);
    return study;
}

static int best_of(struct db *db)
{
    struct db_best best;
    ck_assert_int_eq(db_best(db, only_study(db), &best, &st), 0);
    int value = best.value;
    db_best_release(&best);
    return value;
}

static void problem(void *ctx, const char *text)
{
    (void)ctx;
    ck_abort_msg("%s", text);
}

static void check_whole(struct db *db)
{
    int problems;
    ck_assert_int_eq(db_check(db, problem, NULL, &problems, &st), 0);
}

static void moved_are(int64_t results, int64_t added, int64_t same, int64_t conflicts)
{
    ck_assert_int_eq(moved.results, results);
    ck_assert_int_eq(moved.added, added);
    ck_assert_int_eq(moved.same, same);
    ck_assert_int_eq(moved.conflicts, conflicts);
    ck_assert_int_eq(moved.replaced, 0);
}

static void export_to(struct db *db, int64_t study, struct buf *out)
{
    int result = space_export(db, study, TARGET_CPU, WORKLOAD, LO, HI, out, &st);
    ck_assert_msg(result == 0, "%s", st.message);
}

START_TEST(there_and_back)
{
    struct buf before, after;
    struct tune_report report;
    struct db *db;
    int64_t study;
    buf_init(&before);
    buf_init(&after);
    struct bench *bench = fake_open();
    fake.broken = (struct segment){8, 9};
    fake.seconds_per_build = 0.5;
    fake.seconds_per_plan = 0.125;
    fake.verify_s = 0.0625;
    struct tune_options o = {.search = {.space_lo = LO, .space_hi = HI, .quantile = 0.1},
                             .rigor = RIGOR_EXHAUSTIVE};
    ck_assert_int_eq(db_open(test_path("made"), DB_WRITE, &db, &st), 0);
    ck_assert_int_eq(tune(bench, db, &o, &report, &st), 0);
    tune_report_release(&report);
    ck_assert_int_eq(study_open(bench, db, &study, &st), 0);
    export_to(db, study, &before);
    int best = best_of(db);
    db_close(db);
    fake_close();

    write_bytes(before.ptr, before.len);
    db = imported("there");
    ck_assert_int_gt(moved.added, HI - LO);
    ck_assert_int_eq(best_of(db), best);
    check_whole(db);
    export_to(db, only_study(db), &after);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_int_eq(memcmp(before.ptr, after.ptr, before.len), 0);
    db_close(db);
    int64_t all = moved.results;
    db_close(imported("there"));
    moved_are(all, 0, all, 0);
    buf_release(&before);
    buf_release(&after);
}
END_TEST

static int one_row(void *ctx, const struct db_trial *t)
{
    if (t->value == 40000) {
        ck_assert_double_eq(t->median_ms, 0.5);
        ck_assert_double_eq(t->ci_high_ms, 0.501);
        ck_assert(isnan(t->build_s) && isnan(t->time_s) && isnan(t->error));
        ck_assert_int_eq(t->sample_count, 0);
        ck_assert_str_eq(t->search, "");
        ck_assert_str_eq(t->choices[0].schedule, "rows=8");
    }
    if (t->value == 40001) {
        ck_assert_str_eq(t->reason_code, "wrong");
        ck_assert_str_eq(t->reason, "row 3");
    }
    ck_assert_int_eq(t->status, t->value == 40000   ? TRIAL_OK
                                : t->value == 40001 ? TRIAL_FAILED
                                                    : TRIAL_CENSORED);
    ++*(int *)ctx;
    return 0;
}

static void study_row(void *ctx, const struct db_study *s)
{
    (void)ctx;
    ck_assert_str_eq(s->target.device, "d");
    ck_assert_str_eq(s->target.uuid, "u");
    ck_assert_str_eq(s->protocol, "1");
    ck_assert_str_eq(s->init, "wide");
}

START_TEST(plain_text_says_what_it_says)
{
    int rows = 0;
    write_text(HEADER SEGMENT PLANS);
    struct db *db = imported("plain");
    moved_are(4, 4, 0, 0);
    ck_assert_int_eq(db_study_read(db, only_study(db), study_row, NULL, &st), 0);
    ck_assert_int_eq(db_trials(db, only_study(db), DB_TRIAL_PLAN, one_row, &rows, &st), 0);
    ck_assert_int_eq(rows, 3);
    check_whole(db);
    db_close(db);
}
END_TEST

/* Each with the value of its best plan: who is the best is more than the smallest time. */
static const struct {
    const char *text;
    int best;
} orders[] = {
    /* side by side, the slower one in the search */
    {HEADER_WITH(WORKLOAD, "1", INPUTS, "{\"value\":40001,\"median_us\":450}", UTC) SEGMENT
     "[40000,500,499,501,460,459,461]\n[40001,510,509,511,450,449,451]\n" PLAN_2,
     40001},
    /* 40000 was faster in an earlier comparison */
    {HEADER_WITH(WORKLOAD, "1", INPUTS, "{\"value\":40001,\"median_us\":450}", UTC) SEGMENT
     "[40000,500,499,501,440,439,441]\n[40001,510,509,511,450,449,451]\n" PLAN_2,
     40001},
    /* 40002 was found after the comparison */
    {HEADER_WITH(WORKLOAD, "1", INPUTS, "{\"value\":40002,\"median_us\":480}", UTC) SEGMENT
     "[40000,470,469,471,460,459,461]\n[40001,510,509,511,450,449,451]\n[40002,480,479,481]\n",
     40002},
    /* equal times */
    {HEADER_WITH(WORKLOAD, "1", INPUTS, "{\"value\":40001,\"median_us\":500}", UTC) SEGMENT PLAN_0
     "[40001,500,499,501]\n" PLAN_2,
     40001},
};

#define PADDED_WORKLOAD                                                                            \
    "{\"batch\":1,\"seq_len\":8,\"mask\":\"causal\",\"heads\":1,\"head_size\":16,\"ffn\":64,"      \
    "\"layers\":2,\"eps\":1e-5,\"dtype\":\"fp32\",\"target\":\"cpu\",\"lengths\":[5]}"

static const struct {
    const char *header;
    bool packed;
} protocols[] = {{HEADER_WITH(PADDED_WORKLOAD, "6", INPUTS, BEST, UTC), false},
                 {HEADER_WITH(PADDED_WORKLOAD, "7", INPUTS, BEST, UTC), true},
                 {HEADER_WITH(WORKLOAD, "7", INPUTS, BEST, UTC), false}};

START_TEST(packed_is_what_the_protocol_packs)
{
    struct buf text;
    struct db_best best;
    buf_init(&text);
    buf_addf(&text, "%s%s%s", protocols[_i].header, SEGMENT, PLANS);
    write_text(text.ptr);
    buf_release(&text);
    struct db *db = imported("t");
    ck_assert_int_eq(db_best(db, only_study(db), &best, &st), 0);
    ck_assert_int_eq(best.packed, protocols[_i].packed);
    db_best_release(&best);
    db_close(db);
}
END_TEST

START_TEST(the_best_stays_the_best)
{
    struct buf before, after;
    buf_init(&before);
    buf_init(&after);
    write_text(orders[_i].text);
    struct db *db = imported("order");
    ck_assert_int_eq(best_of(db), orders[_i].best);
    export_to(db, only_study(db), &before);
    db_close(db);
    write_bytes(before.ptr, before.len);
    db = imported("order_again");
    ck_assert_int_eq(best_of(db), orders[_i].best);
    export_to(db, only_study(db), &after);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_int_eq(memcmp(before.ptr, after.ptr, before.len), 0);
    db_close(db);
    buf_release(&before);
    buf_release(&after);
}
END_TEST

START_TEST(what_is_known_stays)
{
    write_text(orders[0].text);
    db_close(imported("known"));
    moved_are(6, 6, 0, 0);
    write_text(orders[1].text); /* another time of 40000, in another comparison */
    db_close(imported("known"));
    moved_are(6, 0, 5, 1);
}
END_TEST

static const struct {
    const char *text, *says;
} damaged[] = {
    {HEADER_WITH("{}", "1", INPUTS, BEST, UTC) SEGMENT PLANS, "line 1: workload: "},
    {HEADER_WITH("{\"batch\":0,\"seq_len\":8,\"mask\":\"causal\",\"heads\":1,\"head_size\":16,"
                 "\"ffn\":64,\"layers\":2,\"eps\":1e-5,\"dtype\":\"fp32\",\"target\":\"cpu\","
                 "\"lengths\":null}",
                 "1", INPUTS, BEST, UTC) SEGMENT PLANS,
     "line 1: "},
    {HEADER_WITH("{\"batch\":1,\"seq_len\":8,\"mask\":\"causal\",\"heads\":1,\"head_size\":16,"
                 "\"ffn\":64,\"layers\":2,\"eps\":1e-5,\"dtype\":\"fp32\",\"target\":\"cuda\","
                 "\"lengths\":null}",
                 "1", INPUTS, BEST, UTC) SEGMENT PLANS,
     "line 1: the workload is for 'cuda', measured on 'cpu'"},
    {HEADER_WITH(WORKLOAD, "", INPUTS, BEST, UTC) SEGMENT PLANS, "line 1: 'protocol' is empty"},
    {HEADER_WITH(WORKLOAD, "1", "{}", BEST, UTC) SEGMENT PLANS, "line 1: 'inputs' has"},
    {HEADER_WITH(WORKLOAD, "1", "{\"seed\":0,\"init\":\"x\"}", BEST, UTC) SEGMENT PLANS,
     "line 1: 'inputs' has"},
    {HEADER_WITH(WORKLOAD, "1", INPUTS, BEST, "yesterday") SEGMENT PLANS,
     "line 1: 'measured_utc' is 'yesterday'"},
    {HEADER_WITH(WORKLOAD, "1", INPUTS, BEST, "2026-02-30T12:34:56.789Z") SEGMENT PLANS,
     "line 1: 'measured_utc' is"},
    {HEADER_WITH(WORKLOAD, "1", INPUTS, "{\"value\":40000}", UTC) SEGMENT PLANS,
     "line 1: the best plan, 40000, took 0 us"},
    {HEADER_WITH(WORKLOAD, "1", INPUTS, "{\"value\":40000,\"median_us\":490}", UTC) SEGMENT PLANS,
     "line 1: the best plan, 40000, took 490 us"},
    {HEADER "{\"ops\":[0,0],\"handwritten\":false,\"us\":7.5}\n" PLANS,
     "line 2: a segment that ran has an 'implementation'"},
    {HEADER "{\"ops\":[2,6],\"handwritten\":true,\"implementation\":\"generated\",\"schedule\":"
            "\"\",\"us\":7.5}\n" PLANS,
     "line 2: 'generated' and 'handwritten' contradict"},
    {HEADER "{\"ops\":[0,0],\"handwritten\":false,\"failed\":\"no\"}\n" PLANS,
     "line 2: the reason of a failure is 'code: message'"},
    {HEADER SEGMENT PLAN_0 "[40001,null,\": \"]\n" PLAN_2, "line 4: the reason of a failure"},
    {HEADER SEGMENT PLAN_0 "[40001,400,390,410]\n" PLAN_2, "line 4: the plan is faster"},
    {HEADER SEGMENT PLAN_0 "[40001,600,610,620]\n" PLAN_2,
     "line 4: a median is outside its interval"},
    {HEADER SEGMENT PLAN_0 PLAN_1 "[40002,900,\"slow\"]\n", "line 5: a plan with one time"},
};

static void count_bytes(const char *name, struct buf *out)
{
    ck_assert_int_eq(file_read(test_path(name), 0, out, &st), 0);
}

START_TEST(damaged_files_change_nothing)
{
    struct buf before, after;
    struct db *db;
    buf_init(&before);
    buf_init(&after);
    write_text(orders[0].text);
    db_close(imported("kept"));
    count_bytes("kept", &before);
    write_text(damaged[_i].text);
    FAILS(import_file("kept", &db), STATUS_USAGE, "");
    ck_assert_msg(strstr(st.message, damaged[_i].says) != NULL, "'%s' lacks '%s'", st.message,
                  damaged[_i].says);
    ck_assert_ptr_null(db);
    st = STATUS_INIT;
    count_bytes("kept", &after);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_int_eq(memcmp(before.ptr, after.ptr, before.len), 0);
    buf_release(&before);
    buf_release(&after);
}
END_TEST

/* Paths from the build, each with a comma behind it; none to begin with. */
static const char *const recorded[] = {RECORDED_SPACES NULL};

START_TEST(recorded_spaces_keep_their_best_plan)
{
    struct db *db;
    read_space(recorded[_i]);
    int best = (int)plan_value(space.plans[space.best]);
    ck_assert_int_eq(space_import(&space, test_path("recorded"), &db, &moved, &st), 0);
    ck_assert_int_eq(moved.added, moved.results);
    ck_assert_int_eq(best_of(db), best);
    recorded_space_release(&space);
    db_close(db);
}
END_TEST

SUITE("search/space_import", test_dir_setup, test_dir_teardown, ONCE(there_and_back),
      ONCE(plain_text_says_what_it_says), LOOP(the_best_stays_the_best, 0, ARRAY_LEN(orders)),
      LOOP(packed_is_what_the_protocol_packs, 0, ARRAY_LEN(protocols)), ONCE(what_is_known_stays),
      LOOP(damaged_files_change_nothing, 0, ARRAY_LEN(damaged)),
      LOOP(recorded_spaces_keep_their_best_plan, 0, ARRAY_LEN(recorded) - 1))
