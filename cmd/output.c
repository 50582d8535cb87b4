#include "cmd/options_int.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JSON_DIGITS = 9 }; /* more than a clock resolves */

static void print_json(const json_t *value, size_t flags)
{
    struct buf text;
    buf_init(&text);
    json_add(value, flags | JSON_REAL_PRECISION(JSON_DIGITS), &text);
    fwrite(text.ptr, 1, text.len, stdout);
    buf_release(&text);
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* The value at the path that a column's key is; null: there is none. */
static const json_t *member(const json_t *row, const char *key)
{
    size_t len = strcspn(key, ".");
    const json_t *inner = json_is_array(row) ? json_array_get(row, strtoul(key, NULL, 10))
                                             : json_object_getn(row, key, len);
    return key[len] == '\0' || inner == NULL ? inner : member(inner, key + len + 1);
}

enum { DECIMALS_ALL = -1 }; /* a program's form */

/* decimals: of reals, or one of the constants.  none: stands for null and for empty text. */
static void add_cell(const json_t *value, int decimals, const char *none, struct buf *out)
{
    if (json_is_string(value) && json_string_length(value) > 0)
        utf8_escape(json_string_value(value), out);
    else if (json_is_integer(value))
        buf_addf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value) && decimals == DECIMALS_ALL)
        buf_addf(out, "%.*g", JSON_DIGITS, json_real_value(value));
    else if (json_is_real(value))
        buf_addf(out, "%.*f",
                 decimals == DECIMALS_MS ? ms_decimals(json_real_value(value)) : decimals,
                 json_real_value(value));
    else if (json_is_boolean(value))
        buf_adds(out, decimals == DECIMALS_ALL ? json_is_true(value) ? "true" : "false"
                      : json_is_true(value)    ? "yes"
                                               : "no");
    else
        buf_adds(out, none);
}

static void print_csv_cell(const json_t *value)
{
    struct buf text;
    buf_init(&text);
    add_cell(value, DECIMALS_ALL, "", &text);
    if (strpbrk(text.ptr, ",\"\n\r") == NULL) {
        fputs(text.ptr, stdout);
    } else {
        putchar('"');
        for (const char *c = text.ptr; *c != '\0'; c++) {
            if (*c == '"')
                putchar('"');
            putchar(*c);
        }
        putchar('"');
    }
    buf_release(&text);
}

/* Of several outputs that become one. */
static struct {
    enum format format;
    bool on;
    int batch, seq_len; /* of the output that is printed */
    int printed;        /* objects and rows so far */
    int header;         /* columns of the last header of CSV */
} parts;

/* What is in front of a row or an object of an array. */
static const char *separator(int rows)
{
    return (parts.on ? parts.printed++ : rows) > 0 ? ",\n " : "\n ";
}

static void print_csv_line(const struct output *out, const json_t *row)
{
    if (parts.on && row == NULL && parts.header == out->column_count)
        return;
    if (parts.on && row == NULL)
        fputs("batch,seq_len,", stdout);
    else if (parts.on)
        printf("%d,%d,", parts.batch, parts.seq_len);
    parts.header = out->column_count;
    for (int i = 0; i < out->column_count; i++) {
        if (i > 0)
            putchar(',');
        if (row != NULL)
            print_csv_cell(member(row, out->columns[i].key));
        else
            fputs(out->columns[i].key, stdout);
    }
    putchar('\n');
}

/* ---- tables ---------------------------------------------------------------------------------- */

enum { COLUMNS_MAX = 32, TABLE_WIDTH = 100, NARROWEST = 12 };

/* A column as a table shows it. */
struct shown {
    const struct column *column;
    int width;
    int least;   /* of which no word is cut */
    bool number; /* aligned to the right */
};

/* After these characters a cell's text may go on in the next line. */
static const char breaks[] = " ,+-";

/* The length of the longest word. */
static int longest_word(const char *text)
{
    int longest = 0;
    while (*text != '\0') {
        int len = (int)strcspn(text, breaks);
        len += text[len] != '\0' && text[len] != ' ';
        longest = len > longest ? len : longest;
        text += len + (text[len] == ' ');
    }
    return longest;
}

/* Measures a column's width; returns whether a row fills the column. */
static bool measure_column(const json_t *rows, const struct column *c, struct shown *out)
{
    size_t i;
    json_t *row;
    bool filled = false;
    int title = (int)strlen(c->title);
    *out =
        (struct shown){.column = c, .width = title, .least = title > NARROWEST ? title : NARROWEST};
    json_array_foreach(rows, i, row)
    {
        const json_t *value = member(row, c->key);
        struct buf text;
        buf_init(&text);
        add_cell(value, c->decimals, "", &text);
        out->number |= json_is_number(value);
        filled |= text.len > 0;
        if ((int)text.len > out->width)
            out->width = (int)text.len;
        int word = longest_word(text.ptr);
        if (word > out->least)
            out->least = word;
        buf_release(&text);
    }
    return filled;
}

/* How many bytes of a text go into a line of a cell: all that fit, or those up to a break.  Each
 * word fits. */
static int piece_of(const char *text, int width)
{
    int len = (int)strlen(text), cut = width;
    if (len <= width)
        return len;
    while (strchr(breaks, text[cut - 1]) == NULL && text[cut] != ' ')
        cut--;
    return cut;
}

/* Prints one line of a row's cells and moves each text past it; false if no text is left. */
static bool print_pieces(const struct shown *columns, int n, const char **texts)
{
    bool more = false;
    struct buf line;
    buf_init(&line);
    for (int i = 0; i < n; i++) {
        const struct shown *c = &columns[i];
        int len = piece_of(texts[i], c->width);
        buf_addf(&line, "%*.*s%s", c->number ? c->width : -c->width, len, texts[i],
                 i == n - 1 ? "" : "  ");
        texts[i] += len + (int)strspn(texts[i] + len, " ");
        more = more || texts[i][0] != '\0';
    }
    while (line.len > 0 && line.ptr[line.len - 1] == ' ')
        line.ptr[--line.len] = '\0';
    puts(line.ptr);
    buf_release(&line);
    return more;
}

/* row null: the titles. */
static void print_line(const struct shown *columns, int n, const json_t *row)
{
    struct buf cells[COLUMNS_MAX];
    const char *texts[COLUMNS_MAX];
    for (int i = 0; i < n; i++) {
        const struct column *c = columns[i].column;
        buf_init(&cells[i]);
        if (row != NULL)
            add_cell(member(row, c->key), c->decimals, "-", &cells[i]);
        else
            buf_adds(&cells[i], c->title);
        texts[i] = cells[i].ptr;
    }
    while (print_pieces(columns, n, texts))
        ;
    for (int i = 0; i < n; i++)
        buf_release(&cells[i]);
}

/* How many cells of a column are wider than a width. */
static int count_wider(const json_t *rows, const struct column *c, int width)
{
    size_t i;
    json_t *row;
    int count = 0;
    json_array_foreach(rows, i, row)
    {
        struct buf text;
        buf_init(&text);
        add_cell(member(row, c->key), c->decimals, "", &text);
        count += (int)text.len > width;
        buf_release(&text);
    }
    return count;
}

/* Narrows one column by so much: that of which the fewest cells then take several lines.  If there
 * is none that is wide enough, narrows the widest as far as it can be; returns by how much. */
static int narrow(const json_t *rows, struct shown *columns, int n, int by)
{
    struct shown *best = NULL, *widest = NULL;
    int fewest = INT_MAX, spare = 0;
    for (struct shown *c = columns; c < columns + n; c++) {
        int room = c->width - c->least;
        int wider = c->number || room < by ? INT_MAX : count_wider(rows, c->column, c->width - by);
        if (wider < fewest) {
            fewest = wider;
            best = c;
        }
        if (!c->number && room > spare) {
            spare = room;
            widest = c;
        }
    }
    if (best != NULL)
        best->width -= by;
    else if (widest != NULL)
        widest->width -= spare;
    return best != NULL ? by : spare;
}

/* Narrows columns of text until a line fits, or none can be narrowed without cutting a word. */
static void fit(const json_t *rows, struct shown *columns, int n)
{
    int excess = 2 * (n - 1) - TABLE_WIDTH, narrowed = 1;
    for (int i = 0; i < n; i++)
        excess += columns[i].width;
    for (; excess > 0 && narrowed > 0; excess -= narrowed)
        narrowed = narrow(rows, columns, n, excess);
}

static void print_table(const struct output *out)
{
    struct shown shown[COLUMNS_MAX];
    int n = 0;
    for (int c = 0; c < out->column_count; c++)
        if (out->columns[c].title != NULL)
            n += measure_column(out->kept, &out->columns[c], &shown[n]) || !out->skip_empty;
    size_t i;
    json_t *row;
    fit(out->kept, shown, n);
    if (n > 0)
        print_line(shown, n, NULL);
    json_array_foreach(out->kept, i, row)
    {
        if (n > 0)
            print_line(shown, n, row);
    }
}

/* ---- output ---------------------------------------------------------------------------------- */

void output_begin(struct output *out, enum format format, const struct column *columns, int count)
{
    *out = (struct output){.format = format, .columns = columns, .column_count = count};
    progress_hide();
    if (format == FORMAT_TABLE)
        out->kept = json_array();
    else if (format == FORMAT_CSV)
        print_csv_line(out, NULL);
    else if (format == FORMAT_JSON && !parts.on)
        putchar('[');
}

void output_row(struct output *out, json_t *row)
{
    if (parts.on && json_object_get(row, "workload") == NULL) {
        json_object_set_new(row, "batch", json_integer(parts.batch));
        json_object_set_new(row, "seq_len", json_integer(parts.seq_len));
    }
    switch (out->format) {
    case FORMAT_TABLE:
        json_array_append(out->kept, row);
        break;
    case FORMAT_JSON:
        fputs(separator(out->rows), stdout);
        print_json(row, 0);
        break;
    case FORMAT_NDJSON:
        print_json(row, JSON_COMPACT);
        putchar('\n');
        break;
    case FORMAT_CSV:
        print_csv_line(out, row);
        break;
    }
    out->rows++;
    json_decref(row);
}

void output_end(struct output *out)
{
    if (out->format == FORMAT_TABLE)
        print_table(out);
    else if (out->format == FORMAT_JSON && !parts.on)
        fputs(out->rows > 0 ? "\n]\n" : "]\n", stdout);
    json_decref(out->kept);
    *out = (struct output){0};
}

void output_object(enum format format, const struct column *columns, int count, json_t *object)
{
    if (format == FORMAT_JSON) {
        progress_hide();
        if (parts.on)
            fputs(separator(0), stdout);
        print_json(object, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
        return;
    }
    struct output out;
    output_begin(&out, format, columns, count);
    output_row(&out, object);
    output_end(&out);
}

/* ---- several outputs ------------------------------------------------------------------------- */

void output_parts_begin(enum format format)
{
    parts.format = format;
    parts.on = true;
    if (format == FORMAT_JSON)
        putchar('[');
}

void output_part(const struct options *o)
{
    if (parts.format == FORMAT_TABLE)
        printf("%sbatch %d, seq-len %d\n", parts.batch > 0 ? "\n" : "", o->batch, o->seq_len);
    parts.batch = o->batch;
    parts.seq_len = o->seq_len;
}

void output_parts_end(void)
{
    if (parts.format == FORMAT_JSON)
        fputs(parts.printed > 0 ? "\n]\n" : "]\n", stdout);
    parts.on = false;
}

bool output_is_terminal(enum format format)
{
    return format == FORMAT_TABLE && isatty(STDOUT_FILENO);
}
