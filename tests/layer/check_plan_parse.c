#include "layer/layer.h"
#include "tests/suite.h"

/* Writes a plan as --segments text, reads it back. */
TEST(segments_text_is_the_inverse)
{
    for (unsigned value = 0; value <= VALUE_MAX; value++) {
        struct plan plan = plan_from_value(value), back;
        struct segment s[OP_COUNT];
        SCOPED_BUF text = BUF_INIT;
        int n = plan_segments(plan, s);
        for (int i = 0; i < n; i++)
            buf_addf(&text, i == 0 ? "%d-%d" : ",%d-%d", s[i].first, s[i].last);
        OK(plan_parse_segments(text.ptr, plan.handwritten, &back, &st));
        ck_assert_uint_eq(plan_value(back), plan_canonical(value));
    }
}

static const struct {
    const char *text, *found;
} bad_values[] = {{"01", "leading zero"},
                  {"101010101010101", "15 binary digits"},
                  {"0x10000", "above 65535"},
                  {"-1", "it is negative"},
                  {"12a", "not a number"}};

TEST_LOOP(refuses_values, 0, ARRAY_LEN(bad_values))
{
    unsigned value;
    FAILS(plan_parse_value(bad_values[_i].text, &value, &st), STATUS_USAGE, bad_values[_i].found);
}

static const char *const bad_ranges[] = {"",     "..",    "1..",      "..2",
                                         "2..1", "1...2", "0..65536", "a..b"};

TEST_LOOP(refuses_ranges, 0, ARRAY_LEN(bad_ranges))
{
    unsigned lo, hi;
    FAILS(plan_parse_range(bad_ranges[_i], &lo, &hi, &st), STATUS_USAGE, "");
}

static const char *const bad_segments[] = {
    "",    "a",      "2-",   "-6",    "2-6,",
    "6-2", "0-15",   "2--3", "2-6 8", "2-6,6-7",
    "1,1", "2-6,,7", "1.5",  "15",    "99999999999999999999"};

TEST_LOOP(refuses_segments, 0, ARRAY_LEN(bad_segments))
{
    struct plan plan;
    FAILS(plan_parse_segments(bad_segments[_i], false, &plan, &st), STATUS_USAGE, "");
}

TEST(handwritten_needs_its_segment)
{
    struct plan plan;
    OK(plan_parse_segments("2-6,8-9,10-11,13-14", true, &plan, &st));
    ck_assert_uint_eq(plan_value(plan), 41115);
    OK(plan_parse_segments("2-6", false, &plan, &st));
    ck_assert_uint_lt(plan_value(plan), 16384);
    ck_assert_int_eq(plan_parse_segments("2-5", true, &plan, &st), -1);
}

SUITE("plan_parse", NULL, NULL)
