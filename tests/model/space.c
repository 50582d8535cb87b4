#include "tests/model/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Milliseconds of each operator alone and what fusing it with the next one saves, shaped as a BERT
 * encoder layer's: GEMMs dominate, attention's inner boundaries and epilogues save most. */
static const double op_ms[OP_COUNT] = {3.0, 0.9, 0.8, 0.5, 0.7, 0.8, 0.3, 1.0,
                                       0.4, 0.4, 4.0, 1.0, 4.0, 0.4, 0.4};
static const double saved_ms[BOUNDARY_COUNT] = {0.5, 0.1, 0.4, 0.4, 0.4, 0.2, 0.1,
                                                0.3, 0.2, 0.1, 0.7, 0.3, 0.3, 0.2};
static const unsigned gemms = 1u << 0 | 1u << 7 | 1u << 10 | 1u << 12; /* bit: operator */

static const double launch_ms = 0.15;
static const double crowding = 0.12;       /* a segment's slow-down for each GEMM after its first */
static const double segment_spread = 0.06; /* how well each segment's code happens to fit */
static const double pair_spread = 0.04;    /* what a segment finds in cache after another */
static const double segment_noise = 0.02, plan_noise = 0.01;

/* Box and Muller's normal variate. */
static double normal(struct rng *r)
{
    double radius = sqrt(-2 * log(1 - rng_unit(r)));
    return radius * cos(6.283185307179586 * rng_unit(r));
}

/* The time of each segment alone, exactly. */
static void draw_segments(struct rng *r, struct segment_times *exact)
{
    double op[OP_COUNT], saved[BOUNDARY_COUNT];
    for (int i = 0; i < OP_COUNT; i++)
        op[i] = op_ms[i] * exp(0.3 * normal(r));
    for (int i = 0; i < BOUNDARY_COUNT; i++)
        saved[i] = fmin(saved_ms[i] * exp(0.3 * normal(r)), 0.8 * fmin(op[i], op[i + 1]));
    for (int index = 0; index < SEGMENT_COUNT; index++) {
        struct segment s = segment_at(index);
        double ms = launch_ms;
        int crowd = -1;
        for (int i = s.first; i <= s.last; i++) {
            ms += op[i] - (i < s.last ? saved[i] : 0);
            crowd += gemms >> i & 1;
        }
        exact->ms[index] = ms * (1 + crowding * fmax(crowd, 0)) * exp(segment_spread * normal(r));
    }
    exact->ms[SLOT_HANDWRITTEN] = 0.85 * exact->ms[segment_index(slot_segment(SLOT_HANDWRITTEN))];
}

/* What segment b gains or loses after segment a, as a share of b's time: a deterministic draw, so
 * that the same neighbours meet the same fate in every plan. */
static double pair_effect(uint64_t seed, int a, int b)
{
    struct rng r = {splitmix64(seed ^ (uint64_t)(a * SEGMENT_COUNT + b + 1) << 20)};
    return pair_spread * normal(&r);
}

static double plan_ms(uint64_t seed, const struct segment_times *exact, struct plan p)
{
    struct segment segments[OP_COUNT];
    int count = plan_segments(p, segments);
    double ms = additive_ms(exact, p);
    for (int i = 1; i < count; i++) {
        int a = segment_index(segments[i - 1]), b = segment_index(segments[i]);
        ms += pair_effect(seed, a, b) * exact->ms[b];
    }
    return ms;
}

struct space *space_new(uint64_t seed)
{
    struct space *s = mem_alloc(1, sizeof(*s));
    struct rng r = {seed};
    struct segment_times exact;
    draw_segments(&r, &exact);
    struct plan plans[PLAN_SPACE];
    s->count = plan_space(32768, 49152, plans);
    s->best = plan_value(plans[0]);
    for (int i = 0; i < s->count; i++) {
        unsigned value = plan_value(plans[i]);
        s->plans[i] = (uint16_t)value;
        s->true_ms[value] = plan_ms(seed, &exact, plans[i]);
        s->measured_ms[value] = s->true_ms[value] * (1 + plan_noise * normal(&r));
        if (s->true_ms[value] < s->true_ms[s->best])
            s->best = value;
    }
    for (int i = 0; i < SLOT_COUNT; i++)
        s->times.ms[i] = exact.ms[i] * (1 + segment_noise * normal(&r));
    return s;
}

void space_shuffle(const struct space *s, uint64_t seed, uint16_t *out)
{
    struct rng r = {seed};
    memcpy(out, s->plans, (size_t)s->count * sizeof(*out));
    for (int i = s->count - 1; i > 0; i--) {
        uint32_t j = rng_below(&r, (uint32_t)i + 1);
        uint16_t t = out[i];
        out[i] = out[j];
        out[j] = t;
    }
}
