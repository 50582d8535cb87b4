#include "base/base.h"
#include "tests/suite.h"

/* What numpy.save writes for numpy.array([[1,0,1],[0,1,0]], dtype=bool). */
static const char numpy_header[] =
    "\x93NUMPY\x01\x00\x76\x00{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), }"
    "                                                          \n";

TEST(writes_what_numpy_writes)
{
    static const uint8_t data[] = {1, 0, 1, 0, 1, 0};
    SCOPED_BUF bytes = BUF_INIT;
    npy_write(NPY_BOOL, 2, (const int64_t[]){2, 3}, data, &bytes);
    ck_assert_uint_eq(sizeof(numpy_header) - 1, 128);
    ck_assert_uint_eq(bytes.len, 128 + sizeof(data));
    ck_assert_mem_eq(bytes.ptr, numpy_header, 128);
    ck_assert_mem_eq(bytes.ptr + 128, data, sizeof(data));
}

/* A file of a version with this header and `data` bytes of zeros, in memory of its exact size. */
static struct buf file_of(int major, const char *header, size_t data)
{
    size_t len = strlen(header), prefix = major == 1 ? 10 : 12;
    struct buf b = {.ptr = mem_alloc(prefix + len + data, 1), .len = prefix + len + data};
    b.cap = b.len;
    memcpy(b.ptr, "\x93NUMPY", 6);
    b.ptr[6] = (char)major;
    b.ptr[8] = (char)(len & 255);
    b.ptr[9] = (char)(len >> 8);
    memcpy(b.ptr + prefix, header, len);
    return b;
}

static const struct {
    int major;
    const char *header;
    enum npy_type type;
    bool fortran;
    int64_t rows, columns;
} good[] = {
    {1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", NPY_UINT8, true, 2, 3},
    {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", NPY_FLOAT32, false, 2, 3},
    {3, "{'descr': '|b1', 'fortran_order': False, 'shape': (1, 6), }   \n", NPY_BOOL, false, 1, 6},
    {1, "{'shape':(3,2),'fortran_order':True,'descr':'|b1'}", NPY_BOOL, true, 3, 2},
    {1, " { \"descr\" : \"|b1\" , \"shape\" : ( 3 , 2 , ) , \"fortran_order\" : False } \n",
     NPY_BOOL, false, 3, 2}};

TEST_LOOP(reads_headers, 0, ARRAY_LEN(good))
{
    struct npy a;
    size_t data = good[_i].type == NPY_FLOAT32 ? 24 : 6;
    SCOPED_BUF bytes = file_of(good[_i].major, good[_i].header, data);
    OK(npy_parse(bytes.ptr, bytes.len, &a, &st));
    ck_assert_int_eq(a.type, good[_i].type);
    ck_assert_int_eq(a.fortran_order, good[_i].fortran);
    ck_assert_int_eq(a.ndim, 2);
    ck_assert_int_eq(a.shape[0], good[_i].rows);
    ck_assert_int_eq(a.shape[1], good[_i].columns);
    ck_assert_ptr_eq(a.data, bytes.ptr + bytes.len - data);
    SCOPED char *takes = buf_text("its header takes %zu bytes, found 30", bytes.len - data);
    FAILS(npy_parse(bytes.ptr, 30, &a, &st), STATUS_USAGE, takes);
}

#define HEADER(descr, order, shape)                                                                \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

static const struct {
    int major;
    const char *header;
    size_t data;
    const char *found; /* in the message */
} malformed[] = {
    {0, HEADER("'|b1'", "False", "(2, 3)"), 6, "version 0.0"},
    {1, HEADER("'|b1'", "False", "(2, 3)"), 5,
     "is truncated: its shape and type take 6 bytes of data, found 5; copy it again, or write"},
    {1, HEADER("'|b1'", "False", "(2, 3)"), 7, "is too long"},
    {1, HEADER("'<f4'", "False", "(2, 3)"), 6, "take 24 bytes of data, found 6"},
    {1, HEADER("'<c8'", "False", "(2, 3)"), 48, "of type '<c8'"},
    {1, HEADER("'>b1'", "False", "(2, 3)"), 6, "of type '>b1'"},
    {1, HEADER("'|b11'", "False", "(2, 3)"), 6, "of type '|b11'"},
    {1, HEADER("'\x1b[2J'", "False", "(2, 3)"), 6, "'descr' to be a type"},
    {1, HEADER("'.........................................'", "False", "(2, 3)"), 6,
     "'descr' to be"},
    {1, HEADER("[('a', '<f4')]", "False", "(2, 3)"), 24, "structured type"},
    {1, HEADER("'|b1'", "false", "(2, 3)"), 6, "'fortran_order' to be True or False"},
    {1, HEADER("'|b1'", "False", "[2, 3]"), 6, "numbers in parentheses"},
    {1, HEADER("'|b1'", "False", "(-2, 3)"), 6, "numbers in parentheses"},
    {1, HEADER("'|b1'", "False", "(2, 3"), 6, "damaged"},
    {1, HEADER("'|b1'", "False", "(9999999999999999999,)"), 6, "numbers in parentheses"},
    {1, HEADER("'|b1'", "False", "(1, 1, 1, 2, 3)"), 6, "at most 4"},
    {1, HEADER("'|b1'", "False", "(4294967296, 4294967296, 2)"), 6, "more bytes than any file"},
    {1, "", 6, "a dictionary"},
    {1, "{}", 6, "each once"},
    {1, "{'descr': '|b1', 'descr': '|b1', 'fortran_order': False, 'shape': (6,)}", 6, "each once"},
    {1, "{'descr': '|b1', 'color': 3, 'fortran_order': False, 'shape': (6,)}", 6, "each once"},
    {1, "{'descr': '|b1' 'fortran_order': False, 'shape': (6,)}", 6, "a comma or }"},
    {1, "{'descr': '|b1', 'fortran_order': False, 'shape': (6,)} x", 6, "each once"},
    {1, "{descr: '|b1', 'fortran_order': False, 'shape': (6,)}", 6, "a dictionary of"},
};

TEST_LOOP(refuses_malformed_files, 0, ARRAY_LEN(malformed))
{
    struct npy a;
    SCOPED_BUF bytes = file_of(malformed[_i].major, malformed[_i].header, malformed[_i].data);
    FAILS(npy_parse(bytes.ptr, bytes.len, &a, &st), STATUS_USAGE, malformed[_i].found);
    ck_assert_ptr_null(a.data);
}

/* The bytes of a number, in a file of one, and its value. */
static const struct {
    const char *descr, *bytes;
    size_t len;
    double value;
} numbers[] = {
    {"|b1", "\1", 1, 1},
    {"|i1", "\xff", 1, -1},
    {"|u1", "\xff", 1, 255},
    {"<u2", "\1\2", 2, 513},
    {">u2", "\1\2", 2, 258},
    {"<i2", "\xf0\xd8", 2, -10000},
    {"<u4", "\0\0\0\x80", 4, 2147483648},
    {">i4", "\xff\xff\xff\xfe", 4, -2},
    {"<u8", "\0\0\0\0\0\0\0\x80", 8, 0x1p63},
    {"<i8", "\xff\xff\xff\xff\xff\xff\xff\xff", 8, -1},
    {"<f2", "\xff\xfb", 2, -65504},
    {"<f2", "\0\xfc", 2, -INFINITY},
    {"<f2", "\1\0", 2, 0x1p-24},
    {">f4", "\xff\x7f\xff\xff", 4, -0x1.fffffep127},
    {"<f8", "\0\0\0\0\0\0\xf0\xff", 8, -INFINITY},
    {"<V2", "\x80\x3f", 2, 1},
};

TEST_LOOP(reads_numbers, 0, ARRAY_LEN(numbers))
{
    char header[80];
    struct npy a;
    snprintf(header, sizeof(header), HEADER("'%s'", "False", "(1,)"), numbers[_i].descr);
    SCOPED_BUF bytes = file_of(1, header, numbers[_i].len);
    memcpy(bytes.ptr + bytes.len - numbers[_i].len, numbers[_i].bytes, numbers[_i].len);
    OK(npy_parse(bytes.ptr, bytes.len, &a, &st));
    ck_assert_int_eq(npy_count(&a), 1);
    ck_assert_double_eq(npy_value(&a, 0), numbers[_i].value);
}

SUITE("npy", NULL, NULL)
