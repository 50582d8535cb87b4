#include "base/base.h"
#include "tests/suite.h"

/* The shell itself is the judge. */
static const char *const words[] = {"plain-1.0/x_y",
                                    "a b",
                                    "a;b",
                                    "it's",
                                    "$HOME `id` $(id)",
                                    "back\\slash\\",
                                    "*?[a]",
                                    "#x !y ~z {a,b}",
                                    "\"q\" | & < > (x)",
                                    "line\nline",
                                    "~",
                                    "\xc3\xa9t\xc3\xa9",
                                    "-n",
                                    ""};

TEST_LOOP(words_survive_the_shell, 0, ARRAY_LEN(words))
{
    char said[256] = "";
    SCOPED_BUF command = BUF_INIT;
    buf_adds(&command, "printf '%s|' ");
    buf_add_word(&command, words[_i]);
    FILE *shell = popen(command.ptr, "r");
    ck_assert_ptr_nonnull(shell);
    size_t n = fread(said, 1, sizeof(said) - 1, shell);
    ck_assert_int_eq(pclose(shell), 0);
    ck_assert_uint_eq(n, strlen(words[_i]) + 1);
    ck_assert_int_eq(strncmp(said, words[_i], n - 1), 0);
    buf_reset(&command);
    buf_add_path(&command, words[_i]);
    ck_assert_int_ne(command.ptr[0], '-');
}

SUITE("buf", NULL, NULL)
