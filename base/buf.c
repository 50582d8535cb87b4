#include "base/base.h"

char buf_empty[1];

void buf_init(struct buf *b)
{
    *b = BUF_INIT;
}

void buf_release(struct buf *b)
{
    if (b->cap != 0)
        free(b->ptr);
    buf_init(b);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    if (b->cap != 0)
        b->ptr[0] = '\0';
}

char *buf_detach(struct buf *b)
{
    char *text = b->cap != 0 ? b->ptr : mem_strdup("");
    buf_init(b);
    return text;
}

/* Makes room for `extra` more bytes and the NUL. */
static void reserve(struct buf *b, size_t extra)
{
    size_t need = b->len + extra + 1;
    if (need <= b->cap)
        return;
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need)
        cap *= 2;
    b->ptr = mem_resize(b->cap != 0 ? b->ptr : NULL, cap, 1);
    b->cap = cap;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
    if (len == 0)
        return;
    reserve(b, len);
    memcpy(b->ptr + b->len, data, len);
    b->len += len;
    b->ptr[b->len] = '\0';
}

void buf_adds(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

char *buf_text(const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_addv(&text, fmt, args);
    va_end(args);
    return buf_detach(&text);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buf_addv(b, fmt, args);
    va_end(args);
}

void buf_addv(struct buf *b, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    reserve(b, 64);
    size_t room = b->cap - b->len;
    int len = vsnprintf(b->ptr + b->len, room, fmt, args);
    if ((size_t)len >= room) {
        reserve(b, (size_t)len);
        vsnprintf(b->ptr + b->len, (size_t)len + 1, fmt, again);
    }
    va_end(again);
    b->len += (size_t)len;
}

void buf_add_word(struct buf *b, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=:,./@%^";
    size_t len = strlen(word);
    if (len > 0 && strspn(word, plain) == len) {
        buf_adds(b, word);
        return;
    }
    buf_adds(b, "'");
    for (; *word != '\0'; word++)
        if (*word == '\'')
            buf_adds(b, "'\\''");
        else
            buf_add(b, word, 1);
    buf_adds(b, "'");
}

void buf_add_path(struct buf *b, const char *path)
{
    if (path[0] == '-')
        buf_adds(b, "./");
    buf_add_word(b, path);
}
