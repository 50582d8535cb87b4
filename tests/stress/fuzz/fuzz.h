/* Fuzz targets: each hands bytes that anybody may have written to what reads them.
 *
 * A target is a .c file with LLVMFuzzerTestOneInput().  It is linked with driver.c, for the suites,
 * and with libFuzzer, for `tests/stress/fuzz/fuzz.sh`.  corpus/TARGET/ holds what it begins with,
 * and every input that found a defect: crash_WHAT.  To add a target: its file, its corpus, its row
 * in CMakeLists.txt.
 *
 * An input must leave no state that the next one sees. */
#ifndef FUSEPLAN_TESTS_FUZZ_H
#define FUSEPLAN_TESTS_FUZZ_H

#include "base/base.h"

/* Named by libFuzzer.  Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process, and so reports the input, where what was read contradicts itself. */
void fuzz_require(bool holds, const char *what);

/* The input as a text that ends at its first NUL; the caller frees. */
char *fuzz_text(const uint8_t *data, size_t size);

/* At the first call, goes to a directory of this process, in memory where the system has one, which
 * is removed at its end; whether this is the first call. */
bool fuzz_enter_dir(void);

/* Writes a file without a rename: nobody else reads it. */
void fuzz_write(const char *path, const void *data, size_t len);

/* What the input holds, read from its front. */
struct fuzz_bytes {
    const uint8_t *at;
    size_t left;
};
uint32_t fuzz_take(struct fuzz_bytes *b, size_t bytes); /* little endian; 0s past the end */

#endif
