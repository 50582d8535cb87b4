/* Shapes of a workload that together hold each pair of sizes. */
#ifndef FUSEPLAN_TESTS_SHAPES_H
#define FUSEPLAN_TESTS_SHAPES_H

#include <stdbool.h>

enum { FACTORS = 5, VALUES_MAX = 5, SHAPES_MAX = 256 };

static const int sizes[FACTORS][VALUES_MAX] = {
    {1, 7, 64, 100, 193}, /* sequence length; in the last, masks leave out blocks between others */
    {1, 3, 12},           /* heads */
    {5, 8, 64},           /* head size: with the rest of a vector, and without */
    {1, 2},               /* batch */
    {0, 1}                /* whether lengths are given */
};
static const int size_count[FACTORS] = {5, 3, 3, 2, 2};

struct shape {
    int pick[FACTORS]; /* index into sizes */
};

static inline int all_shapes(struct shape *out)
{
    int count = 0;
    struct shape s = {0};
    for (int f = 0; f >= 0;) {
        out[count++] = s;
        for (f = FACTORS - 1; f >= 0 && ++s.pick[f] == size_count[f]; f--)
            s.pick[f] = 0;
    }
    return count;
}

static inline double work(const struct shape *s)
{
    double hidden = (double)sizes[1][s->pick[1]] * sizes[2][s->pick[2]];
    return hidden * hidden * sizes[0][s->pick[0]] * sizes[3][s->pick[3]];
}

/* Pairs of values that the shape has and `seen` lacks; marks them where asked to. */
static inline int new_pairs(const struct shape *s,
                            bool seen[FACTORS][VALUES_MAX][FACTORS][VALUES_MAX], bool mark)
{
    int count = 0;
    for (int f = 0; f < FACTORS; f++)
        for (int g = f + 1; g < FACTORS; g++) {
            bool *pair = &seen[f][s->pick[f]][g][s->pick[g]];
            count += !*pair;
            *pair = *pair || mark;
        }
    return count;
}

/* Greedily the shape with most new pairs, the cheapest of those. */
static inline int pairwise_shapes(struct shape *out)
{
    struct shape all[SHAPES_MAX];
    bool seen[FACTORS][VALUES_MAX][FACTORS][VALUES_MAX] = {{{{false}}}};
    int count = 0, n = all_shapes(all);
    for (;;) {
        int best = 0;
        for (int i = 1; i < n; i++) {
            int more = new_pairs(&all[i], seen, false) - new_pairs(&all[best], seen, false);
            if (more > 0 || (more == 0 && work(&all[i]) < work(&all[best])))
                best = i;
        }
        if (new_pairs(&all[best], seen, true) == 0)
            return count;
        out[count++] = all[best];
    }
}

#endif
