/* safetensors.h says what is read; the format: huggingface.co/docs/safetensors. */
#include "safetensors_int.h"

#include <stdio.h>
#include <stdlib.h>

int safetensors_error(char *error, size_t room, const char *format, va_list list)
{
    vsnprintf(error, room, format, list);
    for (char *c = error; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return -1;
}

int safetensors_refuse(struct safetensors *f, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = safetensors_error(f->error, sizeof(f->error), format, list);
    va_end(list);
    return result;
}

/* ---- the header's JSON ----------------------------------------------------------------------- */

/* A whole number without sign, fraction or exponent. */
static bool read_number(struct cursor *c, uint64_t *out)
{
    skip_blanks(c);
    const char *first = c->at;
    *out = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        uint64_t digit = (uint64_t)(*c->at - '0');
        if (*out > (UINT64_MAX - digit) / 10)
            return false;
        *out = *out * 10 + digit;
        c->at++;
    }
    return c->at > first && (*first != '0' || c->at == first + 1);
}

/* "[1, 2]"; returns how many there are, -1 for anything else. */
static int read_numbers(struct cursor *c, uint64_t *out, int most)
{
    int n = 0;
    if (!accept_next(c, '['))
        return -1;
    if (accept_next(c, ']'))
        return 0;
    do {
        if (n == most || !read_number(c, &out[n++]))
            return -1;
    } while (accept_next(c, ','));
    return accept_next(c, ']') ? n : -1;
}

/* A number, true, false or null. */
static bool skip_word(struct cursor *c)
{
    skip_blanks(c);
    const char *first = c->at;
    while (c->at < c->end && *c->at != '\0' &&
           strchr("+-.0123456789Eabcdefghijklmnopqrstuvwxyz", *c->at) != NULL)
        c->at++;
    return c->at > first;
}

bool safetensors_skip_object(struct cursor *c, bool words)
{
    struct text ignored;
    if (!accept_next(c, '{'))
        return false;
    if (accept_next(c, '}'))
        return true;
    do {
        if (!read_key(c, &ignored))
            return false;
        skip_blanks(c);
        bool is_text = c->at < c->end && *c->at == '"';
        if (is_text || !words ? !read_string(c, &ignored) : !skip_word(c))
            return false;
    } while (accept_next(c, ','));
    return accept_next(c, '}');
}

/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, each once, in any order. */
static bool read_tensor(struct cursor *c, struct safetensor *t)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    unsigned seen = 0, member;
    uint64_t offsets[2];
    struct text key, dtype;
    if (!accept_next(c, '{'))
        return false;
    do {
        if (!read_key(c, &key))
            return false;
        if (text_is(key, "dtype")) {
            member = DTYPE;
            if (!read_string(c, &dtype) || dtype.len >= sizeof(t->dtype))
                return false;
            memcpy(t->dtype, dtype.at, dtype.len);
        } else if (text_is(key, "shape")) {
            member = SHAPE;
            t->dims = read_numbers(c, t->shape, SAFETENSORS_DIMS);
            if (t->dims < 0)
                return false;
        } else {
            member = OFFSETS;
            if (!text_is(key, "data_offsets") || read_numbers(c, offsets, 2) != 2)
                return false;
            t->begin = offsets[0];
            t->end = offsets[1];
        }
        if ((seen & member) != 0)
            return false;
        seen |= member;
    } while (accept_next(c, ','));
    return seen == ALL && accept_next(c, '}');
}

static struct safetensor *add_tensor(struct safetensors *f)
{
    if ((f->count & (f->count - 1)) == 0) {
        size_t room = f->count > 0 ? 2 * f->count : 1;
        struct safetensor *more = realloc(f->tensors, room * sizeof(*more));
        if (more == NULL)
            return NULL;
        f->tensors = more;
    }
    struct safetensor *t = &f->tensors[f->count++];
    memset(t, 0, sizeof(*t));
    return t;
}

static int read_header(struct cursor *c, struct safetensors *f)
{
    struct text name;
    if (c->at == c->end || *c->at != '{')
        return safetensors_refuse(f, "the header does not begin with '{'");
    accept_next(c, '{');
    if (!accept_next(c, '}')) {
        do {
            if (!read_key(c, &name))
                return safetensors_refuse(f, "the header is not a JSON object of tensors");
            if (text_is(name, "__metadata__")) {
                if (!safetensors_skip_object(c, false))
                    return safetensors_refuse(f, "'__metadata__' is not an object of texts");
                continue;
            }
            struct safetensor *t = add_tensor(f);
            if (t == NULL)
                return safetensors_refuse(f, "out of memory");
            t->name = name.at;
            t->name_len = name.len;
            if (!read_tensor(c, t))
                return safetensors_refuse(f, "tensor '%.*s' is not dtype, shape and data_offsets",
                                          NAME(t));
        } while (accept_next(c, ','));
        if (!accept_next(c, '}'))
            return safetensors_refuse(f, "the header is not a JSON object of tensors");
    }
    skip_blanks(c);
    return c->at == c->end ? 0
                           : safetensors_refuse(f, "something stands behind the header's object");
}

/* ---- what the header says of the data -------------------------------------------------------- */

/* Bytes of an element; 0 for an unknown type. */
static uint64_t element_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8},     {"I64", 8},
                 {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
                 {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, dtype) == 0)
            return types[i].bytes;
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct safetensor *x = a, *y = b;
    if (x->begin != y->begin)
        return (x->begin > y->begin) - (x->begin < y->begin);
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
    const struct safetensor *x = a, *y = b;
    size_t len = x->name_len < y->name_len ? x->name_len : y->name_len;
    int order = memcmp(x->name, y->name, len);
    return order != 0 ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

int safetensors_sort(struct safetensors *f)
{
    if (f->count > 0)
        qsort(f->tensors, f->count, sizeof(*f->tensors), by_name);
    for (size_t i = 1; i < f->count; i++)
        if (by_name(&f->tensors[i - 1], &f->tensors[i]) == 0)
            return safetensors_refuse(f, "two tensors are named '%.*s'", NAME(&f->tensors[i]));
    return 0;
}

const struct safetensor *safetensors_find_text(const struct safetensors *f, struct text name)
{
    const struct safetensor key = {.name = name.at, .name_len = name.len};
    return f->count > 0 ? bsearch(&key, f->tensors, f->count, sizeof(key), by_name) : NULL;
}

/* Also sets where each tensor's data are. */
static int check_data(struct safetensors *f, const unsigned char *data, uint64_t bytes)
{
    uint64_t end = 0;
    if (f->count > 0)
        qsort(f->tensors, f->count, sizeof(*f->tensors), by_place);
    for (size_t i = 0; i < f->count; i++) {
        struct safetensor *t = &f->tensors[i];
        uint64_t size = element_bytes(t->dtype);
        if (size == 0)
            return safetensors_refuse(f, "tensor '%.*s' has the unknown type '%s'", NAME(t),
                                      t->dtype);
        for (int d = 0; d < t->dims; d++)
            if (__builtin_mul_overflow(size, t->shape[d], &size))
                return safetensors_refuse(f, "the shape of tensor '%.*s' is too large", NAME(t));
        if (t->begin != end)
            return safetensors_refuse(f, "tensor '%.*s' %s the one before it", NAME(t),
                                      t->begin < end ? "overlaps" : "leaves a gap behind");
        if (t->end < t->begin || t->end - t->begin != size)
            return safetensors_refuse(
                f, "tensor '%.*s' has %llu bytes; its type and shape take %llu", NAME(t),
                (unsigned long long)(t->end - t->begin), (unsigned long long)size);
        t->data = data + t->begin;
        end = t->end;
    }
    return end == bytes
               ? 0
               : safetensors_refuse(f, "the tensors take %llu bytes, and %llu are in the file%s",
                                    (unsigned long long)end, (unsigned long long)bytes,
                                    bytes < end ? ": it is truncated; fetch it again" : "");
}

/* ---- all of it
 * ----------------------------------------------------------------------------------- */

int safetensors_parse(const void *bytes, size_t len, struct safetensors *out)
{
    enum { PREFIX = 8, HEADER_MOST = 100000000 };
    const unsigned char *at = bytes;
    uint64_t header = 0;
    *out = (struct safetensors){.count = 0};
    if (len < PREFIX)
        return safetensors_refuse(
            out, "the file is shorter than the length of a header: %d bytes expected, found %zu",
            PREFIX, len);
    for (int i = PREFIX - 1; i >= 0; i--)
        header = header << 8 | at[i];
    if (header > HEADER_MOST || header > len - PREFIX)
        return safetensors_refuse(
            out, "the header should have %llu bytes; the format has at most %d, the file %zu",
            (unsigned long long)header, HEADER_MOST, len - PREFIX);
    struct cursor c = {.at = (const char *)at + PREFIX};
    c.end = c.at + header;
    if (read_header(&c, out) != 0 ||
        check_data(out, at + PREFIX + header, len - PREFIX - header) != 0)
        return -1;
    return safetensors_sort(out);
}
