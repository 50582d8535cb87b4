/* Reads the times of other programs: CSV as in RFC 4180, except that a field has no line break. */
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUOTED_MAX = 40 };

enum peer_column { VARIANT, DTYPE, BATCH, SEQ_LEN, MASK, US, COLUMN_COUNT };
static const char *const names[COLUMN_COUNT] = {"variant", "dtype", "batch",
                                                "seq_len", "mask",  "us"};

/* The line that is read, cut into fields. */
struct line {
    const char *file; /* for messages */
    int number;       /* from 1 */
    int count;
    struct field {
        char *text; /* owned */
        int column; /* in the line, from 1 */
    } * fields;     /* owned */
};

static void line_clear(struct line *l)
{
    for (int i = 0; i < l->count; i++)
        free(l->fields[i].text);
    free(l->fields);
    l->fields = NULL;
    l->count = 0;
}

/* "peers.csv:3:12: us": a place of the line and what stands there. */
struct place {
    char text[480];
};

static struct place place_of(const struct line *l, int column, const char *what)
{
    struct place p;
    snprintf(p.text, sizeof(p.text), "%.400s:%d:%d%s%s", l->file, l->number, column,
             what[0] != '\0' ? ": " : "", what);
    return p;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Reads one field; returns what follows it, a comma or `end`, or null on a failure. */
static const char *take_field(const struct line *l, const char *start, const char *at,
                              const char *end, struct buf *out, struct status *st)
{
    const char *open = at;
    if (at == end || *at != '"') {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        buf_add(out, at, (size_t)((comma != NULL ? comma : end) - at));
        return comma != NULL ? comma : end;
    }
    for (at++; at < end && (*at != '"' || (at + 1 < end && at[1] == '"')); at++) {
        at += *at == '"'; /* two quotes stand for one */
        buf_add(out, at, 1);
    }
    if (at < end && (at + 1 == end || at[1] == ','))
        return at + 1;
    int column = (int)((at == end ? open : at + 1) - start) + 1;
    status_set(st, STATUS_USAGE, "%s: %s; end the quoted field with '\"' and a comma",
               place_of(l, column, "").text,
               at == end ? "a quoted field does not end" : "text follows a quoted field");
    return NULL;
}

/* Cuts start..end into fields. */
static int cut(struct line *l, const char *start, const char *end, struct status *st)
{
    const char *nul = memchr(start, '\0', (size_t)(end - start));
    if (nul != NULL)
        return status_set(st, STATUS_USAGE, "%s: a NUL byte, so this is not a text file",
                          place_of(l, (int)(nul - start) + 1, "").text);
    for (const char *at = start;; at++) {
        struct buf text;
        int column = (int)(at - start) + 1;
        buf_init(&text);
        at = take_field(l, start, at, end, &text, st);
        l->fields = mem_resize(l->fields, (size_t)l->count + 1, sizeof(*l->fields));
        l->fields[l->count++] = (struct field){buf_detach(&text), column};
        if (at == NULL || at == end)
            return at == NULL ? -1 : 0;
    }
}

/* ---- the header ------------------------------------------------------------------------------ */

/* Finds the place of each column; others may stand beside them. */
static int read_header(const struct line *l, int at[COLUMN_COUNT], struct status *st)
{
    for (int c = 0; c < COLUMN_COUNT; c++) {
        at[c] = -1;
        for (int i = 0; i < l->count; i++) {
            if (strcmp(l->fields[i].text, names[c]) != 0)
                continue;
            if (at[c] >= 0)
                return status_set(st, STATUS_USAGE, "%s: the column '%s' comes twice",
                                  place_of(l, l->fields[i].column, "").text, names[c]);
            at[c] = i;
        }
        if (at[c] < 0)
            return status_set(st, STATUS_USAGE,
                              "%s: the column '%s' is missing; expected a line with "
                              "variant,dtype,batch,seq_len,mask,us",
                              place_of(l, 1, "").text, names[c]);
    }
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int find_variant(const struct line *l, const struct field *f, struct peers *out,
                        struct status *st)
{
    int i = 0;
    if (f->text[0] == '\0' || !utf8_is_plain(f->text))
        return status_set(st, STATUS_USAGE, "%s: '%.*s' is no name; give one of printable UTF-8",
                          place_of(l, f->column, "variant").text, QUOTED_MAX, f->text);
    while (i < out->variant_count && strcmp(out->variants[i], f->text) != 0)
        i++;
    if (i == PEER_VARIANTS_MAX)
        return status_set(st, STATUS_USAGE, "%s: '%.*s' is one variant more than the %d that fit",
                          place_of(l, f->column, "").text, QUOTED_MAX, f->text, PEER_VARIANTS_MAX);
    if (i == out->variant_count)
        out->variants[out->variant_count++] = mem_strdup(f->text);
    return i;
}

/* Writes a mask as mask_text() does.  What a file's mask keeps is in the hash that names it. */
static int read_mask(const struct line *l, const struct field *f, int seq_len, char **out,
                     struct status *st)
{
    struct mask_spec spec = {.kind = NULL};
    struct buf text;
    *out = NULL;
    if (strncmp(f->text, "file:", 5) == 0) {
        *out = mem_strdup(f->text);
        return 0;
    }
    buf_init(&text);
    int result = mask_parse(f->text, &spec, st);
    if (result == 0)
        result = mask_resolve(&spec, seq_len, st);
    if (result == 0) {
        mask_text(&spec, &text);
        *out = buf_detach(&text);
    }
    buf_release(&text);
    mask_spec_release(&spec);
    return result == 0 ? 0 : status_prefix(st, "%s", place_of(l, f->column, "mask").text);
}

static int read_size(const struct line *l, const struct field *f, const char *what, int most,
                     int *out, struct status *st)
{
    int64_t size = 0;
    int result = number_parse(place_of(l, f->column, what).text, f->text, 1, most, &size, st);
    *out = (int)size;
    return result;
}

static bool same_row(const struct peer_time *a, const struct peer_time *b)
{
    return a->variant == b->variant && a->dtype == b->dtype && a->batch == b->batch &&
           a->seq_len == b->seq_len && strcmp(a->mask, b->mask) == 0;
}

static int refuse_twin(const struct line *l, const struct peers *p, struct status *st)
{
    const struct peer_time *last = &p->items[p->count - 1];
    for (int i = 0; i < p->count - 1; i++)
        if (same_row(&p->items[i], last))
            return status_set(
                st, STATUS_USAGE, "%s: line %d has a time of '%.*s' for the same workload",
                place_of(l, 1, "").text, p->items[i].line, QUOTED_MAX, p->variants[last->variant]);
    return 0;
}

static int read_row(const struct line *l, const int at[COLUMN_COUNT], struct peers *out,
                    struct status *st)
{
    static const double us_least = 1e-3, us_most = 1e9;
    const struct field *f = l->fields, *dtype = &f[at[DTYPE]], *us = &f[at[US]];
    out->items = mem_resize(out->items, (size_t)out->count + 1, sizeof(*out->items));
    struct peer_time *t = &out->items[out->count++];
    *t = (struct peer_time){.line = l->number};
    t->variant = find_variant(l, &f[at[VARIANT]], out, st);
    t->dtype = dtype_from_name(dtype->text);
    if (t->variant < 0)
        return -1;
    if (t->dtype == DTYPE_COUNT)
        return status_set(st, STATUS_USAGE,
                          "%s: '%.*s' is no type; expected fp32, tf32, fp16 or bf16",
                          place_of(l, dtype->column, "dtype").text, QUOTED_MAX, dtype->text);
    if (read_size(l, &f[at[BATCH]], "batch", BATCH_MAX, &t->batch, st) != 0 ||
        read_size(l, &f[at[SEQ_LEN]], "seq_len", SEQ_LEN_MAX, &t->seq_len, st) != 0 ||
        read_mask(l, &f[at[MASK]], t->seq_len, &t->mask, st) != 0 ||
        number_parse_double(place_of(l, us->column, "us").text, us->text, us_least, us_most, &t->us,
                            st) != 0)
        return -1;
    return refuse_twin(l, out, st);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Reads the line in `start..end`.  The first one that is not empty is the header. */
static int read_line(struct line *l, const char *start, const char *end, int *columns,
                     int at[COLUMN_COUNT], struct peers *out, struct status *st)
{
    end -= end > start && end[-1] == '\r';
    if (start == end)
        return 0;
    if (cut(l, start, end, st) != 0)
        return -1;
    if (*columns == 0) {
        *columns = l->count;
        return read_header(l, at, st);
    }
    if (l->count != *columns)
        return status_set(st, STATUS_USAGE,
                          "%s: the line has %d fields, and the header has %d; put a field with a "
                          "comma in double quotes",
                          place_of(l, l->fields[l->count - 1].column, "").text, l->count, *columns);
    return read_row(l, at, out, st);
}

int peers_parse(const char *name, const char *text, size_t len, struct peers *out,
                struct status *st)
{
    struct line l = {.file = name};
    const char *end = text + len;
    int columns = 0, at[COLUMN_COUNT] = {0}, result = 0;
    *out = (struct peers){.count = 0};
    while (text < end && result == 0) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline != NULL ? newline : end;
        l.number++;
        result = read_line(&l, text, line_end, &columns, at, out, st);
        line_clear(&l);
        text = newline != NULL ? newline + 1 : end;
    }
    if (result == 0 && columns == 0)
        result = status_set(st, STATUS_USAGE,
                            "%.400s:1:1: the file is empty; expected a line with "
                            "variant,dtype,batch,seq_len,mask,us",
                            name);
    if (result != 0)
        peers_release(out);
    return result;
}

int peers_find(const struct peers *p, const struct workload *w, double us[PEER_VARIANTS_MAX])
{
    struct buf mask;
    int found = 0;
    buf_init(&mask);
    mask_text(&w->mask_spec, &mask);
    for (int i = 0; i < p->variant_count; i++)
        us[i] = NAN;
    for (int i = 0; i < p->count; i++) {
        const struct peer_time *t = &p->items[i];
        if (t->dtype == w->dtype && t->batch == w->batch && t->seq_len == w->seq_len &&
            w->lengths == NULL && strcmp(t->mask, mask.ptr) == 0) {
            us[t->variant] = t->us;
            found++;
        }
    }
    buf_release(&mask);
    return found;
}

void peers_release(struct peers *p)
{
    for (int i = 0; i < p->count; i++)
        free(p->items[i].mask);
    for (int i = 0; i < p->variant_count; i++)
        free(p->variants[i]);
    free(p->items);
    *p = (struct peers){.count = 0};
}
