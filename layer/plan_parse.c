#include "layer/layer.h"

#include <ctype.h>

/* The number that digits of base 2, 10 or 16 stand for, LONG_MAX if it is larger; -1 if a character
 * is no digit. */
static long parse_digits(const char *text, int base)
{
    const char *digits = base == 2 ? "01" : base == 10 ? "0123456789" : "0123456789abcdefABCDEF";
    size_t len = strlen(text);
    return len > 0 && strspn(text, digits) == len ? strtol(text, NULL, base) : -1;
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
    if (strstr(text, "..") != NULL || strcmp(text, "all") == 0)
        return refuse_value(text, "it is a range, and one value is wanted", st);
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
    SCOPED char *first = mem_strdup(text);
    first[dots - text] = '\0';
    if (plan_parse_value(first, lo, st) != 0 || plan_parse_value(dots + 2, hi, st) != 0)
        return -1;
    if (*lo > *hi)
        return status_set(st, STATUS_USAGE,
                          "range '%s' runs backwards: %u is above %u; write lo..hi", text, *lo,
                          *hi);
    return 0;
}

/* Parses "2-6" or "2" at *text and moves *text past it and its comma. */
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
    *out = (struct plan){.fused = 0};
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
    *out = plan_of(out->fused, handwritten);
    if (handwritten && !out->handwritten)
        return status_set(st, STATUS_USAGE,
                          "the hand-written operator serves ops %d-%d as one segment only; name "
                          "segment %d-%d or leave the flag out",
                          ATTENTION_FIRST, ATTENTION_LAST, ATTENTION_FIRST, ATTENTION_LAST);
    return 0;
}
