/* Cells, and tables for people. */
#include "cmd/output_int.h"

#include <limits.h>

/* ---- cells ----------------------------------------------------------------------------------- */

const json_t *row_member(const json_t *row, const char *key)
{
    size_t len = strcspn(key, ".");
    const json_t *inner = json_is_array(row) ? json_array_get(row, strtoul(key, NULL, 10))
                                             : json_object_getn(row, key, len);
    return key[len] == '\0' || inner == NULL ? inner : row_member(inner, key + len + 1);
}

static int decimals_of(double value, int decimals)
{
    if (decimals == DECIMALS_TWO) /* 0.23, 9.5, 695 */
        return value <= 0 || value >= 10 ? 0 : value >= 1 ? 1 : 2;
    return decimals == DECIMALS_MS ? ms_decimals(value) : decimals;
}

void cell_add(const json_t *value, int decimals, const char *none, struct buf *out)
{
    if (json_is_string(value) && json_string_length(value) > 0)
        utf8_escape(json_string_value(value), out);
    else if (json_is_integer(value))
        buf_addf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value) && decimals == DECIMALS_ALL)
        buf_addf(out, "%.*g", JSON_DIGITS, json_real_value(value));
    else if (json_is_real(value) && decimals == DECIMALS_SHORT)
        buf_addf(out, "%.2g", json_real_value(value));
    else if (json_is_real(value))
        buf_addf(out, "%.*f", decimals_of(json_real_value(value), decimals),
                 json_real_value(value));
    else if (json_is_boolean(value))
        buf_adds(out, decimals == DECIMALS_ALL ? json_is_true(value) ? "true" : "false"
                      : json_is_true(value)    ? "yes"
                                               : "no");
    else
        buf_adds(out, none);
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
        const json_t *value = row_member(row, c->key);
        SCOPED_BUF text = BUF_INIT;
        cell_add(value, c->decimals, "", &text);
        out->number |= json_is_number(value);
        filled |= text.len > 0;
        if ((int)text.len > out->width)
            out->width = (int)text.len;
        int word = longest_word(text.ptr);
        if (word > out->least)
            out->least = word;
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
    SCOPED_BUF line = BUF_INIT;
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
            cell_add(row_member(row, c->key), c->decimals, "-", &cells[i]);
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
        SCOPED_BUF text = BUF_INIT;
        cell_add(row_member(row, c->key), c->decimals, "", &text);
        count += (int)text.len > width;
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

void table_print(const struct output *out)
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

void table_print_markdown(const struct output *out)
{
    size_t row = 0, rows = json_array_size(out->kept);
    for (int line = -2; line < (int)rows; line++) {
        SCOPED_BUF text = BUF_INIT;
        for (int c = 0; c < out->column_count; c++) {
            const struct column *column = &out->columns[c];
            if (column->title == NULL)
                continue;
            buf_adds(&text, text.len == 0 ? "| " : " | ");
            if (line == -2)
                buf_adds(&text, column->title);
            else if (line == -1)
                buf_adds(&text, "---");
            else
                cell_add(row_member(json_array_get(out->kept, row), column->key), column->decimals,
                         "-", &text);
        }
        row += line >= 0;
        printf("%s |\n", text.ptr);
    }
}
