#include "tests/masks.h"

enum { S = 70, B = 3 };

/* A made-up mask of B matrices; row 69 of matrix 1 and row 3 of all keep nothing. */
static bool filed(int b, int i, int j)
{
    return i != 3 && !(b == 1 && i == 69) &&
           splitmix64((uint64_t)(b * S + i) * S + (uint64_t)j) % 3 == 0;
}

/* The bytes of a .npy file with `matrices` of them, the kept elements as `one`; C or Fortran order.
 * ndim 2 leaves the leading 1 out. */
static struct buf npy_of(enum npy_type type, uint8_t one, int ndim, int matrices, bool fortran)
{
    static uint8_t data[B * S * S];
    for (int b = 0; b < matrices; b++)
        for (int i = 0; i < S; i++)
            for (int j = 0; j < S; j++)
                data[fortran ? b + matrices * (i + S * j) : (b * S + i) * S + j] =
                    filed(b, i, j) ? one : 0;
    struct buf bytes = BUF_INIT;
    npy_write(type, ndim, (const int64_t[]){matrices, S, S} + (3 - ndim), data, &bytes);
    if (fortran)
        memcpy(strstr(bytes.ptr + 10, "False"), "True ", 5);
    return bytes;
}

static const struct {
    enum npy_type type;
    uint8_t one;
    int ndim, matrices;
    bool fortran;
} files[] = {{NPY_BOOL, 1, 2, 1, false},   {NPY_BOOL, 1, 2, 1, true},   {NPY_UINT8, 1, 2, 1, false},
             {NPY_UINT8, 255, 2, 1, true}, {NPY_BOOL, 1, 3, 1, false},  {NPY_BOOL, 1, 3, B, false},
             {NPY_BOOL, 1, 3, B, true},    {NPY_UINT8, 2, 3, B, false}, {NPY_UINT8, 7, 3, B, true}};

static void build_file(int n, struct mask_spec *spec, struct mask *m)
{
    SCOPED_BUF npy =
        npy_of(files[n].type, files[n].one, files[n].ndim, files[n].matrices, files[n].fortran);
    *spec = mask_spec_of("file:some/where,else:w=1.npy", S);
    ck_assert_str_eq(spec->path, "some/where,else:w=1.npy");
    int batch = files[n].ndim == 3 ? files[n].matrices : B;
    OK(mask_build(spec, batch, S, &npy, m, &st));
}

/* A hash is of the shape and the kept bits alone: however a file holds them. */
TEST_LOOP(files_hold_masks, 0, ARRAY_LEN(files))
{
    SCOPED_BY(mask_spec_release) struct mask_spec spec, first_spec;
    SCOPED_BY(mask_release) struct mask m, first;
    build_file(_i, &spec, &m);
    int matrices = files[_i].matrices, wrong = 0;
    build_file(matrices > 1 ? 5 : 0, &first_spec, &first);
    ck_assert_str_eq(spec.content_hash, first_spec.content_hash);
    ck_assert_int_eq(m.matrices, matrices);
    ck_assert_int_eq(m.empty_rows, matrices + (matrices > 1));
    for (int b = 0; b < B; b++)
        for (int i = 0; i < S; i++)
            for (int j = 0; j < S; j++)
                wrong += mask_keep(&m, b, i, j) != filed(matrices == 1 ? 0 : b, i, j);
    ck_assert_int_eq(wrong, 0);
}

static void hash_of(int ndim, const int64_t *shape, const uint8_t *data, char out[HASH_TEXT_SIZE])
{
    SCOPED_BUF npy = BUF_INIT;
    SCOPED_BY(mask_release) struct mask m;
    int batch = (int)shape[0], seq_len = (int)shape[ndim - 1];
    npy_write(NPY_BOOL, ndim, shape, data, &npy);
    SCOPED_BY(mask_spec_release) struct mask_spec spec = mask_spec_of("file:x", seq_len);
    OK(mask_build(&spec, batch, seq_len, &npy, &m, &st));
    strcpy(out, spec.content_hash);
}

TEST(hashes_differ_where_masks_do)
{
    static const uint8_t left[] = {1, 0, 1, 0}, corner[] = {1, 0, 1, 1}, ones[] = {1, 1};
    char a[HASH_TEXT_SIZE], b[HASH_TEXT_SIZE], c[HASH_TEXT_SIZE];
    hash_of(2, (const int64_t[]){2, 2}, left, a);
    hash_of(2, (const int64_t[]){2, 2}, corner, b);
    hash_of(3, (const int64_t[]){2, 1, 1}, ones, c); /* its rows have the same words as left's */
    ck_assert_str_ne(a, b);
    ck_assert_str_ne(a, c);
}

static const struct {
    int ndim;
    int64_t shape[4];
    const char *found, *expected;
} bad_shapes[] = {
    {2, {8, 9}, "shape (8,9), expected (8,8) or (2,8,8)", NULL},
    {2, {7, 7}, "shape (7,7)", ": give -s 7"},
    {1, {8}, "shape (8)", "--lengths, or take numpy.broadcast_to(mask.reshape(-1,1,8), (2,8,8))"},
    {4, {2, 1, 1, 8}, "shape (2,1,1,8)", ": it masks keys alone"},
    {2, {0, 0}, "shape (0,0)", NULL},
    {3, {1, 8, 8}, "shape (1,8,8)", ": take mask[0]"},
    {3, {3, 8, 8}, "shape (3,8,8)", ": give -b 3"},
    {4, {2, 1, 8, 8}, "shape (2,1,8,8)", ": take mask[:, 0]"},
    {4, {2, 3, 8, 8}, "shape (2,3,8,8)", ": take mask[:, 0], one mask for all heads, if they"},
    {4, {3, 1, 8, 8}, "shape (3,1,8,8), expected", NULL},
};

/* The array is refused as a mask of (2,8); says: in the message; null: it ends with the shapes. */
static void refuse_array(enum npy_type type, int ndim, const int64_t *shape, const void *data,
                         const char *found, const char *says)
{
    SCOPED_BUF npy = BUF_INIT;
    SCOPED_BY(mask_spec_release) struct mask_spec spec = mask_spec_of("file:dir/m.npy", 8);
    struct mask m;
    npy_write(type, ndim, shape, data, &npy);
    FAILS(mask_build(&spec, 2, 8, &npy, &m, &st), STATUS_USAGE,
          "attention mask file 'dir/m.npy': ");
    const char *end = strstr(st.message, "(2,8,8)");
    ck_assert_msg(strstr(st.message, found) != NULL, "%s", st.message);
    ck_assert_msg(says != NULL ? strstr(st.message, says) != NULL : strcmp(end, "(2,8,8)") == 0,
                  "%s", st.message);
    ck_assert_ptr_null(m.bits);
}

TEST_LOOP(refuses_shapes, 0, ARRAY_LEN(bad_shapes))
{
    static const uint8_t zeros[3 * 64 * 2];
    refuse_array(NPY_BOOL, bad_shapes[_i].ndim, bad_shapes[_i].shape, zeros, bad_shapes[_i].found,
                 bad_shapes[_i].expected);
}

/* Arrays of (8,8) whose elements are in turn these two.  What makes masks of them differs: the
 * wrong advice keeps what should be dropped. */
static const struct {
    enum npy_type type;
    double even, odd;
    const char *says;
} bad_values[] = {
    {NPY_FLOAT32, 0, 1,
     "holds float32, expected bool or uint8; it is 1 where a key is kept: convert it with "
     "mask.astype(bool)"},
    {NPY_FLOAT32, 0, -INFINITY,
     "it is an additive mask, 0 where a key is kept: convert it with mask == 0"},
    {NPY_FLOAT32, -65504, 0, "with mask == 0"},
    {NPY_INT64, 0, -10000, "with mask == 0"},
    {NPY_FLOAT32, 0, 0, "all of it is 0"},
    {NPY_FLOAT32, 1, -65504, "it has both 1 and numbers far below 0"},
    {NPY_FLOAT32, 0, -0.5, "it has -0.5, and a mask has 0 and 1"},
    {NPY_FLOAT32, 1, NAN, "it has nan"},
};

TEST_LOOP(says_what_makes_a_mask_of_values, 0, ARRAY_LEN(bad_values))
{
    float floats[64];
    int64_t ints[64];
    bool integers = bad_values[_i].type == NPY_INT64;
    for (int i = 0; i < 64; i++) {
        double value = i % 2 == 0 ? bad_values[_i].even : bad_values[_i].odd;
        floats[i] = (float)value;
        ints[i] = integers ? (int64_t)value : 0;
    }
    const void *data = integers ? (const void *)ints : floats;
    refuse_array(bad_values[_i].type, 2, (const int64_t[]){8, 8}, data, bad_values[_i].says, "");
    refuse_array(bad_values[_i].type, 4, (const int64_t[]){1, 1, 8, 8}, data, bad_values[_i].says,
                 ": take mask[0, 0]");
}

SUITE("mask_bits", NULL, NULL)
