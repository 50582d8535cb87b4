#include "model/model.h"

#define EXPECTED "expected 16 binary digits and a time in ms, such as '1111100011001100 54.524'"

static const char blanks[] = " \t\r\n";
enum { PLAN_DIGITS = 16 };

/* Reads a line that has a word.  Returns what is wrong with *word, or null. */
static const char *parse_row(char *line, struct plan *plan, double *ms, const char **word)
{
    char *rest, *end;
    *word = strtok_r(line, blanks, &rest);
    if (strlen(*word) != PLAN_DIGITS || strspn(*word, "01") != PLAN_DIGITS)
        return "is not a plan";
    *plan = plan_from_value((unsigned)strtoul(*word, NULL, 2));
    const char *time = strtok_r(NULL, blanks, &rest);
    if (time == NULL)
        return "has no time";
    *word = time;
    *ms = strtod(time, &end);
    if (*end != '\0' || strspn(time, "0123456789.eE+-") != strlen(time))
        return "is not a number";
    if (!(*ms > 0 && isfinite(*ms)))
        return "is not a finite time above 0";
    *word = strtok_r(NULL, blanks, &rest);
    return *word != NULL ? "follows the time" : NULL;
}

int model_data_parse(const char *name, const char *text, size_t len, struct model_data *out,
                     struct status *st)
{
    struct plan *plans = NULL;
    double *ms = NULL;
    int rows = 0, number = 0, result = 0;
    SCOPED_BUF line = BUF_INIT;
    for (const char *end = text + len, *next; text < end && result == 0; text = next) {
        const char *newline = memchr(text, '\n', (size_t)(end - text)), *word, *wrong;
        next = newline != NULL ? newline + 1 : end;
        number++;
        buf_reset(&line);
        buf_add(&line, text, (size_t)(next - text));
        if (strlen(line.ptr) != line.len)
            result = status_set(st, STATUS_USAGE,
                                "%.400s:%d: a NUL byte, so this is not a text file", name, number);
        line.ptr[strcspn(line.ptr, "#")] = '\0';
        if (result != 0 || line.ptr[strspn(line.ptr, blanks)] == '\0')
            continue;
        plans = mem_resize(plans, (size_t)rows + 1, sizeof(*plans));
        ms = mem_resize(ms, (size_t)rows + 1, sizeof(*ms));
        wrong = parse_row(line.ptr, &plans[rows], &ms[rows], &word);
        if (wrong != NULL)
            result = status_set(st, STATUS_USAGE, "%.400s:%d: '%.40s' %s; " EXPECTED, name, number,
                                word, wrong);
        rows++;
    }
    if (rows == 0 && result == 0)
        result = status_set(st, STATUS_USAGE, "%.400s: no rows; " EXPECTED " on each line", name);
    *out = (struct model_data){rows, plans, ms};
    if (result != 0)
        model_data_release(out);
    return result;
}

void model_data_text(const struct model_data *d, struct buf *out)
{
    for (int i = 0; i < d->count; i++) {
        for (int bit = PLAN_DIGITS - 1; bit >= 0; bit--)
            buf_addf(out, "%u", plan_value(d->plans[i]) >> bit & 1);
        buf_addf(out, " %.17g\n", d->ms[i]);
    }
}
