#include "cmd/options_int.h"
#include "cmd/output_int.h"

#include <unistd.h>

static void print_json(const json_t *value, size_t flags)
{
    SCOPED_BUF text = BUF_INIT;
    json_add(value, flags | JSON_REAL_PRECISION(JSON_DIGITS), &text);
    fwrite(text.ptr, 1, text.len, stdout);
}

static void print_csv_cell(const json_t *value)
{
    SCOPED_BUF text = BUF_INIT;
    cell_add(value, DECIMALS_ALL, "", &text);
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
            print_csv_cell(row_member(row, out->columns[i].key));
        else
            fputs(out->columns[i].key, stdout);
    }
    putchar('\n');
}

/* ---- output ---------------------------------------------------------------------------------- */

void output_begin(struct output *out, enum format format, const struct column *columns, int count)
{
    *out = (struct output){.format = format, .columns = columns, .column_count = count};
    progress_hide();
    if (format == FORMAT_TABLE || format == FORMAT_MARKDOWN)
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
    case FORMAT_MARKDOWN:
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
        table_print(out);
    else if (out->format == FORMAT_MARKDOWN)
        table_print_markdown(out);
    else if (out->format == FORMAT_JSON && !parts.on)
        fputs(out->rows > 0 ? "\n]\n" : "]\n", stdout);
    json_decref(out->kept);
    *out = (struct output){0};
}

void output_rows(enum format format, const struct column *columns, int count, bool skip_empty,
                 const json_t *rows)
{
    struct output out;
    size_t i;
    json_t *row;
    output_begin(&out, format, columns, count);
    out.skip_empty = skip_empty;
    json_array_foreach(rows, i, row) output_row(&out, json_incref(row));
    output_end(&out);
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
