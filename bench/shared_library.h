/* NVIDIA's libraries, opened when they are first needed: fuseplan builds and starts without them.
 * The worker's side alone. */
#ifndef FUSEPLAN_BENCH_SHARED_LIBRARY_H
#define FUSEPLAN_BENCH_SHARED_LIBRARY_H

#include "base/base.h"

struct shared_symbol {
    const char *name;
    void **function; /* gets its address */
};

/* Opens a library by path or, without a slash, from the loader's own places.  Null where it or one
 * of the symbols is missing: *missing (may be null) is that symbol, or null where the library is.
 */
void *shared_open(const char *path, const struct shared_symbol *symbols, size_t count,
                  const char **missing);

/* The same for a library of the CUDA toolkit: the first of `names` (ends with null) that is found
 * below CUDA_HOME, without it below /usr/local/cuda, and last in the loader's own places, which may
 * hold another version than the user's toolkit.  path gets where it was found. */
void *shared_open_toolkit(const char *const *names, const struct shared_symbol *symbols,
                          size_t count, struct buf *path);

#endif
