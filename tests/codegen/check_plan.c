#include "codegen/codegen.h"
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

START_TEST(every_value_is_cut_where_bits_differ)
{
    for (unsigned value = 0; value <= VALUE_MAX; value++) {
        struct segment expected[OP_COUNT], found[OP_COUNT];
        int n = segments_by_text(value, expected);
        ck_assert_int_eq(plan_segments(plan_from_value(value), found), n);
        ck_assert_mem_eq(found, expected, (size_t)n * sizeof(found[0]));
    }
}
END_TEST

START_TEST(every_plan_covers_the_chain_once)
{
    for (unsigned value = 0; value <= VALUE_MAX; value++) {
        struct segment s[OP_COUNT];
        int n = plan_segments(plan_from_value(value), s), next = 0;
        for (int i = 0; i < n; i++) {
            ck_assert_int_eq(s[i].first, next);
            ck_assert_int_ge(s[i].last, s[i].first);
            next = s[i].last + 1;
        }
        ck_assert_int_eq(next, OP_COUNT);
    }
}
END_TEST

START_TEST(canonical_values)
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
        if (!plan_has_attention_segment(plan_from_value(value)))
            ck_assert_uint_eq(plan_canonical(value ^ 0x8000), canonical);
        distinct += !seen[canonical];
        seen[canonical] = true;
    }
    ck_assert_int_eq(distinct, PLAN_SPACE);
    ck_assert_uint_eq(plan_canonical(49152), 49151);
    ck_assert_uint_eq(plan_canonical(VALUE_UNFUSED), VALUE_UNFUSED);
    struct segment s[OP_COUNT];
    ck_assert_int_eq(plan_segments(plan_from_value(VALUE_UNFUSED), s), OP_COUNT);
}
END_TEST

static const struct {
    unsigned lo, hi;
    int distinct;
} spaces[] = {{32768, 49152, 16384}, {16384, 24576, 8193}, {0, 65535, PLAN_SPACE}, {7, 7, 1}};

START_TEST(spaces_hold_the_plans_of_the_notes)
{
    uint16_t values[PLAN_SPACE];
    int n = plan_space(spaces[_i].lo, spaces[_i].hi, values);
    ck_assert_int_eq(n, spaces[_i].distinct);
    for (int i = 0; i < n; i++) {
        ck_assert_uint_eq(plan_canonical(values[i]), values[i]);
        ck_assert(i == 0 || values[i] > values[i - 1]);
    }
}
END_TEST

static const struct {
    const char *digits, *line;
} notes[] = {{"0001101010101010", "6826 0 2 1 2 3 4"},
             {"0000010101010101", "1365 0 1 1 4"},
             {"0011111010010110", "16022 0 3 2 6 9 10 13 14"},
             {"0101010101010101", "21845 0 0"}};

START_TEST(translates_as_the_notes_do)
{
    unsigned value;
    struct status st = STATUS_INIT;
    struct buf line;
    buf_init(&line);
    ck_assert_int_eq(plan_parse_value(notes[_i].digits, &value, &st), 0);
    plan_translate(value, &line);
    ck_assert_str_eq(line.ptr, notes[_i].line);
    buf_release(&line);
}
END_TEST

/* Writes a plan as --segments text, reads it back. */
START_TEST(segments_text_is_the_inverse)
{
    for (unsigned value = 0; value <= VALUE_MAX; value++) {
        struct plan plan = plan_from_value(value), back;
        struct segment s[OP_COUNT];
        struct status st = STATUS_INIT;
        struct buf text;
        buf_init(&text);
        int n = plan_segments(plan, s);
        for (int i = 0; i < n; i++)
            buf_addf(&text, i == 0 ? "%d-%d" : ",%d-%d", s[i].first, s[i].last);
        bool handwritten = plan_has_attention_segment(plan) && plan.handwritten;
        ck_assert_int_eq(plan_parse_segments(text.ptr, handwritten, &back, &st), 0);
        ck_assert_uint_eq(plan_value(back), plan_canonical(value));
        buf_release(&text);
    }
}
END_TEST

static const struct {
    const char *text;
    unsigned value;
} values[] = {{"0", 0},
              {"6826", 6826},
              {"65535", 65535},
              {"0x1aaa", 6826},
              {"0X1AAA", 6826},
              {"0b1101010101010", 6826},
              {"0001101010101010", 6826},
              {"1111111111111111", 65535},
              {"10101", 10101}};

START_TEST(parses_values)
{
    unsigned value;
    struct status st = STATUS_INIT;
    ck_assert_int_eq(plan_parse_value(values[_i].text, &value, &st), 0);
    ck_assert_uint_eq(value, values[_i].value);
}
END_TEST

static const struct {
    const char *text, *found;
} bad_values[] = {{"", "empty"},
                  {"65536", "above 65535"},
                  {"99999999999999999999999", "above 65535"},
                  {"0x10000", "above 65535"},
                  {"-1", "negative"},
                  {"01", "leading zero"},
                  {"00", "leading zero"},
                  {"101010101010101", "15 binary digits"},
                  {"10101010101010101", "17 binary digits"},
                  {"0x", "not a number"},
                  {"0b12", "not a number"},
                  {" 1", "not a number"},
                  {"1 ", "not a number"},
                  {"+1", "not a number"},
                  {"12a", "not a number"},
                  {"six", "not a number"}};

START_TEST(refuses_values)
{
    unsigned value;
    struct status st = STATUS_INIT;
    ck_assert_int_eq(plan_parse_value(bad_values[_i].text, &value, &st), -1);
    ck_assert_int_eq(st.code, STATUS_USAGE);
    ck_assert_ptr_nonnull(strstr(st.message, bad_values[_i].found));
    ck_assert_ptr_nonnull(strstr(st.message, "0..65535"));
}
END_TEST

static const char *const bad_ranges[] = {"",     "..",    "1..",      "..2",
                                         "2..1", "1...2", "0..65536", "a..b"};

START_TEST(refuses_ranges)
{
    unsigned lo, hi;
    struct status st = STATUS_INIT;
    ck_assert_int_eq(plan_parse_range(bad_ranges[_i], &lo, &hi, &st), -1);
    ck_assert_int_eq(st.code, STATUS_USAGE);
}
END_TEST

START_TEST(parses_ranges)
{
    unsigned lo, hi;
    struct status st = STATUS_INIT;
    ck_assert_int_eq(plan_parse_range("all", &lo, &hi, &st), 0);
    ck_assert(lo == 0 && hi == VALUE_MAX);
    ck_assert_int_eq(plan_parse_range("0x10..20", &lo, &hi, &st), 0);
    ck_assert(lo == 16 && hi == 20);
    ck_assert_int_eq(plan_parse_range("5", &lo, &hi, &st), 0);
    ck_assert(lo == 5 && hi == 5);
}
END_TEST

static const char *const bad_segments[] = {
    "",    "a",      "2-",   "-6",    "2-6,",
    "6-2", "0-15",   "2--3", "2-6 8", "2-6,6-7",
    "1,1", "2-6,,7", "1.5",  "15",    "99999999999999999999"};

START_TEST(refuses_segments)
{
    struct plan plan;
    struct status st = STATUS_INIT;
    ck_assert_int_eq(plan_parse_segments(bad_segments[_i], false, &plan, &st), -1);
    ck_assert_int_eq(st.code, STATUS_USAGE);
}
END_TEST

START_TEST(handwritten_needs_its_segment)
{
    struct plan plan;
    struct status st = STATUS_INIT;
    ck_assert_int_eq(plan_parse_segments("2-6,8-9,10-11,13-14", true, &plan, &st), 0);
    ck_assert_uint_eq(plan_value(plan), VALUE_FIRST_VERSION);
    ck_assert_int_eq(plan_parse_segments("2-6", false, &plan, &st), 0);
    ck_assert_uint_lt(plan_value(plan), 16384);
    ck_assert_int_eq(plan_parse_segments("2-5", true, &plan, &st), -1);
}
END_TEST

START_TEST(segments_are_numbered_in_order)
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
END_TEST

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

START_TEST(segments_know_what_they_read_and_write)
{
    ck_assert_uint_eq(segment_inputs(dataflow[_i].segment), dataflow[_i].inputs);
    ck_assert_uint_eq(segment_outputs(dataflow[_i].segment), dataflow[_i].outputs);
}
END_TEST

/* In every plan each tensor that a segment reads was written by one before it. */
START_TEST(plans_hand_on_what_is_read)
{
    for (unsigned value = 32768; value <= 49151; value++) {
        struct segment s[OP_COUNT];
        int n = plan_segments(plan_from_value(value), s);
        unsigned written = 1u << TENSOR_X;
        for (int i = 0; i < n; i++) {
            ck_assert_uint_eq(segment_inputs(s[i]) & ~written, 0);
            written |= segment_outputs(s[i]);
        }
        ck_assert_uint_ne(written & 1u << TENSOR_OF(14), 0);
    }
}
END_TEST

START_TEST(segments_are_described_by_names)
{
    struct buf text;
    buf_init(&text);
    segment_describe((struct segment){2, 4}, &text);
    ck_assert_str_eq(text.ptr, "scores+mask+softmax");
    buf_release(&text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *t = tcase_create("plan");
    tcase_add_test(t, every_value_is_cut_where_bits_differ);
    tcase_add_test(t, every_plan_covers_the_chain_once);
    tcase_add_test(t, canonical_values);
    tcase_add_loop_test(t, spaces_hold_the_plans_of_the_notes, 0, ARRAY_LEN(spaces));
    tcase_add_loop_test(t, translates_as_the_notes_do, 0, ARRAY_LEN(notes));
    tcase_add_test(t, segments_text_is_the_inverse);
    tcase_add_loop_test(t, parses_values, 0, ARRAY_LEN(values));
    tcase_add_loop_test(t, refuses_values, 0, ARRAY_LEN(bad_values));
    tcase_add_test(t, parses_ranges);
    tcase_add_loop_test(t, refuses_ranges, 0, ARRAY_LEN(bad_ranges));
    tcase_add_loop_test(t, refuses_segments, 0, ARRAY_LEN(bad_segments));
    tcase_add_test(t, handwritten_needs_its_segment);
    tcase_add_test(t, segments_are_numbered_in_order);
    tcase_add_loop_test(t, segments_know_what_they_read_and_write, 0, ARRAY_LEN(dataflow));
    tcase_add_test(t, plans_hand_on_what_is_read);
    tcase_add_test(t, segments_are_described_by_names);
    suite_add_tcase(s, t);
    return suite_run(s);
}
