#include "db/rows_int.h"
#include "db/text_read_int.h"

#include <sys/stat.h>
#include <unistd.h>

int text_fail(const struct text_reader *r, struct status *st, const char *fmt, ...)
{
    char what[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    if (r->database)
        return status_set(st, STATUS_DATABASE, "'%s' is damaged: %s; 'fuseplan db check' says more",
                          r->path, what);
    return status_set(st, STATUS_USAGE, "'%s', line %d: %s", r->path, r->number, what);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* A member of the wrong type, or that is missing. */
static int bad_member(const struct text_reader *r, const char *name, const json_t *value,
                      const char *expected, struct status *st)
{
    if (value == NULL)
        return text_fail(r, st, "the member '%s' is missing; expected %s", name, expected);
    SCOPED char *found = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    return text_fail(r, st, "'%s' is %.60s%s; expected %s", name, found,
                     strlen(found) > 60 ? "..." : "", expected);
}

/* A number that its column does not take, or no number; type: what is expected then. */
static int bad_number(const struct text_reader *r, const struct text_field *f, const json_t *value,
                      const char *type, struct status *st)
{
    SCOPED_BUF expected = BUF_INIT;
    if (json_is_number(value))
        row_expected(row_rule_of(f->name), &expected);
    else
        buf_adds(&expected, type);
    return bad_member(r, f->name, value, expected.ptr, st);
}

static int read_string(const struct text_reader *r, const struct text_field *f, const json_t *value,
                       const char **out, struct status *st)
{
    *out = value != NULL ? json_string_value(value) : "";
    bool absent = value == NULL && f->type == TEXT_STRING;
    if (f->type == TEXT_UTC && (*out == NULL || !db_is_utc(*out)))
        return bad_member(r, f->name, value, "a time as '2026-01-31T12:34:56.789Z'", st);
    if (!absent && (value == NULL || *out == NULL || strlen(*out) != json_string_length(value)))
        return bad_member(r, f->name, value, "a text", st);
    return 0;
}

static int read_real(const struct text_reader *r, const struct text_field *f, const json_t *value,
                     double *out, struct status *st)
{
    bool infinite = json_is_null(value), number = infinite || json_is_number(value);
    *out = value == NULL ? NAN : infinite ? INFINITY : json_number_value(value);
    if (value != NULL && (!number || !row_takes_real(row_rule_of(f->name), *out)))
        return bad_number(r, f, value, "a number", st);
    return 0;
}

static int read_integer(const struct text_reader *r, const struct text_field *f,
                        const json_t *value, void *out, struct status *st)
{
    json_int_t number = json_integer_value(value);
    if (value == NULL && f->type == TEXT_BITS) {
        *(int *)out = 0;
        return 0;
    }
    if (!json_is_integer(value) || !row_takes_integer(row_rule_of(f->name), number))
        return bad_number(r, f, value, "a whole number", st);
    if (f->type == TEXT_INT || f->type == TEXT_BITS)
        *(int *)out = (int)number;
    else
        *(int64_t *)out = number;
    return 0;
}

static bool has_field(const struct text_table *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->fields[i].name, name) == 0)
            return true;
    return false;
}

/* also: names of members that the table lacks, each with a blank behind it. */
static int check_names(const struct text_reader *r, json_t *from, const struct text_table *t,
                       const char *also, struct status *st)
{
    const char *name;
    json_t *value;
    json_object_foreach(from, name, value)
    {
        const char *at = strstr(also, name);
        bool listed = at != NULL && at[strlen(name)] == ' ' && (at == also || at[-1] == ' ');
        if (!listed && !has_field(t, name))
            return text_fail(r, st, "unknown member '%s'", name);
    }
    return 0;
}

int text_read_fields(const struct text_reader *r, json_t *from, const struct text_table *t,
                     const char *also, void *out, struct status *st)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct text_field *f = &t->fields[i];
        const json_t *value = json_object_get(from, f->name);
        void *at = (char *)out + f->offset;
        int result = 0;
        switch (f->type) {
        case TEXT_STRING:
        case TEXT_REQUIRED:
        case TEXT_UTC:
            result = read_string(r, f, value, at, st);
            break;
        case TEXT_REAL:
            result = read_real(r, f, value, at, st);
            break;
        case TEXT_BITS:
        case TEXT_INT:
        case TEXT_SIZE:
            result = read_integer(r, f, value, at, st);
            break;
        }
        if (result != 0)
            return -1;
    }
    return check_names(r, from, t, also, st);
}

/* ---- lines ----------------------------------------------------------------------------------- */

int text_open(struct text_reader *r, const char *path, struct status *st)
{
    bool standard = strcmp(path, "-") == 0;
    *r = (struct text_reader){.path = standard ? "standard input" : path, .standard = standard};
    r->in = standard ? stdin : fopen(path, "re");
    if (r->in == NULL)
        return status_set(st, STATUS_ENVIRONMENT, "cannot read '%s': %s", path, strerror(errno));
    struct stat info; /* a pipe is fine; a device such as /dev/zero has no end */
    bool known = fstat(fileno(r->in), &info) == 0;
    r->bytes = known && S_ISREG(info.st_mode) ? info.st_size : 0;
    if (known && (S_ISBLK(info.st_mode) || S_ISCHR(info.st_mode)) && isatty(fileno(r->in)) == 0)
        return status_set(st, STATUS_ENVIRONMENT,
                          "cannot read '%s': it is a device, and must be a regular file or a pipe",
                          r->path);
    return 0;
}

void text_close(struct text_reader *r)
{
    if (r->in != NULL && !r->standard)
        fclose(r->in);
    free(r->line);
    buf_release(&r->text);
    buf_release(&r->only);
    buf_release(&r->studies);
    *r = (struct text_reader){.in = NULL};
}

/* Of the first line: takes a byte order mark off, and refuses what another command reads. */
static int check_kind(struct text_reader *r, ssize_t *len, struct status *st)
{
    const char *what;
    size_t mark = utf8_mark(r->line, (size_t)*len);
    enum file_kind kind = file_kind(r->line, (size_t)*len, &what);
    memmove(r->line, r->line + mark, (size_t)*len - mark + 1);
    *len -= (ssize_t)mark;
    return kind == FILE_OTHER || kind == FILE_RESULTS
               ? 0
               : status_set(st, STATUS_USAGE, "'%s' holds no results as text: %s", r->path, what);
}

/* Whether a line is of a study of another workload than the one asked for.  The first line is read
 * in any case. */
static bool passes_over(struct text_reader *r)
{
    static const char begin[] = "{\"study\":\"";
    const size_t known = sizeof(begin) - 1;
    if (r->only.len == 0 || r->number == 1 || strncmp(r->line, begin, known) != 0)
        return false;
    const size_t len = known + strcspn(r->line + known, "\"") + 1;
    if (strstr(r->line, r->only.ptr) != NULL)
        buf_add(&r->studies, r->line, len);
    return r->studies.len == 0 || memmem(r->studies.ptr, r->studies.len, r->line, len) == NULL;
}

/* The next line that is not passed over, as JSON that the caller releases; 1, 0 at the end of the
 * file, or -1. */
static int next_line(struct text_reader *r, json_t **out, struct status *st)
{
    json_error_t error;
    ssize_t len;
    do {
        errno = 0;
        len = getline(&r->line, &r->size, r->in);
        if (len < 0)
            return feof(r->in) != 0 ? 0
                                    : status_set(st, STATUS_ENVIRONMENT, "cannot read '%s': %s",
                                                 r->path, strerror(errno));
        if (r->number++ == 0 && check_kind(r, &len, st) != 0)
            return -1;
        if (len == 0 || r->line[len - 1] != '\n')
            return text_fail(r, st, "the line has no end; the file was cut short");
        r->line[--len] = '\0';
    } while (passes_over(r));
    *out = json_loadb(r->line, (size_t)len, JSON_REJECT_DUPLICATES, &error);
    if (*out == NULL && r->database)
        return text_fail(r, st, "%s", error.text);
    if (*out == NULL)
        return status_set(st, STATUS_USAGE, "'%s', line %d, column %d: %s", r->path, r->number,
                          error.column > 0 ? error.column : 1, error.text);
    return json_is_object(*out) ? 1 : text_fail(r, st, "a line is an object in braces");
}

static int check_header(const struct text_reader *r, const json_t *header, struct status *st)
{
    const char *format = json_string_value(json_object_get(header, "format"));
    json_int_t version = json_integer_value(json_object_get(header, "version"));
    if (format == NULL || strcmp(format, TEXT_FORMAT) != 0)
        return text_fail(r, st,
                         "the first line has no format '%s'; 'fuseplan db export' writes such "
                         "files",
                         TEXT_FORMAT);
    if (version != TEXT_VERSION)
        return text_fail(r, st, "the version is %lld, this fuseplan reads %d; use a newer fuseplan",
                         (long long)version, TEXT_VERSION);
    return 0;
}

int text_next(struct text_reader *r, json_t **out, struct status *st)
{
    for (;;) {
        json_auto_t *line = NULL;
        int found = next_line(r, &line, st);
        if (found == 0 && r->number == 0)
            return status_set(st, STATUS_USAGE, "'%s' is empty", r->path);
        if (found <= 0)
            return found;
        /* Headers may repeat: files may be put one behind the other. */
        if (r->number > 1 && json_object_get(line, "format") == NULL) {
            *out = json_incref(line);
            return 1;
        }
        if (check_header(r, line, st) != 0)
            return -1;
    }
}

/* What can be read once only, as standard input or a pipe, is left to db_import(). */
int db_import_check(const char *path, struct status *st)
{
    struct stat file;
    json_auto_t *line = NULL;
    if (strcmp(path, "-") == 0 || (stat(path, &file) == 0 && !S_ISREG(file.st_mode)))
        return 0;
    SCOPED_BY(text_close) struct text_reader r;
    return text_open(&r, path, st) != 0 || text_next(&r, &line, st) < 0 ? -1 : 0;
}
