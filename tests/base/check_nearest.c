#include "base/base.h"
#include "tests/suite.h"

static const char *const list[] = {"full", "causal", "strided", "sliding", "sliding_causal"};

static const struct {
    const char *word, *found; /* found is null where nothing is near */
} cases[] = {{"causal", "causal"},
             {"casual", "causal"}, /* a swap is one edit */
             {"slidng", "sliding"},
             {"slidding", "sliding"},
             {"striped", "strided"},
             {"ful", "full"},
             {"Full", "full"},
             {"slidingcausal", "sliding_causal"},
             {"f", NULL},
             {"", NULL},
             {"flash", NULL},
             {"ball", NULL}, /* half of it is other letters */
             {"a_word_much_longer_than_any_that_could_ever_be_meant", NULL}};

START_TEST(finds_the_nearest_word)
{
    const char *found = nearest_word(cases[_i].word, list, ARRAY_LEN(list));
    if (cases[_i].found == NULL)
        ck_assert_ptr_null(found);
    else
        ck_assert_pstr_eq(found, cases[_i].found);
}
END_TEST

START_TEST(takes_the_first_of_equals)
{
    static const char *const equals[] = {"abcx", "abcy"};
    ck_assert_str_eq(nearest_word("abcz", equals, 2), "abcx");
    ck_assert_ptr_null(nearest_word("abcz", equals, 0));
}
END_TEST

SUITE("nearest", NULL, NULL, LOOP(finds_the_nearest_word, 0, ARRAY_LEN(cases)),
      ONCE(takes_the_first_of_equals))
