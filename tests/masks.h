/* Masks by name, for suites that only need one built. */
#ifndef FUSEPLAN_TESTS_MASKS_H
#define FUSEPLAN_TESTS_MASKS_H

#include "layer/layer.h"
#include "tests/suite.h"

/* Every kind that needs no file, with defaults and away from them. */
static const char *const mask_names[] __attribute__((unused)) = {
    "full",       "causal",           "strided",     "strided:t=3",    "fixed",
    "fixed:t=64", "sliding",          "sliding:w=0", "sliding_causal", "sliding_causal:w=70",
    "dilated",    "dilated:w=40,d=3", "longformer",  "bigbird",        "bigbird:g=0,w=1,n=2,seed=9",
    "prefix",     "document",         "document:n=3"};

/* Parses and resolves; release the spec. */
static inline struct mask_spec mask_spec_of(const char *text, int seq_len)
{
    struct mask_spec spec;
    OK(mask_parse(text, &spec, &st));
    OK(mask_resolve(&spec, seq_len, &st));
    return spec;
}

/* Builds a mask that needs no file; release it. */
static inline struct mask mask_of(const char *text, int seq_len)
{
    SCOPED_BY(mask_spec_release) struct mask_spec spec = mask_spec_of(text, seq_len);
    struct mask m;
    OK(mask_build(&spec, 1, seq_len, NULL, &m, &st));
    return m;
}

/* Builds the mask (batch,S,S) of a file with these bytes; release it. */
static inline struct mask mask_of_file(int batch, int seq_len, const uint8_t *data)
{
    SCOPED_BY(mask_spec_release) struct mask_spec spec = mask_spec_of("file:made-up", seq_len);
    SCOPED_BUF npy = BUF_INIT;
    struct mask m;
    npy_write(NPY_BOOL, 3, (const int64_t[]){batch, seq_len, seq_len}, data, &npy);
    OK(mask_build(&spec, batch, seq_len, &npy, &m, &st));
    return m;
}

#endif
