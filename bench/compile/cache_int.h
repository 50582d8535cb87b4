/* How a cache is laid out: one directory for each kind of entry, one for headers, which holds a
 * directory for each set of them, and one for temporary files. */
#ifndef FUSEPLAN_BENCH_CACHE_INT_H
#define FUSEPLAN_BENCH_CACHE_INT_H

#include "bench/compile/compile.h"

#define CACHE_TEMPORARY_DIR    "temporary"
#define CACHE_HEADERS_DIR      "headers"
#define CACHE_TEMPORARY_PREFIX "fuseplan-" /* tells them from a user's own files */

enum { CACHE_TRAILER_SIZE = HASH_TEXT_SIZE - 1 };

/* An entry is DIR/KEY SUFFIX. */
struct cache_kind_info {
    const char *dir, *suffix;
};
extern const struct cache_kind_info cache_kinds[CACHE_KIND_COUNT];

#endif
