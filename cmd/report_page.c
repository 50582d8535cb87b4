/* The page is a template, cmd/page/report.html.  A mark {{name}} stands for the text of the
 * embedded file of that name, {{data}} for the data. */
#include "cmd/report_int.h"
#include "embedded.h"

#include <assert.h>

#define X(symbol, name, path) extern const char(symbol)[];
EMBEDDED(X)
#undef X

static const struct {
    const char *name, *text;
} files[] = {
#define X(symbol, name, path) {name, symbol},
    EMBEDDED(X)
#undef X
};

/* Null for an unknown name. */
static const char *find_file(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (strlen(files[i].name) == len && strncmp(files[i].name, name, len) == 0)
            return files[i].text;
    return NULL;
}

/* In JSON a '<' occurs within strings alone.  Written as an escape, no text ends the script element
 * that the JSON stands in, or begins a comment there. */
static void add_data(const json_t *data, struct buf *out)
{
    enum { DIGITS = 6 };
    SCOPED char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    for (const char *at = text, *end; *at != '\0'; at = end) {
        end = at + strcspn(at, "<");
        buf_add(out, at, (size_t)(end - at));
        if (*end == '<') {
            buf_adds(out, "\\u003c");
            end++;
        }
    }
}

void report_page(const json_t *pages, struct buf *out)
{
    const char *at = find_file("report.html", strlen("report.html"));
    assert(at != NULL);
    for (const char *mark; (mark = strstr(at, "{{")) != NULL;) {
        const char *name = mark + 2, *end = strstr(name, "}}");
        size_t len = (size_t)(end - name);
        const char *text = find_file(name, len);
        buf_add(out, at, (size_t)(mark - at));
        if (text != NULL)
            buf_adds(out, text);
        else
            add_data(pages, out);
        at = end + 2;
    }
    buf_adds(out, at);
}
