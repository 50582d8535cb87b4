/* Emitted sources against tests/golden/, byte for byte.  A golden file is named after its function
 * and the suffix of its language. */
#ifndef FUSEPLAN_TESTS_GOLDEN_H
#define FUSEPLAN_TESTS_GOLDEN_H

#include "codegen/codegen.h"
#include "tests/suite.h"

static inline void check_golden(const struct choice *c, const struct build_target *t,
                                const char *suffix)
{
    SCOPED_BUF path = BUF_INIT, want = BUF_INIT, got = BUF_INIT;
    buf_addf(&path, "%s/golden/", getenv("FUSEPLAN_TEST_DATA"));
    choice_symbol(c, &path);
    buf_adds(&path, suffix);
    OK(file_read(path.ptr, 0, &want, &st));
    choice_emit(c, t, &got);
    ck_assert_str_eq(got.ptr, want.ptr);
}

#endif
