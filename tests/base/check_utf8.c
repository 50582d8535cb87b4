#include "base/base.h"
#include "tests/suite.h"

static const struct {
    const char *text, *mended;
} cases[] = {
    {"", ""},
    {"plain\x1b[1m\n", "plain\x1b[1m\n"},
    {"\xc2\x80 \xdf\xbf", "\xc2\x80 \xdf\xbf"}, /* the first and last character of each form */
    {"caf\xe9 noir", "caf? noir"},
    {"\xc0\x80 \xc1\xbf", "?? ??"}, /* longer than they need be */
    {"\xed\xa0\x80.", "???."},      /* half of a pair of UTF-16 */
    {"\xe2\x80.", "??."},
    {"\xe2\x80\xe2\x80\x98", "??\xe2\x80\x98"},
    {"cut \xe2\x80", "cut "},
    {"\xe2", ""},
    {"not cut \xff", "not cut ?"},
};

TEST_LOOP(text_is_mended, 0, ARRAY_LEN(cases))
{
    char text[64];
    strcpy(text, cases[_i].text);
    ck_assert_ptr_eq(utf8_mend(text), text);
    ck_assert_str_eq(text, cases[_i].mended);
    ck_assert_str_eq(utf8_mend(text), cases[_i].mended);
}

static const struct {
    const char *text, *escaped;
} escapes[] = {
    {"", ""},
    {"plain \\n caf\xc3\xa9 \xe2\x80\x98", "plain \\n caf\xc3\xa9 \xe2\x80\x98"},
    {"\x1b[1m\r\n\t\x7f\x01", "\\x1b[1m\\r\\n\\t\\x7f\\x01"},
    {"\xc2\x9b"
     "31m\xc2\xa0",
     "\\xc2\\x9b31m\xc2\xa0"}, /* a terminal's CSI; a blank */
    {"caf\xe9 noir", "caf\\xe9 noir"},
    {"\xff\xed\xa0\x80.", "\\xff\\xed\\xa0\\x80."},
    {"a\xe2\x80\xaeltr", "a\\xe2\\x80\\xaeltr"},                 /* U+202E reverses */
    {"\xe2\x80\x8b\xe2\x80\x90", "\\xe2\\x80\\x8b\xe2\x80\x90"}, /* U+200B; a hyphen */
    {"\xf3\xa0\x81\x81\xf0\x9f\x98\x80", "\\xf3\\xa0\\x81\\x81\xf0\x9f\x98\x80"}, /* a tag */
};

TEST_LOOP(text_is_escaped_once, 0, ARRAY_LEN(escapes))
{
    SCOPED_BUF once = BUF_INIT, twice = BUF_INIT;
    utf8_escape(escapes[_i].text, &once);
    utf8_escape(once.ptr, &twice);
    ck_assert_str_eq(once.ptr, escapes[_i].escaped);
    ck_assert_str_eq(twice.ptr, escapes[_i].escaped);
}

/* The bits of a number in the form of so many bytes. */
static const char *encode(uint32_t number, int bytes, char out[5])
{
    static const unsigned char first[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (int i = bytes - 1; i > 0; i--, number >>= 6)
        out[i] = (char)(0x80 | (number & 0x3f));
    out[0] = (char)(first[bytes] | number);
    out[bytes] = '\0';
    return out;
}

/* The Unicode Standard, D92: the shortest form of each scalar value, which is up to U+10FFFF and no
 * surrogate. */
TEST(shortest_forms_of_scalar_values_are_valid)
{
    static const uint32_t above[] = {0, 0x80, 0x800, 0x10000, 0x200000};
    for (uint32_t number = 1; number < above[4]; number++)
        for (int bytes = 1; bytes <= 4; bytes++) {
            char text[5];
            bool shortest = number < above[bytes] && number >= above[bytes - 1];
            bool scalar = number <= 0x10ffff && (number < 0xd800 || number > 0xdfff);
            if (number >= above[bytes])
                continue;
            if (utf8_is_valid(encode(number, bytes, text)) != (shortest && scalar))
                ck_abort_msg("U+%04X in %d bytes", (unsigned)number, bytes);
            text[bytes - 1] = '\0';
            if (bytes > 1 && utf8_is_valid(text))
                ck_abort_msg("U+%04X cut to %d bytes", (unsigned)number, bytes - 1);
        }
}

/* In each of these ranges all characters are escaped; before and behind each stands one that is
 * not. */
static const struct {
    uint32_t first, last;
} hidden[] = {{0x80, 0x9f},     {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
              {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff}};

static bool is_escaped(uint32_t number)
{
    char text[5];
    return !utf8_is_plain(encode(number, number < 0x800 ? 2 : number < 0x10000 ? 3 : 4, text));
}

TEST_LOOP(hidden_characters_are_escaped, 0, ARRAY_LEN(hidden))
{
    for (uint32_t c = hidden[_i].first; c <= hidden[_i].last; c++)
        ck_assert_msg(is_escaped(c), "U+%04X", (unsigned)c);
    ck_assert(hidden[_i].first == 0x80 || !is_escaped(hidden[_i].first - 1));
    ck_assert(!is_escaped(hidden[_i].last + 1));
}

SUITE("utf8", NULL, NULL)
