/* Files of a recorded space: as they should be, damaged, and hostile. */
#include "space_fixture.h"

#include <math.h>

#define HEADER_WITH(format, version, space, segments, plans, best)                                 \
    "{\"format\":\"" format "\",\"version\":" version ",\"workload\":{},\"target\":{\"kind\":"     \
    "\"cpu\",\"device\":\"d\",\"uuid\":\"u\",\"capability\":\"c\",\"units\":2,\"driver\":\"r\","   \
    "\"compiler\":\"g\",\"libraries\":\"l\"},\"protocol\":\"1\",\"inputs\":{\"seed\":0,\"init\":"  \
    "\"notes\"},\"space\":" space ",\"counts\":{\"segments\":" segments ",\"plans\":" plans        \
    "},\"best\":{\"value\":" best "},\"measured_utc\":\"2026-01-31T12:34:56.789Z\"}\n"
/* Version 2: `attempts` lines of segments. */
#define HEADER_2(attempts, plans)                                                                  \
    "{\"format\":\"fuseplan space\",\"version\":2,\"workload\":{},\"target\":{\"kind\":\"cpu\","   \
    "\"device\":\"d\",\"uuid\":\"u\",\"capability\":\"c\",\"units\":2,\"driver\":\"r\","           \
    "\"compiler\":\"g\",\"libraries\":\"l\"},\"protocol\":\"1\",\"space\":[40000,40010],"          \
    "\"counts\":"                                                                                  \
    "{\"attempts\":" attempts ",\"plans\":" plans                                                  \
    "},\"best\":{\"value\":40000},\"measured_utc\":\"2026-01-31T12:34:56.789Z\"}\n"
#define ATTEMPT_OF(ops, knobs, rest)                                                               \
    "{\"ops\":" ops                                                                                \
    ",\"handwritten\":false,\"implementation\":\"generated\",\"schedule\":\"" knobs "\"," rest     \
    "}\n"
#define SECONDS ",\"build_s\":1.5,\"verify_s\":0.25,\"time_s\":0.125"
#define ATTEMPT ATTEMPT_OF("[0,0]", "rows=8", "\"us\":7.5" SECONDS)
#define PLAN_2  "[40000,0.5,500.00,499.00,501.00]\n"
#define HEADER_OF(format, version, plans, best)                                                    \
    HEADER_WITH(format, version, "[40000,40010]", "1", plans, best)
#define HEADER_FOR(space, segments, plans, best)                                                   \
    HEADER_WITH("fuseplan space", "1", space, segments, plans, best)
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
    {HEADER_OF("fuseplan space", "3", "2", "40000"),
     "its version is 3, this fuseplan reads 1 and 2"},
    {HEADER_OF("fuseplan space", "0", "2", "40000"), "its version is 0"},
    {HEADER_OF("fuseplan space", "2", "2", "40000"), "line 1: Object item not found: attempts"},
    {HEADER_OF("fuseplan space", "1", "20000", "40000"), "out of range"},
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
    {HEADER SEGMENT PLAN_0 "[40001,1,1]\n", "it describes no plan"},
    {HEADER SEGMENT PLAN_0 "[40001]\n", "it describes no plan"},
    {HEADER SEGMENT PLAN_0 "{}\n", "no canonical value"},
    {HEADER "{\"ops\":[0,15],\"handwritten\":false,\"us\":7.5}\n" PLAN_0 PLAN_1,
     "it describes no segment"},
    {HEADER "{\"ops\":[3,2],\"handwritten\":false,\"us\":7.5}\n" PLAN_0 PLAN_1,
     "it describes no segment"},
    {HEADER "{\"ops\":[1,6],\"handwritten\":true,\"us\":7.5}\n" PLAN_0 PLAN_1,
     "it describes no segment"},
    {HEADER "{\"ops\":[0,0],\"handwritten\":false}\n" PLAN_0 PLAN_1, "reason why it failed"},
    {HEADER "{\"ops\":[0,0],\"handwritten\":false,\"us\":0}\n" PLAN_0 PLAN_1, "above 0"},
    {HEADER "{\"ops\":[0,0],\"handwritten\":false,\"us\":1,\"failed\":null}\n" PLAN_0 PLAN_1,
     "reason why it failed"},
    {HEADER_OF("fuseplan space", "1", "2", "40001") SEGMENT PLAN_0 PLAN_1, "its best plan, 40001"},
    {HEADER_OF("fuseplan space", "1", "2", "-1") SEGMENT PLAN_0 PLAN_1, "its best plan"},
    /* What would be right if it were cut to 32 bits. */
    {HEADER_OF("fuseplan space", "4294967297", "2", "40000"), "its version is 4294967297"},
    {HEADER_FOR("[40000,4295007306]", "1", "2", "40000") SEGMENT PLAN_0 PLAN_1, "out of range"},
    {HEADER_FOR("[4295007296,40010]", "1", "2", "40000") SEGMENT PLAN_0 PLAN_1, "out of range"},
    {HEADER_FOR("[40000,40010]", "4294967297", "2", "40000") SEGMENT PLAN_0 PLAN_1, "out of range"},
    {HEADER_FOR("[40000,40010]", "1", "4294967298", "40000") SEGMENT PLAN_0 PLAN_1, "out of range"},
    {HEADER_FOR("[40000,40010]", "1", "2", "4295007296") SEGMENT PLAN_0 PLAN_1, "its best plan"},
    {HEADER_FOR("[40000,40010]", "-1", "2", "40000") PLAN_0 PLAN_1, "out of range"},
    {HEADER SEGMENT PLAN_0 "[4295007297,1,1,1]\n", "no canonical value"},
    {HEADER SEGMENT PLAN_0 "[40001,NaN,1,1]\n", "line 4 is not JSON"},
    {HEADER SEGMENT PLAN_0 "[40001,1e999,1,1]\n", "line 4 is not JSON"},
    {HEADER SEGMENT "[40000,1e-300,1,1,1e300,1,1]\n[40001,1,1,1]\n", "are on no scale"},
    /* Version 2. */
    {HEADER_2("20000", "1") ATTEMPT PLAN_2, "out of range"},
    {HEADER_2("1", "1") ATTEMPT, "line 3: the file ends before it"},
    {HEADER_2("2", "1") ATTEMPT ATTEMPT PLAN_2, "line 3: the segment was on a line before"},
    {HEADER_2("1", "1") SEGMENT PLAN_2, "line 2: an attempt has an 'implementation'"},
    {HEADER_2("1", "1") ATTEMPT_OF("[0,0]", "rows=8", "\"us\":7.5") PLAN_2,
     "line 2: its seconds are not 0 or more, nor null"},
    {HEADER_2("1", "1") ATTEMPT_OF("[0,0]", "rows=8",
                                   "\"us\":7.5,\"build_s\":-1,\"verify_s\":0,\"time_s\":0") PLAN_2,
     "line 2: its seconds are not"},
    {HEADER_2("1", "1") ATTEMPT PLAN_0, "line 3: it describes no plan"},
    {HEADER_2("1", "1") ATTEMPT "[40000,-1,500,499,501]\n", "line 3: its seconds are not"},
    {HEADER_2("1", "1") ATTEMPT "[40000,\"1\",500,499,501]\n", "line 3: its seconds are not"},
    {HEADER_2("1", "1") ATTEMPT "[40000]\n", "line 3: its seconds are not"},
    {HEADER_2("1", "1") ATTEMPT "[40000,1]\n", "line 3: it describes no plan"},
    {HEADER_2("1", "1") ATTEMPT "[40000,1,500,499]\n", "line 3: it describes no plan"},
    {HEADER_2("1", "1") ATTEMPT "[40000,1,500,499,501,500,499]\n", "line 3: it describes no plan"},
};

static void check_refused(const char *says)
{
    FAILS(recorded_space_read(space_path(), &space, &st), STATUS_USAGE, "");
    ck_assert_msg(strstr(st.message, says) != NULL, "'%s' lacks '%s'", st.message, says);
    ck_assert_ptr_nonnull(strstr(st.message, space_path()));
    ck_assert_ptr_nonnull(strstr(st.message, "export it again"));
    ck_assert_int_eq(space.count, 0);
    ck_assert_ptr_null(space.plans);
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
    read_space(space_path());
    ck_assert_int_eq(space.count, 2);
    ck_assert_int_eq(space.outcomes[1].status, TRIAL_FAILED);
    ck_assert(!space.has_seconds && isnan(space.seconds[0]));
    recorded_space_release(&space);
}
END_TEST

START_TEST(plain_file)
{
    const char *text = HEADER SEGMENT PLAN_0 PLAN_1;
    write_bytes(text, strlen(text));
    read_space(space_path());
    ck_assert_int_eq(space.count, 2);
    recorded_space_release(&space);
}
END_TEST

/* 49152 names the plan 49151, and so on. */
START_TEST(values_are_canonical_wherever_the_space_lies)
{
    write_packed(HEADER_FOR("[49152,49153]", "1", "2", "49151") SEGMENT
                 "[49150,500,499,501]\n[49151,400,399,401]\n");
    read_space(space_path());
    ck_assert_int_eq(space.count, 2);
    ck_assert_uint_eq(plan_value(space.plans[space.best]), 49151);
    recorded_space_release(&space);
    write_packed(HEADER_FOR("[49152,49152]", "1", "2", "49151") SEGMENT
                 "[49150,500,499,501]\n[49151,400,399,401]\n");
    check_refused("no canonical value of the space");
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
    write_bytes("hello", 5);
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
    read_space(space_path());
    static const double ms[] = {0.55, 0.72, 0.91, 1.2, 2.4};
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq_tol(space.outcomes[i].ms, ms[i], 1e-12);
    ck_assert_int_eq(space.outcomes[4].status, TRIAL_CENSORED);

    struct evaluator e = recorded_space_evaluator(&space);
    struct outcome o;
    ck_assert_int_eq(e.measure(e.ctx, plan_from_value(40003), &o, &st), 0);
    ck_assert_double_eq_tol(o.ms, 1.2, 1e-12);
    ck_assert(!e.fails(e.ctx, plan_from_value(40003)));
    ck_assert(e.fails(e.ctx, plan_from_value(40005))); /* was not recorded */
    FAILS(e.measure(e.ctx, plan_from_value(40005), &o, &st), STATUS_NOT_FOUND, "");
    st = STATUS_INIT;
    ck_assert_double_eq(e.segments(e.ctx)->ms[0], 7.5e-3);
    recorded_space_release(&space);
}
END_TEST

/* Of a segment's choices the fastest counts; what was censored or failed has no time.  The segment
 * failed only if no choice ran. */
START_TEST(attempts_and_seconds)
{
    write_packed(HEADER_2("5", "3") ATTEMPT_OF("[0,0]", "rows=4", "\"failed\":\"wrong: x\"" SECONDS)
                     ATTEMPT ATTEMPT_OF("[0,0]", "rows=2", "\"us\":6.5" SECONDS)
                         ATTEMPT_OF("[0,0]", "rows=1", "\"us\":5,\"censored\":true" SECONDS)
                             ATTEMPT_OF("[1,1]", "", "\"failed\":\"wrong: x\"" SECONDS) PLAN_2
                 "[40001,0.25,null,\"wrong: row 3\"]\n"
                 "[40002,2,900,\"censored\"]\n");
    read_space(space_path());
    ck_assert_int_eq(space.version, 2);
    ck_assert_int_eq(space.attempt_count, 5);
    ck_assert_double_eq(space.segments.ms[0], 6.5e-3);
    ck_assert_str_eq(space.fastest[0]->schedule, "rows=2");
    ck_assert_double_eq(space.fastest[0]->build_s, 1.5);
    ck_assert_double_eq(space.attempts[4].time_s, 0.125);
    ck_assert(!space.failed[0] && space.failed[space.attempts[4].slot]);
    static const double seconds[] = {0.5, 0.25, 2};
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(space.seconds[i], seconds[i]);
    ck_assert_int_eq(space.outcomes[1].status, TRIAL_FAILED);
    ck_assert_int_eq(space.outcomes[2].status, TRIAL_CENSORED);
    ck_assert(space.has_seconds);
    recorded_space_release(&space);
    write_packed(HEADER_2("1", "1") ATTEMPT "[40000,null,500,499,501]\n");
    read_space(space_path());
    ck_assert(!space.has_seconds && isnan(space.seconds[0]));
    recorded_space_release(&space);
}
END_TEST

SUITE("search/space_read", test_dir_setup, test_dir_teardown,
      LOOP(damaged_lines, 0, ARRAY_LEN(damaged)), ONCE(whole_file), ONCE(plain_file),
      ONCE(values_are_canonical_wherever_the_space_lies), ONCE(damaged_bytes), ONCE(missing_file),
      ONCE(one_scale), ONCE(attempts_and_seconds))
