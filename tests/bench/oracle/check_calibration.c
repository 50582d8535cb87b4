/* Files of fuseplan.calibrate() and of fuseplan.write_rows(). */
#include "bench/trained/trained.h"
#include "tests/suite.h"

static struct calibration c;

#define TENSOR(amax, scale)                                                                        \
    "{\"amax\": " amax ", \"quantile\": 1.5, \"rms\": 0.25, \"scale\": " scale "}"
#define GOOD TENSOR("1.75", "0.0078125")
#define LAYER(x)                                                                                   \
    "{\"x\": " x ", \"context\": " GOOD ", \"norm1\": " GOOD ", \"activation\": " GOOD "}"
#define FILE_OF(list) "{\"version\": 2, \"model\": \"0123456789abcdef\", \"layers\": [" list "]}"

static int read_as(enum dtype dtype, const char *text)
{
    const char *path = test_path("calibration.json");
    write_text(path, text);
    calibration_release(&c);
    return calibration_read(path, dtype, &c, &st);
}

static int read_text(const char *text)
{
    return read_as(DTYPE_FP16, text);
}

TEST(scales_are_read)
{
    OK(read_text(FILE_OF(LAYER(TENSOR("224", "1")) "," LAYER(TENSOR("0", "1")))));
    ck_assert_int_eq(c.layers, 2);
    ck_assert_str_eq(c.model, "0123456789abcdef");
    ck_assert_float_eq(c.scale[0][GEMM_QKV], 1);
    ck_assert_float_eq(c.scale[1][GEMM_FFN2], 0x1p-7f);
    calibration_release(&c);
}

/* A plan in bf16 has another fingerprint of the weights, and larger numbers. */
TEST(scales_are_read_for_bf16)
{
    const char *text =
        "{\"version\": 2, \"model\": \"0123456789abcdef\", \"model_bf16\": "
        "\"89abcdef01234567\", \"layers\": [" LAYER(TENSOR("1835008.0", "8192")) "]}";
    OK(read_as(DTYPE_BF16, text));
    ck_assert_str_eq(c.model, "89abcdef01234567");
    ck_assert_float_eq(c.scale[0][GEMM_QKV], 8192);
    FAILS(read_text(text), STATUS_USAGE, "its amax is 1.83501e+06; expected a number of fp16");
    FAILS(read_as(DTYPE_BF16, FILE_OF(LAYER(GOOD))), STATUS_USAGE,
          "no text 'model_bf16' or no list 'layers' with something in it, as fuseplan.calibrate() "
          "writes for models in bf16");
    calibration_release(&c);
}

static const struct {
    const char *text, *error;
} wrong[] = {
    {"[]", "it is not a JSON object"},
    {"{", "it is not a JSON object: "},
    {"{\"model\": \"0\", \"layers\": [1]}", "no 'version' of 2"},
    {"{\"version\": 1, \"model\": \"0\", \"layers\": [1]}", "no 'version' of 2"},
    {"{\"version\": 2, \"layers\": [1]}", "no text 'model' or no list 'layers'"},
    {"{\"version\": 2, \"model\": \"0123456789abcdeF\", \"layers\": [1]}",
     "its 'model' is '0123456789abcdeF'; expected 16 hexadecimal digits"},
    {FILE_OF(""), "no text 'model' or no list 'layers'"},
    {FILE_OF("1"), "layer 0: 'x' has not the numbers 'amax' and 'scale': Expected object"},
    {FILE_OF(LAYER(GOOD) ",{\"x\": " GOOD ", \"norm1\": " GOOD "}"),
     "layer 1: 'context' has not the numbers 'amax' and 'scale': Object item not found: context"},
    {FILE_OF(LAYER("7")), "layer 0: 'x' has not the numbers 'amax' and 'scale': Expected object"},
    {FILE_OF(LAYER(TENSOR("\"1\"", "1"))), "'amax' and 'scale': Expected real"},
    {FILE_OF(LAYER(TENSOR("-1", "1"))), "layer 0: 'x': its amax is -1; expected a number of fp16"},
    {FILE_OF(LAYER(TENSOR("65536", "512"))), "its amax is 65536; expected a number of fp16"},
    {FILE_OF(LAYER(TENSOR("336", "3"))), "its scale is 3; expected the least power of two"},
    {FILE_OF(LAYER(TENSOR("1", "0"))), "its scale is 0; expected the least power of two"},
    {FILE_OF(LAYER(TENSOR("225", "1"))), "by which its amax of 225 becomes 224 or less"},
    {FILE_OF(LAYER(TENSOR("112", "1"))), "its scale is 1; expected the least power of two"},
    {FILE_OF(LAYER(TENSOR("0", "2"))), "its scale is 2; expected the least power of two"},
    {FILE_OF(LAYER(TENSOR("0.00341796875", "0.0000152587890625"))), "at least 2^-15: 3.05176e-05"},
};

TEST_LOOP(wrong_files_are_refused, 0, ARRAY_LEN(wrong))
{
    FAILS(read_text(wrong[_i].text), STATUS_USAGE, wrong[_i].error);
    ck_assert_ptr_nonnull(strstr(st.message, "--calibration: '"));
    calibration_release(&c);
}

TEST(a_missing_file_is_refused)
{
    FAILS(calibration_read(test_path("none"), DTYPE_FP16, &c, &st), STATUS_ENVIRONMENT,
          "--calibration: ");
    calibration_release(&c);
}

/* ---- rows of sentences ----------------------------------------------------------------------- */

/* Rows of two columns, and lengths. */
static int read_rows(struct sentences *out, const char *names, const float *rows, int tokens,
                     const int *lengths, int count)
{
    SCOPED_BUF header = BUF_INIT, whole = BUF_INIT;
    int data = tokens * 2 * (int)sizeof(float);
    buf_addf(&header,
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[%d,2],\"data_offsets\":[0,%d]},"
             "\"lengths\":{\"dtype\":\"I32\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}",
             names, tokens, data, count, data, data + 4 * count);
    uint64_t len = header.len;
    buf_add(&whole, &len, sizeof(len));
    buf_add(&whole, header.ptr, header.len);
    buf_add(&whole, rows, (size_t)data);
    buf_add(&whole, lengths, 4 * (size_t)count);
    const char *path = test_path("rows.safetensors");
    OK(file_write(path, whole.ptr, whole.len, &st));
    return sentences_read(path, out, &st);
}

TEST(rows_are_read)
{
    const float rows[] = {1, 2, 3, 4, 5, 6};
    SCOPED_BY(sentences_release) struct sentences s;
    OK(read_rows(&s, "rows", rows, 3, (const int[]){1, 2}, 2));
    ck_assert(s.count == 2 && s.columns == 2 && s.longest == 2 && s.tokens == 3);
    ck_assert(s.lengths[0] == 1 && s.lengths[1] == 2);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(s.rows[i], rows[i]);
}

TEST(wrong_rows_are_refused)
{
    const float rows[] = {1, 2, 3, 4}, no_number[] = {1, 2, NAN, 4};
    struct sentences s;
    FAILS(read_rows(&s, "x", rows, 2, (const int[]){2}, 1), STATUS_USAGE, "it has not the two");
    sentences_release(&s);
    FAILS(read_rows(&s, "rows", rows, 2, (const int[]){1, 2}, 2), STATUS_USAGE, "whose sum is");
    sentences_release(&s);
    FAILS(read_rows(&s, "rows", rows, 2, (const int[]){0, 2}, 2), STATUS_USAGE, "1 or more");
    sentences_release(&s);
    FAILS(read_rows(&s, "rows", rows, 0, (const int[]){0}, 0), STATUS_USAGE, "no sentences");
    sentences_release(&s);
    FAILS(read_rows(&s, "rows", no_number, 2, (const int[]){2}, 1), STATUS_USAGE, "a NaN");
    sentences_release(&s);
    FAILS(sentences_read(test_path("none"), &s, &st), STATUS_USAGE, "--input: cannot read '");
    sentences_release(&s);
}

SUITE("calibration", test_dir_setup, test_dir_teardown)
