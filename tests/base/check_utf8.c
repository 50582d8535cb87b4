#include "base/base.h"
#include "tests/suite.h"

static const struct {
    const char *text, *mended;
} cases[] = {
    {"", ""},
    {"plain\x1b[1m\n", "plain\x1b[1m\n"},
    {"\xc2\x80 \xdf\xbf", "\xc2\x80 \xdf\xbf"}, /* the first and last character of each form */
    {"\xe0\xa0\x80 \xef\xbf\xbf", "\xe0\xa0\x80 \xef\xbf\xbf"},
    {"\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"},
    {"caf\xe9 noir", "caf? noir"},
    {"\xc0\x80 \xc1\xbf", "?? ??"}, /* longer than they need be */
    {"\xe0\x9f\xbf \xf0\x8f\xbf\xbf", "??? ????"},
    {"\xed\xa0\x80.", "???."},      /* half of a pair of UTF-16 */
    {"\xf4\x90\x80\x80.", "????."}, /* beyond U+10FFFF */
    {"\xf5\x80.\xff", "??.?"},
    {"\x80\xbf.", "??."},
    {"\xe2\x80.", "??."},
    {"\xe2\x80\xe2\x80\x98", "??\xe2\x80\x98"},
    {"cut \xe2\x80", "cut "},
    {"cut \xf0", "cut "},
    {"\xe2", ""},
    {"not cut \xff", "not cut ?"},
};

START_TEST(text_is_mended)
{
    char text[64];
    strcpy(text, cases[_i].text);
    ck_assert_int_eq(utf8_is_valid(text), strcmp(text, cases[_i].mended) == 0);
    ck_assert_ptr_eq(utf8_mend(text), text);
    ck_assert_str_eq(text, cases[_i].mended);
    ck_assert_str_eq(utf8_mend(text), cases[_i].mended);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("utf8");
    TCase *t = tcase_create("utf8");
    tcase_add_loop_test(t, text_is_mended, 0, (int)ARRAY_LEN(cases));
    suite_add_tcase(s, t);
    return suite_run(s);
}
