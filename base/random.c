#include "base/base.h"

#include <sys/random.h>
#include <unistd.h>

#define GOLDEN_GAMMA 0x9E3779B97F4A7C15u

uint64_t splitmix64(uint64_t x)
{
    uint64_t z = x + GOLDEN_GAMMA;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t rng_next(struct rng *r)
{
    uint64_t value = splitmix64(r->state);
    r->state += GOLDEN_GAMMA;
    return value;
}

uint32_t rng_below(struct rng *r, uint32_t n)
{
    /* Lemire: Fast Random Integer Generation in an Interval (2019).  Drawing again removes the
     * bias, which is at most n / 2^32. */
    uint64_t product = (rng_next(r) >> 32) * n;
    uint32_t limit = -n % n;
    while ((uint32_t)product < limit)
        product = (rng_next(r) >> 32) * n;
    return (uint32_t)(product >> 32);
}

double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *r)
{
    /* drawn first, because C leaves the order of two factors open */
    double radius = sqrt(-2 * log(1 - rng_unit(r)));
    return radius * cos(2 * M_PI * rng_unit(r));
}

uint64_t random_for_name(void)
{
    uint64_t drawn = (uint64_t)(clock_seconds() * 1e9) ^ (uint64_t)getpid() << 40;
    while (getrandom(&drawn, sizeof(drawn), 0) < 0 && errno == EINTR)
        ;
    return drawn;
}
