#include "codegen/codegen_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ATTENTION_OP = 2, LAST_ATTENTION_OP = 6 };

/* Bit of pos p (0..15) in a value: pos0 is the most significant. */
static unsigned position_bit(int position)
{
    return 1u << (15 - position);
}

static bool fused_after(struct plan p, int op)
{
    return op >= 0 && op < BOUNDARY_COUNT && (p.fused >> op & 1) != 0;
}

bool plan_has_attention_segment(struct plan p)
{
    for (int op = FIRST_ATTENTION_OP; op < LAST_ATTENTION_OP; op++)
        if (!fused_after(p, op))
            return false;
    return !fused_after(p, FIRST_ATTENTION_OP - 1) && !fused_after(p, LAST_ATTENTION_OP);
}

struct plan plan_from_value(unsigned value)
{
    struct plan p = {.fused = 0};
    for (int op = 0; op < BOUNDARY_COUNT; op++) {
        bool here = (value & position_bit(op + 1)) != 0, next = (value & position_bit(op + 2)) != 0;
        if (here == next)
            p.fused |= (uint16_t)(1u << op);
    }
    p.handwritten = (value & position_bit(0)) != 0 || !plan_has_attention_segment(p);
    return p;
}

unsigned plan_value(struct plan p)
{
    unsigned value = p.handwritten || !plan_has_attention_segment(p) ? position_bit(0) : 0;
    bool bit = false; /* pos1 is 0 in the canonical value */
    for (int op = 1; op < OP_COUNT; op++) {
        if (!fused_after(p, op - 1))
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

int plan_segments(struct plan p, struct segment out[OP_COUNT])
{
    int count = 0;
    for (int first = 0, last; first < OP_COUNT; first = last + 1) {
        last = first;
        while (fused_after(p, last))
            last++;
        out[count++] = (struct segment){(int8_t)first, (int8_t)last};
    }
    return count;
}

/* Segments that start before `first`: 15 + 14 + ... */
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

static uint16_t reads_of(int first, int last)
{
    unsigned reads = 0;
    for (int op = first; op <= last; op++)
        reads |= ops[op].reads;
    return (uint16_t)reads;
}

/* Tensors that operators first..last produce. */
static uint16_t produced_by(struct segment s)
{
    return (uint16_t)((1u << (TENSOR_OF(s.last) + 1)) - (1u << TENSOR_OF(s.first)));
}

uint16_t segment_inputs(struct segment s)
{
    return reads_of(s.first, s.last) & (uint16_t)~produced_by(s);
}

uint16_t segment_outputs(struct segment s)
{
    unsigned read_later = s.last + 1 < OP_COUNT ? reads_of(s.last + 1, OP_COUNT - 1) : 0;
    return (uint16_t)((produced_by(s) & read_later) | (1u << TENSOR_OF(s.last)));
}

uint16_t segment_weights(struct segment s)
{
    unsigned used = 0;
    for (int op = s.first; op <= s.last; op++)
        used |= ops[op].weights;
    return (uint16_t)used;
}

void segment_describe(struct segment s, struct buf *out)
{
    add_op_names(s.first, s.last, "+", out);
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

/* Digits of `base` to a number that saturates above VALUE_MAX; -1 where a character is no digit. */
static long parse_digits(const char *text, int base)
{
    long value = 0;
    if (text[0] == '\0')
        return -1;
    for (; *text != '\0'; text++) {
        int digit = isdigit((unsigned char)*text)    ? *text - '0'
                    : isxdigit((unsigned char)*text) ? tolower((unsigned char)*text) - 'a' + 10
                                                     : base;
        if (digit >= base)
            return -1;
        if (value <= VALUE_MAX)
            value = value * base + digit;
    }
    return value;
}

static int refuse_value(const char *text, const char *found, struct status *st)
{
    return status_set(st, STATUS_USAGE,
                      "'%.80s' is not a fusion mask value: %s; give 0..65535 in decimal, 0x "
                      "hexadecimal or 0b binary, or 16 binary digits",
                      text, found);
}

int plan_parse_value(const char *text, unsigned *value, struct status *st)
{
    *value = 0;
    size_t len = strlen(text);
    bool binary_digits = len > 0 && strspn(text, "01") == len;
    long parsed;
    if (len == 0)
        return refuse_value(text, "it is empty", st);
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        parsed = parse_digits(text + 2, 16);
    else if (text[0] == '0' && (text[1] == 'b' || text[1] == 'B'))
        parsed = parse_digits(text + 2, 2);
    else if (binary_digits && len == 16)
        parsed = parse_digits(text, 2);
    else if (binary_digits && len > 5 && len < 24) {
        char found[64];
        snprintf(found, sizeof(found), "it has %zu binary digits", len);
        return refuse_value(text, found, st);
    } else if (text[0] == '0' && len > 1)
        return refuse_value(text, "it has a leading zero", st);
    else if (text[0] == '-' && parse_digits(text + 1, 10) >= 0)
        return refuse_value(text, "it is negative", st);
    else
        parsed = parse_digits(text, 10);

    if (parsed < 0)
        return refuse_value(text, "it is not a number", st);
    if (parsed > VALUE_MAX)
        return refuse_value(text, "it is above 65535", st);
    *value = (unsigned)parsed;
    return 0;
}

int plan_parse_range(const char *text, unsigned *lo, unsigned *hi, struct status *st)
{
    *lo = 0;
    *hi = VALUE_MAX;
    if (strcmp(text, "all") == 0)
        return 0;

    const char *dots = strstr(text, "..");
    if (dots == NULL) {
        int result = plan_parse_value(text, lo, st);
        *hi = *lo;
        return result;
    }
    char *first = mem_strdup(text);
    first[dots - text] = '\0';
    int result =
        plan_parse_value(first, lo, st) != 0 || plan_parse_value(dots + 2, hi, st) != 0 ? -1 : 0;
    free(first);
    if (result == 0 && *lo > *hi)
        result =
            status_set(st, STATUS_USAGE, "range '%s' runs backwards: %u is above %u; write lo..hi",
                       text, *lo, *hi);
    return result;
}

/* "2-6" or "2" at *text, which moves past it. */
static int parse_segment(const char **text, struct segment *out, struct status *st)
{
    char *end;
    long first = strtol(*text, &end, 10), last = first;
    bool good = isdigit((unsigned char)**text) != 0;
    if (good && *end == '-') {
        const char *second = end + 1;
        last = strtol(second, &end, 10);
        good = isdigit((unsigned char)*second) != 0;
    }
    if (!good || (*end != '\0' && *end != ','))
        return status_set(st, STATUS_USAGE,
                          "'%.80s' is not a list of segments; give operator numbers such as "
                          "2-6,8-9",
                          *text);
    if (first > last || last >= OP_COUNT)
        return status_set(st, STATUS_USAGE,
                          "segment %ld-%ld does not exist; give first-last with 0 <= first <= last "
                          "<= 14",
                          first, last);
    *out = (struct segment){(int8_t)first, (int8_t)last};
    *text = *end == ',' ? end + 1 : end;
    if (*end == ',' && **text == '\0')
        return status_set(st, STATUS_USAGE, "a segment is missing after the last comma");
    return 0;
}

int plan_parse_segments(const char *text, bool handwritten, struct plan *out, struct status *st)
{
    *out = (struct plan){.handwritten = handwritten};
    unsigned taken = 0; /* bit i: operator i is named */
    if (*text == '\0')
        return status_set(st, STATUS_USAGE,
                          "the list of segments is empty; give operator numbers such as 2-6,8-9");
    while (*text != '\0') {
        struct segment s = {0, 0};
        if (parse_segment(&text, &s, st) != 0)
            return -1;
        unsigned covers = (2u << s.last) - (1u << s.first);
        if ((taken & covers) != 0)
            return status_set(st, STATUS_USAGE,
                              "segment %d-%d overlaps one named before; each operator belongs to "
                              "one segment",
                              s.first, s.last);
        taken |= covers;
        out->fused |= (uint16_t)((1u << s.last) - (1u << s.first));
    }
    if (handwritten && !plan_has_attention_segment(*out))
        return status_set(st, STATUS_USAGE,
                          "the hand-written operator serves ops 2-6 as one segment only; name "
                          "segment 2-6 or leave the flag out");
    if (!plan_has_attention_segment(*out))
        out->handwritten = true;
    return 0;
}

int plan_space(unsigned lo, unsigned hi, uint16_t out[PLAN_SPACE])
{
    uint64_t seen[(VALUE_MAX + 1) / 64] = {0};
    for (unsigned value = lo; value <= hi && value <= VALUE_MAX; value++) {
        unsigned canonical = plan_canonical(value);
        seen[canonical / 64] |= (uint64_t)1 << canonical % 64;
    }
    int count = 0;
    for (unsigned value = 0; value <= VALUE_MAX; value++)
        if ((seen[value / 64] >> value % 64 & 1) != 0)
            out[count++] = (uint16_t)value;
    return count;
}
