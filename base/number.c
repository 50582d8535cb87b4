#include "base/base.h"

/* Digits without a leading zero, an optional '-' in front. */
static bool is_decimal(const char *text)
{
    const char *digits = text + (text[0] == '-');
    size_t len = strlen(digits);
    return len > 0 && strspn(digits, "0123456789") == len && (digits[0] != '0' || len == 1) &&
           strcmp(text, "-0") != 0;
}

int number_parse(const char *what, const char *text, int64_t lo, int64_t hi, int64_t *out,
                 struct status *st)
{
    *out = 0;
    if (!is_decimal(text))
        return status_set(st, STATUS_USAGE,
                          "%s: '%s' is not a whole number; give one from %lld to %lld", what, text,
                          (long long)lo, (long long)hi);
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno == ERANGE || value < lo || value > hi)
        return status_set(st, STATUS_USAGE,
                          "%s: %s is out of range; give a number from %lld to %lld", what, text,
                          (long long)lo, (long long)hi);
    *out = value;
    return 0;
}

int number_parse_double(const char *what, const char *text, double lo, double hi, double *out,
                        struct status *st)
{
    *out = 0;
    char *end;
    double value = strtod(text, &end);
    bool starts = text[0] != '\0' && strchr("0123456789.-", text[0]) != NULL;
    if (!starts || *end != '\0' || strpbrk(text, "xXpP") != NULL || !isfinite(value))
        return status_set(st, STATUS_USAGE, "%s: '%s' is not a number; give one from %g to %g",
                          what, text, lo, hi);
    if (value < lo || value > hi)
        return status_set(st, STATUS_USAGE, "%s: %s is out of range; give a number from %g to %g",
                          what, text, lo, hi);
    *out = value;
    return 0;
}

char *number_bytes(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        unit++;
    }
    snprintf(out, 32, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

void number_add(double value, struct buf *out)
{
    char text[32];
    int digits = 15; /* %g drops zeros: a text of fewer digits that reads back is among these */
    do
        snprintf(text, sizeof(text), "%.*g", digits, value);
    while (strtod(text, NULL) != value && digits++ < 17);
    buf_adds(out, text);
}
