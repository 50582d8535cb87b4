#include "tests/made_up.h"

/* Rough shares of an encoder layer's operators, in ms. */
static const double op_ms[OP_COUNT] = {6, 1, 2, 1, 1.5, 2, 0.5, 2, 0.7, 0.8, 8, 1.5, 8, 0.7, 0.8};

static double unit(uint64_t seed, uint64_t what)
{
    return (double)(splitmix64(seed * 0x10001 + what) >> 11) * 0x1p-53;
}

/* A launch, and operators that run between 0.85 and 1.1 times their time on their own. */
static double segment_ms(uint64_t seed, struct segment s, int id)
{
    double sum = 0;
    for (int op = s.first; op <= s.last; op++)
        sum += op_ms[op];
    double fused = s.last > s.first ? 0.85 + 0.25 * unit(seed, (uint64_t)id) : 1;
    return 0.3 + fused * sum;
}

double made_up_ms(const struct made_up *m, unsigned value)
{
    struct plan p = plan_from_value(value);
    struct segment s[OP_COUNT];
    int count = plan_segments(p, s), before = -1;
    double ms = 0, before_ms = 0;
    for (int i = 0; i < count; i++) {
        int id = slot_of(s[i], p.handwritten);
        double own = segment_ms(m->seed, s[i], id);
        uint64_t pair = 1000 + (uint64_t)(before + 1) * 200 + (uint64_t)id;
        if (before >= 0)
            ms += (before_ms + own) * 0.16 * (unit(m->seed, pair) - 0.5);
        ms += own;
        before = id;
        before_ms = own;
    }
    return ms * (1 + 0.005 * (2 * unit(m->seed, 1000000 + value) - 1));
}

void made_up_init(struct made_up *m, uint64_t seed, unsigned lo, unsigned hi)
{
    memset(m, 0, sizeof(*m));
    m->seed = seed;
    m->cost = 1;
    for (int i = 0; i < SLOT_COUNT; i++)
        m->times.ms[i] = segment_ms(seed, slot_segment(i), i);
    m->count = plan_space(lo, hi, m->space);
    for (int i = 0; i < m->count; i++) {
        m->ms[i] = made_up_ms(m, plan_value(m->space[i]));
        if (m->ms[i] < m->ms[m->best])
            m->best = i;
    }
}

/* A variate of about the normal distribution: the sum of twelve uniform ones. */
static double normal(struct rng *r)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += rng_unit(r);
    return sum;
}

struct measured_space *made_up_measured(uint64_t seed)
{
    SCOPED struct made_up *m = mem_alloc(1, sizeof(*m));
    struct measured_space *s = mem_alloc(1, sizeof(*s));
    struct rng r = {seed};
    made_up_init(m, seed, 32768, 49152);
    s->count = m->count;
    s->best_ms = m->ms[m->best];
    for (int i = 0; i < m->count; i++) { /* Fisher and Yates, from the inside out */
        int j = (int)rng_below(&r, (uint32_t)i + 1);
        s->plans[i] = s->plans[j];
        s->true_ms[i] = s->true_ms[j];
        s->plans[j] = m->space[i];
        s->true_ms[j] = m->ms[i];
    }
    for (int i = 0; i < m->count; i++)
        s->ms[i] = s->true_ms[i] * (1 + 0.01 * normal(&r));
    for (int i = 0; i < SLOT_COUNT; i++)
        s->times.ms[i] = m->times.ms[i] * (1 + 0.02 * normal(&r));
    return s;
}
