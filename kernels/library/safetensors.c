/* safetensors.h says what is read; the format: huggingface.co/docs/safetensors. */
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* For "%.*s". */
#define NAME(t) (int)((t)->name_len < 80 ? (t)->name_len : 80), (t)->name

static int refuse(struct safetensors *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(struct safetensors *f, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(f->error, sizeof(f->error), format, list);
    va_end(list);
    return -1;
}

/* ---- the header's JSON ----------------------------------------------------------------------- */

/* What remains of it. */
struct cursor {
    const char *at, *end;
};

struct text {
    const char *at;
    size_t len;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

static bool accept(struct cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* A string; *out is what stands between the quotes. */
static bool read_string(struct cursor *c, struct text *out)
{
    if (!accept(c, '"'))
        return false;
    out->at = c->at;
    while (c->at < c->end && *c->at != '"') {
        bool escape = *c->at == '\\' && ++c->at < c->end;
        if (c->at == c->end || (unsigned char)*c->at < ' ' ||
            (escape && memchr("\"\\/bfnrtu", *c->at, 9) == NULL))
            return false;
        c->at++;
    }
    out->len = (size_t)(c->at - out->at);
    return accept(c, '"');
}

static bool is(struct text t, const char *what)
{
    return t.len == strlen(what) && memcmp(t.at, what, t.len) == 0;
}

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
    if (!accept(c, '['))
        return -1;
    if (accept(c, ']'))
        return 0;
    do {
        if (n == most || !read_number(c, &out[n++]))
            return -1;
    } while (accept(c, ','));
    return accept(c, ']') ? n : -1;
}

/* {"key": "text", ...} */
static bool skip_metadata(struct cursor *c)
{
    struct text ignored;
    if (!accept(c, '{'))
        return false;
    if (accept(c, '}'))
        return true;
    do {
        if (!read_string(c, &ignored) || !accept(c, ':') || !read_string(c, &ignored))
            return false;
    } while (accept(c, ','));
    return accept(c, '}');
}

/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, each once, in any order. */
static bool read_tensor(struct cursor *c, struct safetensor *t)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    unsigned seen = 0, member;
    uint64_t offsets[2];
    struct text key, dtype;
    if (!accept(c, '{'))
        return false;
    do {
        if (!read_string(c, &key) || !accept(c, ':'))
            return false;
        if (is(key, "dtype")) {
            member = DTYPE;
            if (!read_string(c, &dtype) || dtype.len >= sizeof(t->dtype))
                return false;
            memcpy(t->dtype, dtype.at, dtype.len);
        } else if (is(key, "shape")) {
            member = SHAPE;
            t->dims = read_numbers(c, t->shape, SAFETENSORS_DIMS);
            if (t->dims < 0)
                return false;
        } else {
            member = OFFSETS;
            if (!is(key, "data_offsets") || read_numbers(c, offsets, 2) != 2)
                return false;
            t->begin = offsets[0];
            t->end = offsets[1];
        }
        if ((seen & member) != 0)
            return false;
        seen |= member;
    } while (accept(c, ','));
    return seen == ALL && accept(c, '}');
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
        return refuse(f, "the header does not begin with '{'");
    accept(c, '{');
    if (!accept(c, '}')) {
        do {
            if (!read_string(c, &name) || !accept(c, ':'))
                return refuse(f, "the header is not a JSON object of tensors");
            if (is(name, "__metadata__")) {
                if (!skip_metadata(c))
                    return refuse(f, "'__metadata__' is not an object of texts");
                continue;
            }
            struct safetensor *t = add_tensor(f);
            if (t == NULL)
                return refuse(f, "out of memory");
            t->name = name.at;
            t->name_len = name.len;
            if (!read_tensor(c, t))
                return refuse(f, "tensor '%.*s' is not dtype, shape and data_offsets", NAME(t));
        } while (accept(c, ','));
        if (!accept(c, '}'))
            return refuse(f, "the header is not a JSON object of tensors");
    }
    skip_blanks(c);
    return c->at == c->end ? 0 : refuse(f, "something stands behind the header's object");
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
    const struct safetensor *x = *(const struct safetensor *const *)a,
                            *y = *(const struct safetensor *const *)b;
    size_t len = x->name_len < y->name_len ? x->name_len : y->name_len;
    int order = memcmp(x->name, y->name, len);
    return order != 0 ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

static int check_names(struct safetensors *f)
{
    const struct safetensor **list = malloc((f->count + 1) * sizeof(*list));
    int result = 0;
    if (list == NULL)
        return refuse(f, "out of memory");
    for (size_t i = 0; i < f->count; i++)
        list[i] = &f->tensors[i];
    qsort(list, f->count, sizeof(*list), by_name);
    for (size_t i = 1; i < f->count && result == 0; i++)
        if (by_name(&list[i - 1], &list[i]) == 0)
            result = refuse(f, "two tensors are named '%.*s'", NAME(list[i]));
    free(list);
    return result;
}

static int check_data(struct safetensors *f, uint64_t bytes)
{
    uint64_t end = 0;
    if (f->count > 0)
        qsort(f->tensors, f->count, sizeof(*f->tensors), by_place);
    for (size_t i = 0; i < f->count; i++) {
        const struct safetensor *t = &f->tensors[i];
        uint64_t size = element_bytes(t->dtype);
        if (size == 0)
            return refuse(f, "tensor '%.*s' has the unknown type '%s'", NAME(t), t->dtype);
        for (int d = 0; d < t->dims; d++)
            if (__builtin_mul_overflow(size, t->shape[d], &size))
                return refuse(f, "the shape of tensor '%.*s' is too large", NAME(t));
        if (t->begin != end)
            return refuse(f, "tensor '%.*s' %s the one before it", NAME(t),
                          t->begin < end ? "overlaps" : "leaves a gap behind");
        if (t->end < t->begin || t->end - t->begin != size)
            return refuse(f, "tensor '%.*s' has %llu bytes; its type and shape take %llu", NAME(t),
                          (unsigned long long)(t->end - t->begin), (unsigned long long)size);
        end = t->end;
    }
    return end == bytes ? 0
                        : refuse(f, "the tensors take %llu bytes, and %llu are in the file",
                                 (unsigned long long)end, (unsigned long long)bytes);
}

/* ---- files ----------------------------------------------------------------------------------- */

int safetensors_parse(const void *bytes, size_t len, struct safetensors *out)
{
    enum { PREFIX = 8, HEADER_MOST = 100000000 };
    const unsigned char *at = bytes;
    uint64_t header = 0;
    *out = (struct safetensors){.count = 0};
    if (len < PREFIX)
        return refuse(out, "the file is shorter than the length of a header");
    for (int i = PREFIX - 1; i >= 0; i--)
        header = header << 8 | at[i];
    if (header > HEADER_MOST || header > len - PREFIX)
        return refuse(out,
                      "the header should have %llu bytes, more than the file or the format has",
                      (unsigned long long)header);
    struct cursor c = {.at = (const char *)at + PREFIX};
    c.end = c.at + header;
    out->data = at + PREFIX + header;
    if (read_header(&c, out) != 0 || check_names(out) != 0)
        return -1;
    return check_data(out, len - PREFIX - header);
}

int safetensors_open(const char *path, struct safetensors *out)
{
    struct stat info;
    *out = (struct safetensors){.count = 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
        if (fd >= 0)
            close(fd);
        return refuse(out, "%s", fd < 0 ? strerror(errno) : "it is empty or no regular file");
    }
    size_t len = (size_t)info.st_size;
    void *mapped = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED)
        return refuse(out, "%s", strerror(errno));
    int result = safetensors_parse(mapped, len, out);
    out->mapped = mapped;
    out->mapped_bytes = len;
    return result;
}

void safetensors_close(struct safetensors *f)
{
    if (f->mapped != NULL)
        munmap(f->mapped, f->mapped_bytes);
    free(f->tensors);
    *f = (struct safetensors){.count = 0};
}

const struct safetensor *safetensors_find(const struct safetensors *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->tensors[i].name_len == strlen(name) &&
            memcmp(f->tensors[i].name, name, f->tensors[i].name_len) == 0)
            return &f->tensors[i];
    return NULL;
}
