#include "base/base.h"
#include "tests/suite.h"

/* values: of a, b, c, ... in this order, with their lines; "" after the last one. */
static const struct {
    const char *text, *values[3];
    int lines[3];
} right[] = {
    {"", {""}, {0}},
    {"# [x]\n;a = 1\n\n \t \n", {""}, {0}},
    {"[s]\na = 1", {"1", ""}, {2}},
    {"[s] a=1\n", {"1", ""}, {1}},
    {"[S]\r\n\tA = 1\r\nb\t= 2 3 \r\n", {"1", "2 3", ""}, {2, 3}},
    {"\xef\xbb\xbf[s]\na = 1\n[s]\nb = 2\n", {"1", "2", ""}, {2, 4}},
    {"[s]\na = 1 # 2\nb = 1;2\n", {"1", "1", ""}, {2, 3}},
    {"[s]\na = \" 1 # 2 \" ; 3\nb = a\" \"b\n", {" 1 # 2 ", "a b", ""}, {2, 3}},
    {"[s]\na = \\\"\\\\\\n\\t\\b\n", {"\"\\\n\t\b", ""}, {2}},
    {"[s]\na = 1\\\n  2\nb = \\\n x \\\n\n", {"1  2", "x", ""}, {2, 4}},
    {"[s]\na =\nb = \"\"\n", {"<empty>", "<empty>", ""}, {2, 3}},
    {"[s]\na\nb  \n", {NULL, NULL, ""}, {2, 3}},
};

START_TEST(reads_what_git_reads)
{
    struct conf c;
    SCOPED_BUF text = BUF_INIT;
    buf_adds(&text, right[_i].text);
    OK(conf_parse("f", &text, "s", &c, &st));
    int n = 0;
    for (const char *want; (want = right[_i].values[n]) == NULL || want[0] != '\0'; n++) {
        ck_assert_int_lt(n, c.count);
        ck_assert_int_eq(c.items[n].line, right[_i].lines[n]);
        ck_assert_int_eq(c.items[n].key[0], 'a' + n);
        if (want == NULL)
            ck_assert_ptr_null(c.items[n].value);
        else
            ck_assert_str_eq(c.items[n].value, strcmp(want, "<empty>") == 0 ? "" : want);
    }
    ck_assert_int_eq(c.count, n);
    conf_release(&c);
}
END_TEST

static const struct {
    const char *text, *message;
} wrong[] = {
    {"a = 1\n", "f:1: 'a' is in no section; put [s] above it"},
    {"\n[t]\n", "f:2: unknown section [t]; expected [s]"},
    {"[s \"t\"]\n", "f:1: unknown section [s \"t\"]; expected [s]"},
    {"[s\n]\n", "f:1: '[s' has no ']'; expected [s]"},
    {"[s]\na = 1\nb = 1\nA = 2\n", "f:4: 'a' is given a second time, after line 2; keep one"},
    {"[s]\na b\n",
     "f:2: 'b' follows 'a'; expected 'a = VALUE', and letters, digits and '-' in a key"},
    {"[s]\na # b\n",
     "f:2: '#' follows 'a'; expected 'a = VALUE', and letters, digits and '-' in a key"},
    {"[s]\n1 = 2\n", "f:2: '1' begins no line; expected KEY = VALUE"},
    {"[s]\na = \"1\n\"\n", "f:2: a quote is not closed"},
    {"[s]\na = 1\\\n\\x\n", "f:3: '\\x' means nothing; expected \\\\, \\\", \\n, \\t or \\b"},
};

START_TEST(names_the_line_that_is_wrong)
{
    struct conf c;
    SCOPED_BUF text = BUF_INIT;
    buf_adds(&text, wrong[_i].text);
    st = STATUS_INIT;
    ck_assert_int_ne(conf_parse("f", &text, "s", &c, &st), 0);
    ck_assert_int_eq(st.code, STATUS_USAGE);
    ck_assert_str_eq(st.message, wrong[_i].message);
    conf_release(&c);
}
END_TEST

START_TEST(refuses_what_is_no_text)
{
    struct conf c;
    SCOPED_BUF text = BUF_INIT;
    buf_add(&text, "[s]\na = 1\0002\n", 12);
    st = STATUS_INIT;
    ck_assert_int_ne(conf_parse("f", &text, "s", &c, &st), 0);
    ck_assert_str_eq(st.message, "'f' is no text: it holds a NUL");
    conf_release(&c);
}
END_TEST

SUITE("conf", NULL, NULL, LOOP(reads_what_git_reads, 0, ARRAY_LEN(right)),
      LOOP(names_the_line_that_is_wrong, 0, ARRAY_LEN(wrong)), ONCE(refuses_what_is_no_text))
