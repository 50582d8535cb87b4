#include "tests/masks.h"

static const struct {
    const char *text, *normalised; /* at S=1023 */
} texts[] = {{"full", "full"},
             {"causal", "causal"},
             {"strided", "strided:t=31"},
             {"strided:t=32", "strided:t=32"},
             {"fixed", "fixed:t=31"},
             {"sliding:w=0", "sliding:w=0"},
             {"sliding_causal", "sliding_causal:w=31"},
             {"dilated:d=4", "dilated:w=31,d=4"},
             {"dilated:d=4,w=2", "dilated:w=2,d=4"},
             {"longformer:w=8", "longformer:g=31,w=8"},
             {"bigbird:seed=5", "bigbird:g=31,w=31,n=1,seed=5"},
             {"prefix", "prefix:p=255"},
             {"document", "document:n=4"}};

TEST_LOOP(texts_are_normalised, 0, ARRAY_LEN(texts))
{
    SCOPED_BUF once = BUF_INIT, twice = BUF_INIT;
    struct mask_spec spec = mask_spec_of(texts[_i].text, 1023), again, copy;
    mask_text(&spec, &once);
    ck_assert_str_eq(once.ptr, texts[_i].normalised);
    again = mask_spec_of(once.ptr, 50);
    mask_spec_copy(&copy, &again);
    mask_text(&copy, &twice);
    ck_assert_str_eq(twice.ptr, once.ptr);
    mask_spec_release(&spec);
    mask_spec_release(&again);
    mask_spec_release(&copy);
}

static const struct {
    const char *text, *found, *expected; /* fragments of the message */
} refused[] = {{"", "unknown attention mask ''", "full, causal, strided:t=N"},
               {"flash", "unknown attention mask 'flash'", "file:PATH"},
               {"causal:t=3", "found 't'", "takes no parameters"},
               {"sliding:w", "parameter 'w' has no value", "sliding:w=N"},
               {"sliding:w=x", "w: 'x'", "whole number"},
               {"sliding:w=-1", "w: -1 is out of range", "0 to 2147483647"},
               {"sliding:w=3,w=3", "'w' is given twice", "sliding"},
               {"bigbird:n=1025", "n: 1025 is out of range", "0 to 1024"},
               {"bigbird:seed=4294967296", "seed: 4294967296 is out of range", "0 to 4294967295"},
               {"file:", "names no file", "file:PATH"}};

TEST_LOOP(refuses_texts, 0, ARRAY_LEN(refused))
{
    struct mask_spec spec;
    FAILS(mask_parse(refused[_i].text, &spec, &st), STATUS_USAGE, refused[_i].found);
    ck_assert_msg(strstr(st.message, refused[_i].expected) != NULL, "%s", st.message);
    ck_assert_ptr_null(spec.kind);
    ck_assert_ptr_null(spec.path);
}

SUITE("mask_spec", NULL, NULL)
