#include "model/model.h"

#include <math.h>

/* The columns of FEATURES_PLAN, in this order. */
enum {
    COLUMN_FUSED = 0, /* one for each boundary */
    COLUMN_HANDWRITTEN = COLUMN_FUSED + BOUNDARY_COUNT,
    COLUMN_SEGMENTS, /* how many there are, that is kernel launches */
    COLUMN_ADDITIVE,
    COLUMN_PRESENT, /* one for each of the 120 segments */
    PLAN_COLUMNS = COLUMN_PRESENT + SEGMENT_COUNT,
    BITS_COLUMNS = 16
};

double additive_ms(const struct segment_times *t, struct plan p)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += t->ms[slots[i]];
    return sum;
}

int feature_count(enum feature_set set)
{
    return set == FEATURES_BITS ? BITS_COLUMNS : PLAN_COLUMNS;
}

static void features_bits(struct plan p, float *out)
{
    unsigned canonical = plan_value(p);
    for (int position = 0; position < BITS_COLUMNS; position++)
        out[position] = (float)(canonical >> (BITS_COLUMNS - 1 - position) & 1);
}

static void features_plan(struct plan p, const struct segment_times *times, float *out)
{
    for (int i = 0; i < PLAN_COLUMNS; i++)
        out[i] = 0;
    for (int boundary = 0; boundary < BOUNDARY_COUNT; boundary++)
        out[COLUMN_FUSED + boundary] = (float)(p.fused >> boundary & 1);
    out[COLUMN_HANDWRITTEN] = p.handwritten;

    struct segment segments[OP_COUNT];
    int count = plan_segments(p, segments);
    for (int i = 0; i < count; i++)
        out[COLUMN_PRESENT + segment_index(segments[i])] = 1;
    out[COLUMN_SEGMENTS] = (float)count;
    out[COLUMN_ADDITIVE] = times != NULL ? (float)additive_ms(times, p) : NAN;
}

void features_of(enum feature_set set, struct plan p, const struct segment_times *times, float *out)
{
    if (set == FEATURES_BITS)
        features_bits(p, out);
    else
        features_plan(p, times, out);
}
