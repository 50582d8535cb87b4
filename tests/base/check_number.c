#include "base/base.h"
#include "tests/suite.h"

static const char *const not_integers[] = {"",    " 1", "1 ",  "+1",  "01",  "-0",
                                           "0x1", "1.", "1e3", "--1", "one", "1,2"};

START_TEST(refuses_what_is_not_a_whole_number)
{
    int64_t out = 7;
    FAILS(number_parse("--batch", not_integers[_i], -9, 9, &out, &st), STATUS_USAGE, "--batch");
    ck_assert_ptr_nonnull(strstr(st.message, "-9 to 9"));
}
END_TEST

static const char *const outside[] = {"-10", "10", "99999999999999999999", "-99999999999999999999"};

START_TEST(refuses_numbers_out_of_range)
{
    int64_t out;
    FAILS(number_parse("n", outside[_i], -9, 9, &out, &st), STATUS_USAGE, "out of range");
}
END_TEST

static const char *const not_numbers[] = {"", "nan", "inf", "1.0x", " 1", "0x10", "1e999", "--1"};

START_TEST(refuses_what_is_not_a_number)
{
    double out;
    FAILS(number_parse_double("x", not_numbers[_i], 0, 10, &out, &st), STATUS_USAGE, "");
}
END_TEST

START_TEST(parses_numbers)
{
    double out;
    OK(number_parse_double("x", "1e-12", 0, 1, &out, &st));
    ck_assert_double_eq(out, 1e-12);
    FAILS(number_parse_double("x", "2", 0, 1, &out, &st), STATUS_USAGE, "out of range");
}
END_TEST

START_TEST(writes_bytes_for_people)
{
    char text[32];
    ck_assert_str_eq(number_bytes(0, text), "0 B");
    ck_assert_str_eq(number_bytes(1023, text), "1023 B");
    ck_assert_str_eq(number_bytes(1536, text), "1.5 KiB");
    ck_assert_str_eq(number_bytes((uint64_t)3 << 30, text), "3.0 GiB");
    ck_assert_str_eq(number_bytes(UINT64_MAX, text), "16.0 EiB");
}
END_TEST

SUITE("number", NULL, NULL, LOOP(refuses_what_is_not_a_whole_number, 0, ARRAY_LEN(not_integers)),
      LOOP(refuses_numbers_out_of_range, 0, ARRAY_LEN(outside)),
      LOOP(refuses_what_is_not_a_number, 0, ARRAY_LEN(not_numbers)), ONCE(parses_numbers),
      ONCE(writes_bytes_for_people))
