#include "layer/layer.h"

/* The bit of pos0..pos15 in a value. */
static unsigned position_bit(int position)
{
    return 1u << (15 - position);
}

static bool has_attention_segment(struct plan p)
{
    const unsigned inside = (1u << ATTENTION_LAST) - (1u << ATTENTION_FIRST);
    const unsigned edges = 1u << (ATTENTION_FIRST - 1) | 1u << ATTENTION_LAST;
    return (p.fused & (inside | edges)) == inside;
}

struct plan plan_of(uint16_t fused, bool handwritten)
{
    struct plan p = {.fused = fused};
    p.handwritten = handwritten && has_attention_segment(p);
    return p;
}

struct plan plan_from_value(unsigned value)
{
    unsigned fused = 0;
    for (int op = 0; op < BOUNDARY_COUNT; op++) {
        bool here = (value & position_bit(op + 1)) != 0, next = (value & position_bit(op + 2)) != 0;
        if (here == next)
            fused |= 1u << op;
    }
    return plan_of((uint16_t)fused, (value & position_bit(0)) != 0);
}

unsigned plan_value(struct plan p)
{
    /* In the canonical value pos0 is 1 where it changes nothing, and pos1 is 0. */
    unsigned value = p.handwritten || !has_attention_segment(p) ? position_bit(0) : 0;
    bool bit = false;
    for (int op = 1; op < OP_COUNT; op++) {
        if ((p.fused >> (op - 1) & 1) == 0)
            bit = !bit;
        if (bit)
            value |= position_bit(op + 1);
    }
    return value;
}

unsigned plan_canonical(unsigned value)
{
    return plan_value(plan_from_value(value));
}

const char *plan_word(unsigned value)
{
    return value == VALUE_UNFUSED ? "unfused " : value == VALUE_FUSED ? "fused " : "";
}

void plan_add(unsigned value, struct buf *out)
{
    static const struct {
        unsigned value;
        const char *name;
    } names[] = {{VALUE_UNFUSED, "unfused: a kernel for each operator"},
                 {VALUE_FUSED, "attention, norms and activation fused"},
                 {48920, "the usual best on Hopper"}};
    buf_addf(out, "%u", value);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].value == value)
            buf_addf(out, " (%s)", names[i].name);
}

/* A bit for each operator that ends a segment.  The lowest one is the first to be taken and
 * cleared. */
static unsigned segment_ends(struct plan p)
{
    const unsigned last_op = 1u << (OP_COUNT - 1), all = last_op | (last_op - 1);
    return (~p.fused & all) | last_op;
}

int plan_segments(struct plan p, struct segment out[OP_COUNT])
{
    int count = 0, first = 0;
    for (unsigned ends = segment_ends(p); ends != 0; ends &= ends - 1) {
        int last = __builtin_ctz(ends);
        out[count++] = (struct segment){(int8_t)first, (int8_t)last};
        first = last + 1;
    }
    return count;
}

/* How many segments start before `first`: 15 + 14 + ... */
static int index_of_first(int first)
{
    return first * OP_COUNT - first * (first - 1) / 2;
}

int segment_index(struct segment s)
{
    return index_of_first(s.first) + s.last - s.first;
}

struct segment segment_at(int index)
{
    int first = 0;
    while (index_of_first(first + 1) <= index)
        first++;
    return (struct segment){(int8_t)first, (int8_t)(first + index - index_of_first(first))};
}

char *segment_text(struct segment s, char out[12])
{
    if (s.first < s.last)
        snprintf(out, 12, "%d-%d", s.first, s.last);
    else
        snprintf(out, 12, "%d", s.first);
    return out;
}

bool segment_is_attention(struct segment s)
{
    return s.first == ATTENTION_FIRST && s.last == ATTENTION_LAST;
}

struct segment slot_segment(int slot)
{
    return slot == SLOT_HANDWRITTEN ? (struct segment){ATTENTION_FIRST, ATTENTION_LAST}
                                    : segment_at(slot);
}

int slot_of(struct segment s, bool handwritten)
{
    return handwritten && segment_is_attention(s) ? (int)SLOT_HANDWRITTEN : segment_index(s);
}

/* Searches call this for each of their plans, for each measurement. */
int plan_slots(struct plan p, int out[OP_COUNT])
{
    int count = 0, first = 0;
    for (unsigned ends = segment_ends(p); ends != 0; ends &= ends - 1) {
        int last = __builtin_ctz(ends);
        out[count++] = index_of_first(first) + last - first;
        first = last + 1;
    }
    if (p.handwritten) { /* in the attention segment, the only one that begins there */
        const unsigned before = (1u << ATTENTION_FIRST) - 1;
        out[__builtin_popcount(segment_ends(p) & before)] = SLOT_HANDWRITTEN;
    }
    return count;
}

static uint32_t reads_of(const struct chain *c, int first, int last)
{
    uint32_t reads = 0;
    for (int op = first; op <= last; op++)
        reads |= op_tensors(&c->ops[op]);
    return reads;
}

static uint32_t produced_by(struct segment s)
{
    return SET_OF(TENSOR_OF(s.last) + 1) - SET_OF(TENSOR_OF(s.first));
}

uint32_t segment_inputs(const struct chain *c, struct segment s)
{
    return reads_of(c, s.first, s.last) & ~produced_by(s);
}

uint32_t segment_outputs(const struct chain *c, struct segment s)
{
    uint32_t read_later = reads_of(c, s.last + 1, OP_COUNT - 1) | chain_carried(c);
    return (produced_by(s) & read_later) | SET_OF(TENSOR_OF(s.last));
}

uint32_t segment_weights(const struct chain *c, struct segment s)
{
    uint32_t used = 0;
    for (int op = s.first; op <= s.last; op++)
        used |= op_weights(&c->ops[op]);
    return used;
}

void segment_describe(const struct chain *c, struct segment s, struct buf *out)
{
    add_op_names(c, s.first, s.last, "+", out);
}

void plan_translate(unsigned value, struct buf *out)
{
    struct segment segments[OP_COUNT];
    int count = plan_segments(plan_from_value(value), segments), fused = 0;
    for (int i = 0; i < count; i++)
        fused += segments[i].last > segments[i].first;

    buf_addf(out, "%u %d %d", value, (value & position_bit(0)) != 0, fused);
    for (int i = 0; i < count; i++)
        if (segments[i].last > segments[i].first)
            buf_addf(out, " %d %d", segments[i].first + 1, segments[i].last + 1);
}

int plan_space(unsigned lo, unsigned hi, struct plan out[PLAN_SPACE])
{
    uint64_t seen[(VALUE_MAX + 1) / 64] = {0};
    for (unsigned value = lo; value <= hi && value <= VALUE_MAX; value++) {
        unsigned canonical = plan_canonical(value);
        seen[canonical / 64] |= (uint64_t)1 << canonical % 64;
    }
    int count = 0;
    for (unsigned value = 0; value <= VALUE_MAX; value++)
        if ((seen[value / 64] >> value % 64 & 1) != 0)
            out[count++] = plan_from_value(value);
    return count;
}

bool plan_in_space(struct plan p, const struct plan *space, int count)
{
    for (int i = 0; i < count; i++)
        if (plan_equal(space[i], p))
            return true;
    return false;
}
