#include "model/model.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECTED "expected 16 binary digits and a time in ms, such as '1111100011001100 54.524'"

enum { PLAN_DIGITS = 16, NUMBER_MAX = 40 };

struct place {
    const char *name;  /* of the file, for messages */
    const char *start; /* of the line */
    const char *at, *end;
    int line; /* from 1 */
};

/* A word of the input in quotes, cut if long, with '?' for what does not print. */
struct quote {
    char text[NUMBER_MAX + 6];
};

static struct quote quote(const char *word, size_t len)
{
    struct quote q;
    size_t shown = len < NUMBER_MAX ? len : NUMBER_MAX, end = 0;
    q.text[end++] = '\'';
    for (size_t i = 0; i < shown; i++)
        q.text[end++] = isprint((unsigned char)word[i]) ? word[i] : '?';
    memcpy(q.text + end, shown < len ? "...'" : "'", shown < len ? 5 : 2);
    return q;
}

/* "name:line:column: 'word' is wrong; what is expected"; `wrong` alone if the word is empty. */
static int refuse(const struct place *p, const char *word, size_t len, const char *wrong,
                  struct status *st)
{
    return status_set(st, STATUS_USAGE, "%.400s:%d:%d: %s%s%s; " EXPECTED, p->name, p->line,
                      (int)(word - p->start) + 1, len > 0 ? quote(word, len).text : "",
                      len > 0 ? " " : "", wrong);
}

static void skip_blanks(struct place *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

/* The next word of the line; its length is 0 at the line's end. */
static const char *next_word(struct place *p, size_t *len)
{
    skip_blanks(p);
    const char *word = p->at;
    while (p->at < p->end && strchr(" \t\r", *p->at) == NULL)
        p->at++;
    *len = (size_t)(p->at - word);
    return word;
}

static int parse_plan(struct place *p, struct plan *out, struct status *st)
{
    size_t len, digits = 0;
    const char *word = next_word(p, &len);
    unsigned value = 0;
    while (digits < len && (word[digits] == '0' || word[digits] == '1'))
        value = value << 1 | (unsigned)(word[digits++] - '0');
    *out = plan_from_value(value);
    char wrong[60] = "is not a plan";
    if (digits == PLAN_DIGITS && digits == len)
        return 0;
    if (digits == len)
        snprintf(wrong, sizeof(wrong), "has %zu binary digits", len);
    return refuse(p, word, len, wrong, st);
}

static int parse_ms(struct place *p, double *ms, struct status *st)
{
    size_t len;
    const char *word = next_word(p, &len);
    if (len == 0)
        return refuse(p, word, len, "the time is missing", st);

    char text[NUMBER_MAX + 1] = "", *end = text;
    const char *wrong = NULL;
    *ms = 0;
    if (len <= NUMBER_MAX)
        memcpy(text, word, len);
    if (strspn(text, "0123456789.eE+-") == len)
        *ms = strtod(text, &end);
    if (end == text || *end != '\0')
        wrong = "is not a number";
    else if (*ms <= 0)
        wrong = "is not above 0";
    else if (!isfinite(*ms))
        wrong = "is too large";
    return wrong == NULL ? 0 : refuse(p, word, len, wrong, st);
}

static int expect_end(struct place *p, struct status *st)
{
    size_t len;
    const char *word = next_word(p, &len);
    return len == 0 ? 0 : refuse(p, word, len, "follows the time", st);
}

/* Sets p to the line at `text` without its comment; returns the start of the next line. */
static const char *take_line(struct place *p, const char *text, const char *text_end)
{
    const char *newline = memchr(text, '\n', (size_t)(text_end - text));
    p->start = p->at = text;
    p->end = newline != NULL ? newline : text_end;
    p->line++;
    const char *next = newline != NULL ? newline + 1 : text_end;
    const char *comment = memchr(text, '#', (size_t)(p->end - text));
    if (comment != NULL)
        p->end = comment;
    skip_blanks(p);
    return next;
}

int model_data_parse(const char *name, const char *text, size_t len, struct model_data *out,
                     struct status *st)
{
    struct place p = {.name = name};
    const char *end = text + len;
    struct plan *plans = NULL;
    double *ms = NULL;
    int rows = 0, cap = 0, result = 0;
    while (text < end && result == 0) {
        text = take_line(&p, text, end);
        const char *nul = memchr(p.start, '\0', (size_t)(p.end - p.start));
        if (p.at == p.end && nul == NULL)
            continue;
        if (rows == cap) {
            cap = cap == 0 ? 256 : 2 * cap;
            plans = mem_resize(plans, (size_t)cap, sizeof(*plans));
            ms = mem_resize(ms, (size_t)cap, sizeof(*ms));
        }
        if (nul != NULL)
            result = refuse(&p, nul, 0, "a NUL byte, so this is not a text file", st);
        else if (parse_plan(&p, &plans[rows], st) != 0 || parse_ms(&p, &ms[rows], st) != 0 ||
                 expect_end(&p, st) != 0)
            result = -1;
        rows++;
    }
    if (rows == 0)
        result = status_set(st, STATUS_USAGE, "%.400s: no rows; " EXPECTED " on each line", name);
    *out = (struct model_data){rows, plans, ms};
    if (result != 0)
        model_data_release(out);
    return result;
}

void model_data_text(const struct model_data *d, struct buf *out)
{
    for (int i = 0; i < d->count; i++) {
        char digits[PLAN_DIGITS + 1] = "";
        for (int bit = 0; bit < PLAN_DIGITS; bit++)
            digits[bit] = (char)('0' + (plan_value(d->plans[i]) >> (PLAN_DIGITS - 1 - bit) & 1));
        buf_addf(out, "%s %.17g\n", digits, d->ms[i]);
    }
}
