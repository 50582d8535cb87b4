#include "base/base.h"

/* The format: numpy.org/doc/stable/reference/generated/numpy.lib.format.html.  Six bytes of magic,
 * two of version, the header's length (2 bytes in version 1, else 4), the header: a Python
 * dictionary padded with blanks to a multiple of 64 bytes, then the data. */

static const char magic[] = "\x93NUMPY";
enum { MAGIC_LEN = 6, PREFIX_LEN = MAGIC_LEN + 2, ALIGNMENT = 64 };

static const struct {
    const char *descr, *name;
    int bytes;
} types[] = {
    [NPY_BOOL] = {"|b1", "bool", 1},         [NPY_UINT8] = {"|u1", "uint8", 1},
    [NPY_UINT16] = {"<u2", "uint16", 2},     [NPY_UINT32] = {"<u4", "uint32", 4},
    [NPY_UINT64] = {"<u8", "uint64", 8},     [NPY_INT8] = {"|i1", "int8", 1},
    [NPY_INT16] = {"<i2", "int16", 2},       [NPY_INT32] = {"<i4", "int32", 4},
    [NPY_INT64] = {"<i8", "int64", 8},       [NPY_FLOAT16] = {"<f2", "float16", 2},
    [NPY_FLOAT32] = {"<f4", "float32", 4},   [NPY_FLOAT64] = {"<f8", "float64", 8},
    [NPY_BFLOAT16] = {"<V2", "bfloat16", 2},
};

const char *npy_type_name(enum npy_type type)
{
    return types[type].name;
}

/* What remains of the header to be read, or a part of it. */
struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
        c->at++;
}

/* Skips blanks, then `text` if it comes next; says whether it did. */
static bool accept(struct cursor *c, const char *text)
{
    size_t len = strlen(text);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0)
        return false;
    c->at += len;
    return true;
}

/* A quoted string; *out is its text without the quotes. */
static bool accept_string(struct cursor *c, struct cursor *out)
{
    if (!accept(c, "'") && !accept(c, "\""))
        return false;
    const char *quote = c->at[-1] == '"' ? "\"" : "'";
    out->at = c->at;
    while (c->at < c->end && *c->at != *quote)
        c->at++;
    out->end = c->at;
    return accept(c, quote);
}

static bool accept_number(struct cursor *c, int64_t *out)
{
    skip_blanks(c);
    const char *first = c->at;
    *out = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, *c->at++ - '0', out))
            return false;
    return c->at > first;
}

static bool is_text(struct cursor c, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(c.end - c.at) == len && memcmp(c.at, text, len) == 0;
}

static int refuse_header(const char *expected, struct status *st)
{
    return status_set(st, STATUS_USAGE, "the .npy header is damaged: expected %s", expected);
}

/* Whether a message may quote a type: the file may come from anyone.  The longest names of plain
 * types that NumPy writes are like '<M8[25us]'. */
static bool is_printable(struct cursor text)
{
    enum { TYPE_MAX = 40 };
    for (const char *p = text.at; p < text.end; p++)
        if (*p < ' ' || *p > '~')
            return false;
    return text.end - text.at <= TYPE_MAX;
}

static int parse_type(struct cursor *c, struct npy *out, struct status *st)
{
    struct cursor found;
    if (!accept_string(c, &found))
        return status_set(st, STATUS_USAGE,
                          "the .npy array is of a structured type; expected bool or uint8");
    if (!is_printable(found))
        return refuse_header("'descr' to be a type such as '|b1'", st);
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        char big[] = {'>', types[t].descr[1], types[t].descr[2], '\0'};
        out->big_endian = types[t].descr[0] == '<' && is_text(found, big);
        if (!out->big_endian && !is_text(found, types[t].descr))
            continue;
        out->type = (enum npy_type)t;
        return 0;
    }
    return status_set(st, STATUS_USAGE, "the .npy array is of type '%.*s'; expected bool or uint8",
                      (int)(found.end - found.at), found.at);
}

static int parse_order(struct cursor *c, struct npy *out, struct status *st)
{
    out->fortran_order = accept(c, "True");
    if (!out->fortran_order && !accept(c, "False"))
        return refuse_header("'fortran_order' to be True or False", st);
    return 0;
}

static int parse_shape(struct cursor *c, struct npy *out, struct status *st)
{
    if (!accept(c, "("))
        return refuse_header("'shape' to be numbers in parentheses", st);
    bool more = true;
    while (!accept(c, ")")) {
        int64_t size;
        if (!more || !accept_number(c, &size))
            return refuse_header("'shape' to be numbers in parentheses", st);
        if (out->ndim == (int)ARRAY_LEN(out->shape))
            return status_set(st, STATUS_USAGE,
                              "the .npy array has more than 4 dimensions; expected at most 4");
        out->shape[out->ndim++] = size;
        more = accept(c, ",");
    }
    return 0;
}

static const struct {
    const char *name;
    int (*parse)(struct cursor *c, struct npy *out, struct status *st);
} fields[] = {{"descr", parse_type}, {"fortran_order", parse_order}, {"shape", parse_shape}};

/* "key: value"; a second value for a key is refused.  *seen: bit f for row f of fields[]. */
static int parse_field(struct cursor *c, unsigned *seen, struct npy *out, struct status *st)
{
    struct cursor key;
    if (!accept_string(c, &key) || !accept(c, ":"))
        return refuse_header("a dictionary of 'descr', 'fortran_order' and 'shape'", st);
    for (size_t f = 0; f < ARRAY_LEN(fields); f++) {
        if (!is_text(key, fields[f].name))
            continue;
        if ((*seen & 1u << f) != 0)
            break;
        *seen |= 1u << f;
        return fields[f].parse(c, out, st);
    }
    return refuse_header("'descr', 'fortran_order' and 'shape', each once", st);
}

static int parse_header(struct cursor c, struct npy *out, struct status *st)
{
    unsigned seen = 0;
    if (!accept(&c, "{"))
        return refuse_header("a dictionary", st);
    while (!accept(&c, "}")) {
        if (parse_field(&c, &seen, out, st) != 0)
            return -1;
        if (!accept(&c, ",") && (c.at == c.end || *c.at != '}'))
            return refuse_header("a comma or } after each entry", st);
    }
    skip_blanks(&c);
    if (seen != (1u << ARRAY_LEN(fields)) - 1 || c.at != c.end)
        return refuse_header("'descr', 'fortran_order' and 'shape', each once", st);
    return 0;
}

/* The data must be as long as type and shape say. */
static int check_data(const struct npy *a, size_t len, struct status *st)
{
    int64_t need = types[a->type].bytes;
    for (int d = 0; d < a->ndim; d++)
        if (__builtin_mul_overflow(need, a->shape[d], &need))
            return status_set(st, STATUS_USAGE,
                              "the .npy header asks for more bytes than any file holds");
    if ((uint64_t)need == len)
        return 0;
    return status_set(st, STATUS_USAGE,
                      "the .npy file %s: its shape and type take %lld bytes of data, found %zu; "
                      "copy it again, or write it again with numpy.save",
                      (uint64_t)need > len ? "is truncated" : "is too long", (long long)need, len);
}

int npy_parse(const void *bytes, size_t len, struct npy *out, struct status *st)
{
    const unsigned char *p = bytes;
    *out = (struct npy){.ndim = 0};
    if (len < PREFIX_LEN || memcmp(p, magic, MAGIC_LEN) != 0)
        return status_set(st, STATUS_USAGE,
                          "it is not a .npy file: it does not start with \\x93NUMPY and a version; "
                          "write it with numpy.save");
    unsigned major = p[MAGIC_LEN], minor = p[MAGIC_LEN + 1];
    if (major < 1 || major > 3 || minor != 0)
        return status_set(st, STATUS_USAGE,
                          "the .npy file has version %u.%u; expected 1.0, 2.0 or 3.0", major,
                          minor);

    size_t start = PREFIX_LEN + (major == 1 ? 2 : 4), header = 0;
    for (size_t i = PREFIX_LEN; i < start && i < len; i++)
        header |= (size_t)p[i] << 8 * (i - PREFIX_LEN);
    if (len < start || len - start < header)
        return status_set(st, STATUS_USAGE,
                          "the .npy file is truncated: its header takes %zu bytes, found %zu; copy "
                          "it again, or write it again with numpy.save",
                          start + header, len);

    const char *text = (const char *)p + start;
    if (parse_header((struct cursor){text, text + header}, out, st) != 0 ||
        check_data(out, len - start - header, st) != 0) {
        *out = (struct npy){.ndim = 0};
        return -1;
    }
    out->data = text + header;
    return 0;
}

int64_t npy_count(const struct npy *a)
{
    int64_t count = 1;
    for (int d = 0; d < a->ndim; d++)
        count *= a->shape[d];
    return count;
}

static double float16_value(uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double mantissa = (double)(bits & 1023), value = ldexp(mantissa, -24);
    if (exponent == 31)
        value = mantissa > 0 ? NAN : INFINITY;
    else if (exponent > 0)
        value = ldexp(1024 + mantissa, exponent - 25);
    return (bits >> 15 & 1) != 0 ? -value : value;
}

static double float32_value(uint64_t bits)
{
    float value;
    uint32_t half = (uint32_t)bits;
    memcpy(&value, &half, sizeof(value));
    return (double)value;
}

double npy_value(const struct npy *a, int64_t i)
{
    int bytes = types[a->type].bytes;
    const unsigned char *p = (const unsigned char *)a->data + i * bytes;
    uint64_t bits = 0;
    double value;
    for (int b = 0; b < bytes; b++)
        bits |= (uint64_t)p[a->big_endian ? bytes - 1 - b : b] << 8 * b;
    switch (a->type) {
    case NPY_INT8:
        return (int8_t)bits;
    case NPY_INT16:
        return (int16_t)bits;
    case NPY_INT32:
        return (int32_t)bits;
    case NPY_INT64:
        return (double)(int64_t)bits;
    case NPY_FLOAT16:
        return float16_value(bits);
    case NPY_FLOAT32:
        return float32_value(bits);
    case NPY_BFLOAT16:
        return float32_value(bits << 16);
    case NPY_FLOAT64:
        memcpy(&value, &bits, sizeof(value));
        return value;
    default:
        return (double)bits;
    }
}

void npy_write(enum npy_type type, int ndim, const int64_t *shape, const void *data,
               struct buf *out)
{
    SCOPED_BUF header = BUF_INIT;
    buf_addf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[type].descr);
    size_t count = 1;
    for (int d = 0; d < ndim; d++) {
        buf_addf(&header, d == 0 ? "%lld" : ", %lld", (long long)shape[d]);
        count *= (size_t)shape[d];
    }
    buf_adds(&header, ndim == 1 ? ",), }" : "), }");
    while ((PREFIX_LEN + 2 + header.len + 1) % ALIGNMENT != 0)
        buf_adds(&header, " ");
    buf_adds(&header, "\n");

    const char version_and_len[] = {1, 0, (char)(header.len & 255), (char)(header.len >> 8)};
    buf_add(out, magic, MAGIC_LEN);
    buf_add(out, version_and_len, sizeof(version_and_len));
    buf_add(out, header.ptr, header.len);
    buf_add(out, data, count * (size_t)types[type].bytes);
}
