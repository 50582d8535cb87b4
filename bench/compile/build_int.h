/* What build.c and pool.c share. */
#ifndef FUSEPLAN_BENCH_COMPILE_BUILD_INT_H
#define FUSEPLAN_BENCH_COMPILE_BUILD_INT_H

#include "bench/compile/compile.h"

/* ---- build.c: one binary --------------------------------------------------------------------- */

/* Appends the source of a binary, and names the binary by all that it depends on; after the headers
 * have been written, whose directory's name is their hash. */
void binary_source(const struct builder *b, struct binary *binary, struct buf *text);

/* Whether the cache has a binary that has its name, and what the compiler said of it. */
bool binary_in_cache(const struct builder *b, struct binary *binary);

/* A segment that a library runs needs no compiler: its text takes the binary's place. */
int binary_keep_text(const struct builder *b, struct binary *binary, const struct buf *text,
                     struct status *st);

/* STATUS_ENVIRONMENT: another program has removed a binary. */
int builder_gone(const struct builder *b, struct status *st);

#endif
