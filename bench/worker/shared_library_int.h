/* NVIDIA's libraries, opened when they are first needed: fuseplan builds and starts without them.
 * The worker's side alone. */
#ifndef FUSEPLAN_BENCH_SHARED_LIBRARY_INT_H
#define FUSEPLAN_BENCH_SHARED_LIBRARY_INT_H

#include "base/base.h"

struct shared_symbol {
    const char *name;
    void **function; /* gets its address */
};

/* Opens a library, for good, by path or, without a slash, from the loader's own places.  False
 * where a symbol is missing, then *missing (may be null) names it, or the library, then it is null
 * and dlerror() says why. */
bool shared_open(const char *path, const struct shared_symbol *symbols, size_t count,
                 const char **missing);

/* The same for a library of the CUDA toolkit: the first of `names` (ends with null) that is found
 * below CUDA_HOME, without it below /usr/local/cuda, and last in the loader's own places, which may
 * hold another version than the user's toolkit.  path gets where it was found. */
bool shared_open_toolkit(const char *const *names, const struct shared_symbol *symbols,
                         size_t count, struct buf *path);

#endif
