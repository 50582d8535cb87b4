#include "base/conf.h"

#include <ctype.h>
#include <strings.h>

struct reader {
    const char *section, *at, *end;
    int line;
    bool within; /* the section has begun */
};

/* The next character; a file ends as a line does.  Windows' ends of lines are ends of lines. */
static char peek(const struct reader *r)
{
    bool windows = r->end - r->at > 1 && r->at[0] == '\r' && r->at[1] == '\n';
    return r->at == r->end || windows ? '\n' : *r->at;
}

static char take(struct reader *r)
{
    char c = peek(r);
    if (r->at != r->end)
        r->at += *r->at == '\r' && c == '\n' ? 2 : 1;
    return c;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct reader *r)
{
    while (is_blank(peek(r)))
        take(r);
}

static void skip_comment(struct reader *r)
{
    while (peek(r) != '\n')
        take(r);
}

/* "[fuseplan]" */
static int read_section(struct reader *r, struct status *st)
{
    const char *from = r->at + 1;
    while (peek(r) != '\n' && peek(r) != ']')
        take(r);
    int len = (int)(r->at - from);
    if (peek(r) == '\n')
        return status_set(st, STATUS_USAGE, "'[%.*s' has no ']'; expected [%s]", len, from,
                          r->section);
    take(r);
    if (strlen(r->section) != (size_t)len || strncasecmp(r->section, from, (size_t)len) != 0)
        return status_set(st, STATUS_USAGE, "unknown section [%.*s]; expected [%s]", len, from,
                          r->section);
    r->within = true;
    return 0;
}

/* What stands for a character behind a backslash; 0: nothing does. */
static char unescape(char c)
{
    static const char escapes[] = "\\\\\"\"n\nt\tb\b";
    for (const char *e = escapes; *e != '\0'; e += 2)
        if (c == e[0])
            return e[1];
    return '\0';
}

/* Appends what follows '=', up to the end of the line.  Blanks around it are no part of it. */
static int read_value(struct reader *r, struct buf *out, struct status *st)
{
    bool quoted = false;
    size_t len = 0; /* up to the last character that is no blank */
    while (peek(r) != '\n' && (quoted || (peek(r) != '#' && peek(r) != ';'))) {
        char c = take(r);
        bool blank = is_blank(c) && !quoted;
        if (c == '"') {
            quoted = !quoted;
        } else if (c == '\\' && peek(r) == '\n') { /* the value goes on in the next line */
            blank = true;
            take(r);
            r->line++;
        } else if (c == '\\' && unescape(peek(r)) == '\0') {
            return status_set(st, STATUS_USAGE,
                              "'\\%c' means nothing; expected \\\\, \\\", \\n, \\t or \\b",
                              peek(r));
        } else if (!blank || out->len > 0) {
            c = c == '\\' ? unescape(take(r)) : c;
            buf_add(out, &c, 1);
        }
        len = blank ? len : out->len;
    }
    if (len < out->len) {
        out->len = len;
        out->ptr[len] = '\0';
    }
    if (quoted)
        return status_set(st, STATUS_USAGE, "a quote is not closed");
    skip_comment(r);
    return 0;
}

/* "key = value", or a key alone. */
static int read_entry(struct reader *r, struct conf *out, struct status *st)
{
    SCOPED_BUF key = BUF_INIT, value = BUF_INIT;
    int line = r->line;
    while (isalnum((unsigned char)peek(r)) != 0 || peek(r) == '-') {
        char c = (char)tolower((unsigned char)take(r));
        buf_add(&key, &c, 1);
    }
    skip_blanks(r);
    bool alone = peek(r) == '\n';
    if (!alone && peek(r) != '=')
        return status_set(
            st, STATUS_USAGE,
            "'%c' follows '%s'; expected '%s = VALUE', and letters, digits and '-' in a key",
            peek(r), key.ptr, key.ptr);
    if (!r->within)
        return status_set(st, STATUS_USAGE, "'%s' is in no section; put [%s] above it", key.ptr,
                          r->section);
    for (int i = 0; i < out->count; i++)
        if (strcmp(out->items[i].key, key.ptr) == 0)
            return status_set(st, STATUS_USAGE,
                              "'%s' is given a second time, after line %d; keep one", key.ptr,
                              out->items[i].line);
    if (!alone) {
        take(r);
        if (read_value(r, &value, st) != 0)
            return -1;
    }
    out->items = mem_resize(out->items, (size_t)out->count + 1, sizeof(*out->items));
    out->items[out->count++] =
        (struct conf_entry){mem_strdup(key.ptr), alone ? NULL : mem_strdup(value.ptr), line};
    return 0;
}

int conf_parse(const char *name, const struct buf *text, const char *section, struct conf *out,
               struct status *st)
{
    size_t mark = utf8_mark(text->ptr, text->len);
    struct reader r = {
        .section = section, .at = text->ptr + mark, .end = text->ptr + text->len, .line = 1};
    int result = 0;
    *out = (struct conf){.count = 0};
    if (memchr(text->ptr, '\0', text->len) != NULL)
        return status_set(st, STATUS_USAGE, "'%s' is no text: it holds a NUL", name);
    while (r.at != r.end && result == 0) {
        skip_blanks(&r);
        char c = peek(&r);
        if (c == '\n') {
            take(&r);
            r.line++;
        } else if (c == '#' || c == ';') {
            skip_comment(&r);
        } else if (c == '[') {
            result = read_section(&r, st);
        } else if (isalpha((unsigned char)c) != 0) {
            result = read_entry(&r, out, st);
        } else {
            result = status_set(st, STATUS_USAGE, "'%c' begins no line; expected KEY = VALUE", c);
        }
    }
    return result == 0 ? 0 : status_prefix(st, "%s:%d", name, r.line);
}

void conf_release(struct conf *c)
{
    for (int i = 0; i < c->count; i++) {
        free(c->items[i].key);
        free(c->items[i].value);
    }
    free(c->items);
    *c = (struct conf){.count = 0};
}
