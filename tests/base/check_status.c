#include "base/base.h"
#include "tests/suite.h"

TEST(first_error_wins)
{
    ck_assert_int_eq(status_set(&st, STATUS_COMPILE, "cause %d", 1), -1);
    ck_assert_int_eq(status_set(&st, STATUS_USAGE, "clean-up"), -1);
    ck_assert_int_eq(st.code, STATUS_COMPILE);
    ck_assert_str_eq(st.message, "cause 1");
}

/* Whatever a compiler printed. */
TEST(messages_are_utf8)
{
    status_set(&st, STATUS_COMPILE, "caf\xe9 %s", "\xe2\x80\x98x\xe2\x80\x99 \xff");
    ck_assert_str_eq(st.message, "caf\\xe9 \xe2\x80\x98x\xe2\x80\x99 \\xff");
    status_prefix(&st, "na\xefve\n");
    ck_assert_str_eq(st.message, "na\\xefve\\n: caf\\xe9 \xe2\x80\x98x\xe2\x80\x99 \\xff");
}

/* Two bytes a character, and room for an odd number of bytes. */
TEST(messages_are_cut_between_characters)
{
    char text[1202] = "";
    for (int i = 0; i < 600; i++)
        strcat(text, "\xc3\xa9");
    status_set(&st, STATUS_COMPILE, "%s", text);
    ck_assert_uint_eq(strlen(st.message), 998);
    status_prefix(&st, "x");
    ck_assert_uint_eq(strlen(st.message), 999);
    status_prefix(&st, "x");
    ck_assert_uint_eq(strlen(st.message), 998);
}

TEST(names_go_both_ways)
{
    for (int code = 0; code < STATUS_CODE_COUNT; code++)
        ck_assert_int_eq(status_from_name(status_name((enum status_code)code)), code);
    ck_assert_int_eq(status_from_name("nonsense"), STATUS_CODE_COUNT);
}

SUITE("status", NULL, NULL)
