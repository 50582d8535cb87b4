#include "cmd/cmd.h"

static const struct column columns[] = {
    {"value", "value", 0},
    {"bits", "bits", 0},
    {"canonical", "canonical", 0},
    {"pos0", "pos0", 0},
    {"handwritten", "hand-written", 0},
    {"fused", "fused ops", 0},
};

static json_t *value_json(unsigned value)
{
    struct plan p = plan_from_value(value);
    char bits[17] = "";
    for (int i = 0; i < 16; i++)
        bits[i] = (char)('0' + (value >> (15 - i) & 1));
    return json_pack("{si ss si si sb so so}", "value", (int)value, "bits", bits, "canonical",
                     (int)plan_canonical(value), "pos0", (int)(value >> 15), "handwritten",
                     p.handwritten, "fused", plan_fused_json(p), "segments", plan_segments_json(p));
}

/* plain: as lines, not as rows of the output. */
static void print_range(bool plain, struct output *out, unsigned lo, unsigned hi)
{
    SCOPED_BUF lines = BUF_INIT;
    for (unsigned value = lo; value <= hi; value++) {
        if (!plain) {
            output_row(out, value_json(value));
            continue;
        }
        plan_translate(value, &lines);
        buf_adds(&lines, "\n");
    }
    fwrite(lines.ptr, 1, lines.len, stdout);
}

static int check_operands(const struct options *o, struct status *st)
{
    if (o->segments != NULL && o->operand_count > 0)
        return status_set(st, STATUS_USAGE,
                          "--segments and the value '%s' are given at once; give one of them",
                          o->operands[0]);
    if (o->segments == NULL && options_has(o, OPT(HANDWRITTEN)))
        return status_set(st, STATUS_USAGE,
                          "--handwritten without --segments; a value's first binary digit says "
                          "whether attention is hand-written");
    if (o->segments == NULL && o->operand_count == 0)
        return status_set(st, STATUS_USAGE,
                          "no value; give one from 0 to 65535, 16 binary digits, "
                          "a range lo..hi or --segments");
    return 0;
}

/* Checks every operand before it prints anything. */
static int run(const struct options *o, struct status *st)
{
    struct plan p;
    unsigned lo, hi;
    if (check_operands(o, st) != 0)
        return -1;
    if (o->segments != NULL &&
        plan_parse_segments(o->segments, options_has(o, OPT(HANDWRITTEN)), &p, st) != 0)
        return -1;
    for (int i = 0; i < o->operand_count; i++)
        if (plan_parse_range(o->operands[i], &lo, &hi, st) != 0)
            return -1;

    struct output out;
    bool plain = o->format == FORMAT_TABLE && !output_is_terminal(o->format);
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    out.skip_empty = plain; /* lines are no table */
    if (o->segments != NULL)
        print_range(plain, &out, plan_value(p), plan_value(p));
    for (int i = 0; i < o->operand_count; i++) {
        plan_parse_range(o->operands[i], &lo, &hi, st);
        print_range(plain, &out, lo, hi);
    }
    output_end(&out);
    return EXIT_SUCCESS;
}

static void list_operators(struct buf *out)
{
    buf_adds(out, "operators:\n");
    for (int op = 0; op < OP_COUNT; op++)
        buf_addf(out, "  %2d %-18s %s\n", op, chain_bert.ops[op].name, chain_bert.ops[op].computes);
}

const struct command cmd_translate = {
    .name = "translate",
    .operands = "[VALUE...]",
    .summary = "Say which operators a fusion mask fuses, or which fusion mask fuses these",
    .options = OPTS_COMMON | OPT(SEGMENTS) | OPT(HANDWRITTEN),
    .about =
        "A VALUE is a number from 0 to 65535 (decimal, 0x hexadecimal or 0b binary), exactly\n"
        "16 binary digits, a range lo..hi, or all.  Each value gives one line: the value, its\n"
        "first bit, the number of fused segments, then the first and last bit of each segment,\n"
        "counted from 1 to 15; operator = bit - 1.",
    .more = list_operators,
    .examples = "fuseplan translate 6826\n"
                "fuseplan translate 0001101010101010\n"
                "fuseplan translate 0..65535\n"
                "fuseplan translate --segments 2-6,8-9 --handwritten\n"
                "fuseplan translate 41115 --format json",
    .run = run,
};
