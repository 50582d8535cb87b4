#include "base/base.h"

/* By what files begin with.  Where `part` is not null, it is in the first line too. */
static const struct {
    enum file_kind kind;
    const char *bytes;
    size_t len;
    const char *part, *what;
} kinds[] = {
    {FILE_DATABASE, "SQLite format 3", 16, NULL,
     "it is a database: 'fuseplan db merge' adds what one holds"},
    {FILE_GZIP, "\x1f\x8b", 2, NULL, "it is packed by gzip: 'gzip -dc' unpacks it"},
    {FILE_RESULTS, "{", 1, "\"fuseplan results\"",
     "it holds results as text: 'fuseplan db import' adds them"},
    {FILE_UTF16, "\xff\xfe", 2, NULL,
     "it is text in UTF-16: convert it, as by 'iconv -f UTF-16 -t UTF-8'"},
    {FILE_UTF16, "\xfe\xff", 2, NULL,
     "it is text in UTF-16: convert it, as by 'iconv -f UTF-16 -t UTF-8'"},
};

size_t utf8_mark(const char *bytes, size_t len)
{
    return len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

enum file_kind file_kind(const char *bytes, size_t len, const char **what)
{
    size_t mark = utf8_mark(bytes, len);
    bytes += mark;
    len -= mark;
    const char *end = len > 0 ? memchr(bytes, '\n', len) : NULL;
    size_t line = end != NULL ? (size_t)(end - bytes) : len;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const char *part = kinds[i].part;
        if (len >= kinds[i].len && memcmp(bytes, kinds[i].bytes, kinds[i].len) == 0 &&
            (part == NULL || memmem(bytes, line, part, strlen(part)) != NULL)) {
            *what = kinds[i].what;
            return kinds[i].kind;
        }
    }
    *what = NULL;
    return FILE_OTHER;
}

int file_read_text(const char *path, size_t max_bytes, struct buf *out, struct status *st)
{
    const char *what;
    if (file_read(path, max_bytes, out, st) != 0)
        return -1;
    if (file_kind(out->ptr, out->len, &what) == FILE_UTF16)
        return status_set(st, STATUS_USAGE, "'%s': %s", path, what);
    size_t mark = utf8_mark(out->ptr, out->len);
    if (mark > 0) {
        memmove(out->ptr, out->ptr + mark, out->len - mark + 1);
        out->len -= mark;
    }
    return 0;
}
