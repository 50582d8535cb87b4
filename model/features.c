#include "model/model.h"

/* The columns, in this order. */
enum {
    COLUMN_FUSED = 0, /* one for each boundary */
    COLUMN_HANDWRITTEN = COLUMN_FUSED + BOUNDARY_COUNT,
    COLUMN_SEGMENTS, /* how many there are, that is kernel launches */
    COLUMN_ADDITIVE,
    COLUMN_PRESENT /* one for each of the 120 segments */
};

double additive_ms(const struct segment_times *t, struct plan p)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += t->ms[slots[i]];
    return sum;
}

void features_of(struct plan p, const struct segment_times *times, float out[FEATURES])
{
    for (int i = 0; i < FEATURES; i++)
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
