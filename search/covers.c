#include "search/study_int.h"

static double known_ms(const struct segment_times *times, int first, int last)
{
    struct segment s = {(int8_t)first, (int8_t)last};
    double ms = fmin(times->ms[slot_of(s, false)], times->ms[slot_of(s, true)]);
    return isnan(ms) ? INFINITY : ms;
}

void find_covers(const struct segment_times *times, struct covers *out)
{
    for (int first = OP_COUNT - 1; first >= 0; first--)
        for (int last = first; last < OP_COUNT; last++) {
            double split = INFINITY;
            for (int cut = first; cut < last; cut++)
                split = fmin(split, out->ms[first][cut] + out->ms[cut + 1][last]);
            out->split[first][last] = split;
            out->ms[first][last] = fmin(split, known_ms(times, first, last));
        }
}
