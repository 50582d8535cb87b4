#include "tests/masks.h"

#include <math.h>

/* ---- the definitions, told again one element at a time ----------------------------------------
 */

enum { ROOT = -1, QUARTER = -2 }; /* parameters that follow from S */

static bool is_full(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)i, (void)j, (void)s, (void)p;
    return true;
}

static bool is_causal(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s, (void)p;
    return j <= i;
}

static bool is_strided(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    int64_t t = p[0];
    return j <= i && ((i - j) % t == 0 || j > i - t);
}

static bool is_fixed(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    int64_t t = p[0];
    return j <= i && (j % t == t - 1 || j > i + j % t - t);
}

static bool is_sliding(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    return llabs(i - j) <= p[0];
}

static bool is_sliding_causal(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    return 0 <= i - j && i - j <= p[0];
}

static bool is_dilated(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    int64_t w = p[0], d = p[1];
    return (i - j) % d == 0 && llabs(i - j) <= w * d;
}

static bool is_longformer(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    int64_t g = p[0], w = p[1];
    return llabs(i - j) <= w || i < g || j < g;
}

static uint64_t mixed(uint64_t x)
{
    uint64_t z = x + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static bool is_bigbird(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    int64_t n = p[2], seed = p[3], row = i / 64;
    for (int64_t k = 0; k < n; k++) {
        uint64_t x = (uint64_t)seed * 4294967296u + (uint64_t)(row * n + k);
        if (mixed(x) % (uint64_t)((s + 63) / 64) == (uint64_t)(j / 64))
            return true;
    }
    return is_longformer(i, j, s, p);
}

static bool is_prefix(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    return j <= i || j < p[0];
}

static bool is_document(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    return i * p[0] / s == j * p[0] / s;
}

static const struct {
    const char *text;
    bool (*keep)(int64_t i, int64_t j, int64_t s, const int64_t *p);
    int64_t p[4];
} definitions[] = {
    {"full", is_full, {0}},
    {"causal", is_causal, {0}},
    {"strided", is_strided, {ROOT}},
    {"strided:t=1", is_strided, {1}},
    {"strided:t=5", is_strided, {5}},
    {"strided:t=64", is_strided, {64}},
    {"strided:t=2147483647", is_strided, {2147483647}},
    {"fixed", is_fixed, {ROOT}},
    {"fixed:t=1", is_fixed, {1}},
    {"fixed:t=7", is_fixed, {7}},
    {"fixed:t=128", is_fixed, {128}},
    {"fixed:t=2147483647", is_fixed, {2147483647}},
    {"sliding", is_sliding, {ROOT}},
    {"sliding:w=0", is_sliding, {0}},
    {"sliding:w=64", is_sliding, {64}},
    {"sliding:w=2147483647", is_sliding, {2147483647}},
    {"sliding_causal", is_sliding_causal, {ROOT}},
    {"sliding_causal:w=0", is_sliding_causal, {0}},
    {"sliding_causal:w=100", is_sliding_causal, {100}},
    {"dilated", is_dilated, {ROOT, 2}},
    {"dilated:d=3", is_dilated, {ROOT, 3}},
    {"dilated:w=0,d=1", is_dilated, {0, 1}},
    {"dilated:w=9,d=1", is_dilated, {9, 1}},
    {"dilated:w=2147483647,d=2147483647", is_dilated, {2147483647, 2147483647}},
    {"longformer", is_longformer, {ROOT, ROOT}},
    {"longformer:w=3,g=1", is_longformer, {1, 3}},
    {"longformer:g=0", is_longformer, {0, ROOT}},
    {"longformer:g=9999,w=0", is_longformer, {9999, 0}},
    {"bigbird", is_bigbird, {ROOT, ROOT, 1, 0}},
    {"bigbird:n=0", is_bigbird, {ROOT, ROOT, 0, 0}},
    {"bigbird:g=0,w=0,n=3,seed=7", is_bigbird, {0, 0, 3, 7}},
    {"bigbird:seed=4294967295,g=2", is_bigbird, {2, ROOT, 1, 4294967295}},
    {"prefix", is_prefix, {QUARTER}},
    {"prefix:p=0", is_prefix, {0}},
    {"prefix:p=90", is_prefix, {90}},
    {"prefix:p=2147483647", is_prefix, {2147483647}},
    {"document", is_document, {4}},
    {"document:n=1", is_document, {1}},
    {"document:n=7", is_document, {7}},
    {"document:n=2147483647", is_document, {2147483647}},
};

static const int seq_lens[] = {1, 2, 3, 7, 63, 64, 65, 100, 128, 333};

static void resolve(const int64_t *p, int s, int64_t out[4])
{
    for (int k = 0; k < 4; k++)
        out[k] = p[k] == ROOT ? (int64_t)floor(sqrt(s)) : p[k] == QUARTER ? s / 4 : p[k];
}

START_TEST(masks_are_as_defined)
{
    for (size_t n = 0; n < ARRAY_LEN(seq_lens); n++) {
        int s = seq_lens[n];
        int64_t p[4];
        resolve(definitions[_i].p, s, p);
        struct mask m = mask_of(definitions[_i].text, s);
        ck_assert_int_eq(m.matrices, 1);
        ck_assert_int_eq(m.empty_rows, 0);
        for (int i = 0; i < s; i++)
            for (int j = 0; j < s; j++)
                if (mask_keep(&m, 5, i, j) != definitions[_i].keep(i, j, s, p))
                    ck_abort_msg("%s at S=%d, i=%d, j=%d", definitions[_i].text, s, i, j);
        mask_release(&m);
    }
}
END_TEST

START_TEST(bits_past_the_sequence_are_0)
{
    for (int s = 1; s <= 130; s += 43)
        for (size_t n = 0; n < ARRAY_LEN(mask_names); n++) {
            struct mask m = mask_of(mask_names[n], s);
            int past = 0;
            for (int i = 0; i < s; i++)
                for (int j = s; j < m.row_words * 64; j++)
                    past += mask_keep(&m, 0, i, j);
            ck_assert_int_eq(past, 0);
            mask_release(&m);
        }
}
END_TEST

/* ---- texts ------------------------------------------------------------------------------------
 */

static const struct {
    const char *text, *normalised; /* at S=1023 */
} texts[] = {{"full", "full"},
             {"causal", "causal"},
             {"strided", "strided:t=31"},
             {"strided:t=32", "strided:t=32"},
             {"fixed", "fixed:t=31"},
             {"sliding:w=0", "sliding:w=0"},
             {"sliding_causal", "sliding_causal:w=31"},
             {"dilated:d=4", "dilated:w=31,d=4"},
             {"dilated:d=4,w=2", "dilated:w=2,d=4"},
             {"longformer:w=8", "longformer:g=31,w=8"},
             {"bigbird:seed=5", "bigbird:g=31,w=31,n=1,seed=5"},
             {"prefix", "prefix:p=255"},
             {"document", "document:n=4"}};

START_TEST(texts_are_normalised)
{
    struct buf once, twice;
    buf_init(&once);
    buf_init(&twice);
    struct mask_spec spec = mask_spec_of(texts[_i].text, 1023), again, copy;
    mask_text(&spec, &once);
    ck_assert_str_eq(once.ptr, texts[_i].normalised);
    again = mask_spec_of(once.ptr, 50);
    mask_spec_copy(&copy, &again);
    mask_text(&copy, &twice);
    ck_assert_str_eq(twice.ptr, once.ptr);
    mask_spec_release(&spec);
    mask_spec_release(&again);
    mask_spec_release(&copy);
    buf_release(&once);
    buf_release(&twice);
}
END_TEST

static const struct {
    const char *text, *found, *expected; /* fragments of the message */
} refused[] = {{"", "unknown mask ''", "full, causal, strided:t=N"},
               {"casual", "unknown mask 'casual'", "did you mean 'causal'"},
               {"slidng:w=3", "unknown mask 'slidng'", "did you mean 'sliding'"},
               {"Causal", "unknown mask 'Causal'", "did you mean 'causal'"},
               {"big_bird", "unknown mask 'big_bird'", "did you mean 'bigbird'"},
               {"flash", "unknown mask 'flash'", "file:PATH"},
               {"causal ", "unknown mask 'causal '", "did you mean 'causal'"},
               {"causal:t=3", "found 't'", "takes no parameters"},
               {"causal:", "''", "takes no parameters"},
               {"sliding:", "no parameter ''", "sliding:w=N"},
               {"sliding:64", "no parameter '64'", "sliding:w=N"},
               {"sliding:t=3", "no parameter 't'", "sliding:w=N"},
               {"sliding:W=3", "no parameter 'W'", "sliding:w=N"},
               {"sliding:w=3,", "no parameter ''", "sliding:w=N"},
               {"sliding:w=", "w: ''", "whole number"},
               {"sliding:w=x", "w: 'x'", "whole number"},
               {"sliding:w=1.5", "w: '1.5'", "whole number"},
               {"sliding:w=03", "w: '03'", "whole number"},
               {"sliding:w=3:w=4", "w: '3:w=4'", "whole number"},
               {"sliding:w=-1", "w: -1 is out of range", "0 to 2147483647"},
               {"sliding:w=2147483648", "w: 2147483648 is out of range", "0 to 2147483647"},
               {"sliding:w=99999999999999999999", "out of range", "0 to 2147483647"},
               {"sliding:w=3,w=3", "'w' is given twice", "sliding"},
               {"longformer:g=1,w=2,g=3", "'g' is given twice", "longformer"},
               {"strided:t=0", "t: 0 is out of range", "1 to"},
               {"fixed:t=-4", "t: -4 is out of range", "1 to"},
               {"dilated:d=0", "d: 0 is out of range", "1 to"},
               {"document:n=0", "n: 0 is out of range", "1 to"},
               {"bigbird:n=1025", "n: 1025 is out of range", "0 to 1024"},
               {"bigbird:seed=4294967296", "seed: 4294967296 is out of range", "0 to 4294967295"},
               {"file", "names no file", "file:PATH"},
               {"file:", "names no file", "file:PATH"}};

START_TEST(refuses_texts)
{
    struct status st = STATUS_INIT;
    struct mask_spec spec;
    ck_assert_int_eq(mask_parse(refused[_i].text, &spec, &st), -1);
    ck_assert_int_eq(st.code, STATUS_USAGE);
    ck_assert_msg(strstr(st.message, refused[_i].found) != NULL, "%s", st.message);
    ck_assert_msg(strstr(st.message, refused[_i].expected) != NULL, "%s", st.message);
    ck_assert_ptr_null(spec.kind);
    ck_assert_ptr_null(spec.path);
}
END_TEST

START_TEST(refuses_sequence_lengths)
{
    static const int bad[] = {0, -1, SEQ_LEN_MAX + 1, INT32_MAX};
    for (size_t n = 0; n < ARRAY_LEN(bad); n++) {
        struct status st = STATUS_INIT;
        struct mask_spec spec;
        ck_assert_int_eq(mask_parse("strided", &spec, &st), 0);
        ck_assert_int_eq(mask_resolve(&spec, bad[n], &st), -1);
        ck_assert_int_eq(st.code, STATUS_USAGE);
        mask_spec_release(&spec);
    }
}
END_TEST

START_TEST(every_kind_says_how_to_write_it)
{
    for (int k = 0; k < mask_kind_count(); k++) {
        const char *name, *usage, *summary;
        mask_kind_info(k, &name, &usage, &summary);
        ck_assert_uint_gt(strlen(summary), 0);
        ck_assert_int_eq(strncmp(usage, name, strlen(name)), 0);

        char text[64]; /* the usage with a number for each N is accepted */
        ck_assert_uint_lt(strlen(usage), sizeof(text));
        strcpy(text, usage);
        for (char *n = text; (n = strstr(n, "=N")) != NULL;)
            n[1] = '3';
        struct status st = STATUS_INIT;
        struct mask_spec spec;
        ck_assert_msg(mask_parse(text, &spec, &st) == 0, "%s", st.message);
        mask_spec_release(&spec);
    }
}
END_TEST

/* ---- masks from files -------------------------------------------------------------------------
 */

enum { S = 70, B = 3 };

/* A made-up mask of B matrices; row 69 of matrix 1 and row 3 of all keep nothing. */
static bool filed(int b, int i, int j)
{
    return i != 3 && !(b == 1 && i == 69) && mixed((uint64_t)((b * S + i) * S + j)) % 3 == 0;
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
    struct buf bytes;
    buf_init(&bytes);
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
    struct status st = STATUS_INIT;
    struct buf npy =
        npy_of(files[n].type, files[n].one, files[n].ndim, files[n].matrices, files[n].fortran);
    *spec = mask_spec_of("file:some/where,else:w=1.npy", S);
    ck_assert_str_eq(spec->path, "some/where,else:w=1.npy");
    int batch = files[n].ndim == 3 ? files[n].matrices : B;
    ck_assert_msg(mask_build(spec, batch, S, &npy, m, &st) == 0, "%s", st.message);
    buf_release(&npy);
}

START_TEST(files_hold_masks)
{
    struct mask_spec spec;
    struct mask m;
    build_file(_i, &spec, &m);
    int matrices = files[_i].matrices, wrong = 0;
    ck_assert_int_eq(m.matrices, matrices);
    ck_assert_int_eq(m.empty_rows, matrices + (matrices > 1));
    for (int b = 0; b < B; b++)
        for (int i = 0; i < S; i++)
            for (int j = 0; j < S; j++)
                wrong += mask_keep(&m, b, i, j) != filed(matrices == 1 ? 0 : b, i, j);
    ck_assert_int_eq(wrong, 0);
    mask_release(&m);
    mask_spec_release(&spec);
}
END_TEST

START_TEST(hashes_are_of_shape_and_kept_bits)
{
    char first[2][HASH_TEXT_SIZE] = {"", ""}; /* of one matrix, of B */
    for (size_t n = 0; n < ARRAY_LEN(files); n++) {
        struct mask_spec spec;
        struct mask m;
        build_file((int)n, &spec, &m);
        char *expected = first[files[n].matrices > 1];
        if (expected[0] == '\0')
            strcpy(expected, spec.content_hash);
        ck_assert_str_eq(spec.content_hash, expected);
        struct buf text;
        buf_init(&text);
        mask_text(&spec, &text);
        ck_assert_str_eq(text.ptr + strlen("file:"), expected);
        buf_release(&text);
        mask_release(&m);
        mask_spec_release(&spec);
    }
    ck_assert_str_ne(first[0], first[1]);
}
END_TEST

static void hash_of(int ndim, const int64_t *shape, const uint8_t *data, char out[HASH_TEXT_SIZE])
{
    struct status st = STATUS_INIT;
    struct buf npy;
    struct mask m;
    int batch = (int)shape[0], seq_len = (int)shape[ndim - 1];
    buf_init(&npy);
    npy_write(NPY_BOOL, ndim, shape, data, &npy);
    struct mask_spec spec = mask_spec_of("file:x", seq_len);
    ck_assert_int_eq(mask_build(&spec, batch, seq_len, &npy, &m, &st), 0);
    strcpy(out, spec.content_hash);
    mask_release(&m);
    mask_spec_release(&spec);
    buf_release(&npy);
}

START_TEST(hashes_differ_where_masks_do)
{
    static const uint8_t left[] = {1, 0, 1, 0}, corner[] = {1, 0, 1, 1}, ones[] = {1, 1};
    char a[HASH_TEXT_SIZE], b[HASH_TEXT_SIZE], c[HASH_TEXT_SIZE];
    hash_of(2, (const int64_t[]){2, 2}, left, a);
    hash_of(2, (const int64_t[]){2, 2}, corner, b);
    hash_of(3, (const int64_t[]){2, 1, 1}, ones, c); /* its rows have the same words as left's */
    ck_assert_str_ne(a, b);
    ck_assert_str_ne(a, c);
}
END_TEST

static const struct {
    enum npy_type type;
    int ndim, batch;
    int64_t shape[4];
    const char *found, *expected;
} bad_files[] = {
    {NPY_BOOL, 2, 2, {8, 9}, "shape (8,9)", "(8,8) or (2,8,8)"},
    {NPY_BOOL, 2, 2, {7, 8}, "shape (7,8)", "(8,8) or (2,8,8)"},
    {NPY_BOOL, 1, 2, {64}, "shape (64)", "(8,8) or (2,8,8)"},
    {NPY_BOOL, 0, 2, {0}, "shape ()", "(8,8) or (2,8,8)"},
    {NPY_BOOL, 2, 2, {0, 0}, "shape (0,0)", "(8,8) or (2,8,8)"},
    {NPY_UINT8, 3, 2, {1, 8, 8}, "shape (1,8,8)", "(8,8) or (2,8,8)"},
    {NPY_UINT8, 3, 2, {3, 8, 8}, "shape (3,8,8)", "(8,8) or (2,8,8)"},
    {NPY_UINT8, 4, 2, {2, 1, 8, 8}, "shape (2,1,8,8)", "(8,8) or (2,8,8)"},
    {NPY_FLOAT32, 2, 2, {8, 8}, "holds float32", "expected bool or uint8"},
};

START_TEST(refuses_files)
{
    static const float zeros[3 * 64];
    struct status st = STATUS_INIT;
    struct buf npy;
    buf_init(&npy);
    npy_write(bad_files[_i].type, bad_files[_i].ndim, bad_files[_i].shape, zeros, &npy);
    struct mask_spec spec = mask_spec_of("file:dir/m.npy", 8);
    struct mask m;
    ck_assert_int_eq(mask_build(&spec, bad_files[_i].batch, 8, &npy, &m, &st), -1);
    ck_assert_int_eq(st.code, STATUS_USAGE);
    ck_assert_ptr_nonnull(strstr(st.message, "mask file 'dir/m.npy': "));
    ck_assert_msg(strstr(st.message, bad_files[_i].found) != NULL, "%s", st.message);
    ck_assert_msg(strstr(st.message, bad_files[_i].expected) != NULL, "%s", st.message);
    ck_assert_ptr_null(m.bits);
    mask_spec_release(&spec);
    buf_release(&npy);
}
END_TEST

START_TEST(refuses_truncated_files)
{
    struct buf npy = npy_of(NPY_BOOL, 1, 2, 1, false);
    struct mask_spec spec = mask_spec_of("file:m.npy", S);
    for (size_t len = 0; len < npy.len; len += len < 160 ? 1 : 97) {
        struct status st = STATUS_INIT;
        struct mask m;
        char *cut = mem_alloc(len, 1); /* of its exact size, so that reading past it is seen */
        memcpy(cut, npy.ptr, len);
        struct buf bytes = {.ptr = cut, .len = len};
        ck_assert_int_eq(mask_build(&spec, 1, S, &bytes, &m, &st), -1);
        ck_assert_int_eq(st.code, STATUS_USAGE);
        free(cut);
    }
    mask_spec_release(&spec);
    buf_release(&npy);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mask");
    TCase *t = tcase_create("mask");
    tcase_add_loop_test(t, masks_are_as_defined, 0, ARRAY_LEN(definitions));
    tcase_add_test(t, bits_past_the_sequence_are_0);
    tcase_add_loop_test(t, texts_are_normalised, 0, ARRAY_LEN(texts));
    tcase_add_loop_test(t, refuses_texts, 0, ARRAY_LEN(refused));
    tcase_add_test(t, refuses_sequence_lengths);
    tcase_add_test(t, every_kind_says_how_to_write_it);
    tcase_add_loop_test(t, files_hold_masks, 0, ARRAY_LEN(files));
    tcase_add_test(t, hashes_are_of_shape_and_kept_bits);
    tcase_add_test(t, hashes_differ_where_masks_do);
    tcase_add_loop_test(t, refuses_files, 0, ARRAY_LEN(bad_files));
    tcase_add_test(t, refuses_truncated_files);
    suite_add_tcase(s, t);
    return suite_run(s);
}
