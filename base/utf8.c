#include "base/base.h"

/* The Unicode Standard, table 3-7: the range of a character's first byte, how many bytes it has,
 * and the range of the second.  All further bytes are 80..bf. */
static const struct form {
    unsigned char first, last;
    int bytes;
    unsigned char second_first, second_last;
} forms[] = {
    {0x01, 0x7f, 1, 0, 0},       {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

static const struct form *form_of(unsigned char first)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (forms[i].first <= first && first <= forms[i].last)
            return &forms[i];
    return NULL;
}

/* How many bytes at `text` fit the form, the first one included. */
static int bytes_there(const struct form *f, const unsigned char *text)
{
    int n = 1;
    while (n < f->bytes && text[n] >= (n == 1 ? f->second_first : 0x80) &&
           text[n] <= (n == 1 ? f->second_last : 0xbf))
        n++;
    return n;
}

char *utf8_mend(char *text)
{
    char *at = text;
    while (*at != '\0') {
        const struct form *f = form_of((unsigned char)*at);
        int there = f != NULL ? bytes_there(f, (const unsigned char *)at) : 1;
        bool whole = f != NULL && there == f->bytes;
        if (f != NULL && !whole && at[there] == '\0')
            *at = '\0'; /* the last character is cut */
        else
            at = whole ? at + there : memset(at, '?', (size_t)there);
    }
    return text;
}

/* Control characters, and what shows nothing or changes how the text around it is shown: the
 * property Default_Ignorable_Code_Point of the Unicode Standard (DerivedCoreProperties.txt), the
 * separators of lines and paragraphs, and the marks of annotations.  By rising numbers. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x0001, 0x001f}, {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

int utf8_hidden(const char *text, uint32_t *number)
{
    const struct form *f = form_of((unsigned char)text[0]);
    if (f == NULL || bytes_there(f, (const unsigned char *)text) < f->bytes)
        return 0;
    *number = (unsigned char)text[0] & (f->bytes > 1 ? 0x7fU >> f->bytes : 0x7fU);
    for (int i = 1; i < f->bytes; i++)
        *number = *number << 6 | ((unsigned char)text[i] & 0x3f);
    for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
        if (hidden[i].first <= *number && *number <= hidden[i].last)
            return f->bytes;
    return 0;
}

static void add_escape(unsigned char byte, struct buf *out)
{
    static const char letters[] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r'};
    if (byte < sizeof(letters) && letters[byte] != '\0')
        buf_addf(out, "\\%c", letters[byte]);
    else
        buf_addf(out, "\\x%02x", byte);
}

/* How many bytes of ASCII the text begins with that need no escape: most text is nothing else. */
static size_t plain_bytes(const char *text)
{
    size_t count = 0;
    while (text[count] >= 0x20 && text[count] < 0x7f)
        count++;
    return count;
}

void utf8_escape(const char *text, struct buf *out)
{
    for (;;) {
        size_t plain = plain_bytes(text);
        buf_add(out, text, plain);
        text += plain;
        if (*text == '\0')
            return;
        const struct form *f = form_of((unsigned char)*text);
        int there = f != NULL ? bytes_there(f, (const unsigned char *)text) : 1;
        bool whole = f != NULL && there == f->bytes;
        uint32_t ignored;
        int escaped = whole ? utf8_hidden(text, &ignored) : there;
        for (int i = 0; i < escaped; i++)
            add_escape((unsigned char)text[i], out);
        buf_add(out, text + escaped, (size_t)(there - escaped));
        text += there;
    }
}

bool utf8_is_plain(const char *text)
{
    if (text[plain_bytes(text)] == '\0')
        return true;
    SCOPED_BUF escaped = BUF_INIT;
    utf8_escape(text, &escaped);
    return strcmp(escaped.ptr, text) == 0;
}

bool utf8_is_valid(const char *text)
{
    SCOPED char *mended = utf8_mend(mem_strdup(text));
    return strcmp(mended, text) == 0;
}
