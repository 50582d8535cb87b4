#include "base/base.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

char *hash_text(const void *data, size_t len, char out[HASH_TEXT_SIZE])
{
    XXH128_hash_t hash = XXH3_128bits(data, len);
    snprintf(out, HASH_TEXT_SIZE, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    return out;
}

uint64_t hash_number(const void *data, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, len, seed);
}
