/* Shared by the files of `ship`. */
#pragma once

#include "cmd/cmd.h"

/* ---- ship_verify.c: a library that was built against the oracle ------------------------------ */

/* Of one workload: compares the best plan and the unfused one with the oracle, on the weights of
 * the options, and times them side by side; then runs the library in the directory `at` on the same
 * input and compares its result with the best plan's.  Appends a row for each of the three to
 * `rows`.  STATUS_WRONG if the best plan or the library is wrong. */
int ship_verify(const struct options *one, const char *at, json_t *rows, struct status *st);
