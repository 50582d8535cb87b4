#include "layer/layer.h"
#include "tests/suite.h"

/* The notes' rule, told again: the bits of pos1..pos15 as text, cut where neighbours differ. */
static int segments_by_text(unsigned value, struct segment out[OP_COUNT])
{
    char bits[OP_COUNT + 1] = {0};
    for (int i = 0; i < OP_COUNT; i++)
        bits[i] = (value >> (14 - i) & 1) != 0 ? '1' : '0';
    int count = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        if (i == 0 || bits[i] != bits[i - 1])
            out[count++] = (struct segment){(int8_t)i, (int8_t)i};
        out[count - 1].last = (int8_t)i;
    }
    return count;
}

TEST(every_value_is_cut_where_bits_differ)
{
    for (unsigned value = 0; value <= VALUE_MAX; value++) {
        struct segment expected[OP_COUNT], found[OP_COUNT];
        int n = segments_by_text(value, expected);
        ck_assert_int_eq(plan_segments(plan_from_value(value), found), n);
        ck_assert_mem_eq(found, expected, (size_t)n * sizeof(found[0]));
    }
}

/* Ops 2-6 are one segment. */
static bool cuts_out_attention(struct plan p)
{
    struct segment s[OP_COUNT];
    int n = plan_segments(p, s), found = 0;
    for (int i = 0; i < n; i++)
        found += s[i].first == 2 && s[i].last == 6;
    return found == 1;
}

TEST(canonical_values)
{
    int distinct = 0;
    static bool seen[VALUE_MAX + 1];
    for (unsigned value = 0; value <= VALUE_MAX; value++) {
        unsigned canonical = plan_canonical(value);
        ck_assert_uint_eq(plan_canonical(canonical), canonical);
        ck_assert_uint_eq(plan_canonical(value ^ 0x7fff), canonical); /* pos1..pos15 complemented */
        ck_assert_uint_eq(plan_value(plan_from_value(value)), canonical);
        if (value >= 32768 && value <= 49151)
            ck_assert_uint_eq(canonical, value);
        bool attention = cuts_out_attention(plan_from_value(value));
        ck_assert_int_eq(plan_canonical(value ^ 0x8000) != canonical, attention);
        ck_assert_int_eq(plan_from_value(value).handwritten, attention && value >= 32768);
        distinct += !seen[canonical];
        seen[canonical] = true;
    }
    ck_assert_int_eq(distinct, PLAN_SPACE);
    ck_assert_uint_eq(plan_canonical(49152), 49151);
    ck_assert_uint_eq(plan_canonical(VALUE_UNFUSED), VALUE_UNFUSED);
    struct segment s[OP_COUNT];
    ck_assert_int_eq(plan_segments(plan_from_value(VALUE_UNFUSED), s), OP_COUNT);
}

static const struct {
    unsigned lo, hi;
    int distinct;
} spaces[] = {{32768, 49152, 16384}, {16384, 24576, 8193}, {0, 65535, PLAN_SPACE}, {7, 7, 1}};

TEST_LOOP(spaces_hold_the_plans_of_the_notes, 0, ARRAY_LEN(spaces))
{
    struct plan plans[PLAN_SPACE];
    bool seen[PLAN_KEYS] = {false};
    int n = plan_space(spaces[_i].lo, spaces[_i].hi, plans);
    ck_assert_int_eq(n, spaces[_i].distinct);
    for (int i = 0; i < n; i++) {
        ck_assert(!seen[plan_key(plans[i])]);
        ck_assert(plan_equal(plan_from_value(plan_value(plans[i])), plans[i]));
        ck_assert(i == 0 || plan_value(plans[i]) > plan_value(plans[i - 1]));
        seen[plan_key(plans[i])] = true;
    }
}

TEST(segments_are_numbered_in_order)
{
    int index = 0;
    for (int first = 0; first < OP_COUNT; first++)
        for (int last = first; last < OP_COUNT; last++, index++) {
            struct segment s = {(int8_t)first, (int8_t)last}, back = segment_at(index);
            ck_assert_int_eq(segment_index(s), index);
            ck_assert(back.first == first && back.last == last);
        }
    ck_assert_int_eq(index, SEGMENT_COUNT);
}

static const struct {
    struct segment segment;
    unsigned inputs, outputs; /* bits of operators' outputs; x is written as operator -1 */
} dataflow[] = {{{0, 14}, 1u << 0, 1u << 15},
                {{1, 3}, 1u << 1, 1u << 2 | 1u << 4}, /* v is read by op 5 later */
                {{2, 6}, 1u << 2, 1u << 7},
                {{7, 9}, 1u << 7 | 1u << 0, 1u << 10},             /* the residual is x */
                {{7, 10}, 1u << 7 | 1u << 0, 1u << 10 | 1u << 11}, /* layernorm1 is a residual */
                {{10, 14}, 1u << 10, 1u << 15},
                {{12, 14}, 1u << 12 | 1u << 10, 1u << 15}};

TEST_LOOP(segments_know_what_they_read_and_write, 0, ARRAY_LEN(dataflow))
{
    ck_assert_uint_eq(segment_inputs(&chain_bert, dataflow[_i].segment), dataflow[_i].inputs);
    ck_assert_uint_eq(segment_outputs(&chain_bert, dataflow[_i].segment), dataflow[_i].outputs);
}

SUITE("plan", NULL, NULL)
