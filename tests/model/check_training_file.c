#include "model/model.h"
#include "tests/suite.h"

#define TEXT(s) s, sizeof(s) - 1 /* NUL bytes count too */

static struct model_data parse(const char *text, size_t len)
{
    struct model_data p;
    OK(model_data_parse("data.txt", text, len, &p, &st));
    return p;
}

/* Texts that hold the rows 43690 1.5 and 1 2. */
static const char *const same_rows[] = {
    "1010101010101010 1.5\n0000000000000001 2\n",
    "1010101010101010\t1.5\n0000000000000001 \t 2.0",
    "1010101010101010 1.5\r\n\r\n0000000000000001 2\r\n",
    "# measured\n\n  1010101010101010 15e-1 # ms\n\n \t \n0000000000000001 0.2E+1\n# end",
};

TEST_LOOP(tolerates_blanks_comments_and_line_ends, 0, ARRAY_LEN(same_rows))
{
    SCOPED_BY(model_data_release) struct model_data p = parse(same_rows[_i], strlen(same_rows[_i]));
    ck_assert_int_eq(p.count, 2);
    ck_assert_uint_eq(plan_value(p.plans[0]), 43690);
    ck_assert_double_eq(p.ms[0], 1.5);
    ck_assert_uint_eq(plan_value(p.plans[1]), plan_canonical(1));
    ck_assert_double_eq(p.ms[1], 2);
}

static const struct {
    const char *text;
    size_t len;
    const char *message; /* how it starts */
} bad[] = {
    {TEXT("101010101010101 1\n"), "data.txt:1: '101010101010101' is not a plan; expected"},
    {TEXT("1010101010101012 1\n"), "data.txt:1: '1010101010101012' is not a plan; expected"},
    {TEXT("1010101010101010 1\n1010101010101010\n"),
     "data.txt:2: '1010101010101010' has no time; expected"},
    {TEXT("1010101010101010 0x10\n"), "data.txt:1: '0x10' is not a number; expected"},
    {TEXT("1010101010101010 nan\n"), "data.txt:1: 'nan' is not a number; expected"},
    {TEXT("1010101010101010 1e999\n"), "data.txt:1: '1e999' is not a finite time above 0"},
    {TEXT("1010101010101010 -1\n"), "data.txt:1: '-1' is not a finite time above 0"},
    {TEXT("1010101010101010 1\r1010101010101010 2"),
     "data.txt:1: '1010101010101010' follows the time; expected"},
    {TEXT("1010101010101010 1\n10101\0"
          "10101010 1\n"),
     "data.txt:2: a NUL byte, so this is not"},
    {TEXT(""), "data.txt: no rows; expected 16 binary digits and a time in ms"},
};

TEST_LOOP(refuses_and_says_where, 0, ARRAY_LEN(bad))
{
    struct model_data p;
    FAILS(model_data_parse("data.txt", bad[_i].text, bad[_i].len, &p, &st), STATUS_USAGE, "");
    ck_assert_msg(strncmp(st.message, bad[_i].message, strlen(bad[_i].message)) == 0, "%s",
                  st.message);
    ck_assert_ptr_null(p.plans);
    ck_assert_ptr_null(p.ms);
    ck_assert_int_eq(p.count, 0);
}

SUITE("train data", NULL, NULL)
