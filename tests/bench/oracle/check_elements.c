#include "bench/oracle/oracle.h"
#include "tests/suite.h"

static float unpacked(enum dtype dtype, uint16_t bits)
{
    float value;
    elements_unpack(dtype, &bits, 1, &value);
    return value;
}

static uint16_t packed(enum dtype dtype, float value)
{
    uint16_t bits;
    elements_pack(dtype, &value, 1, &bits);
    return bits;
}

/* What sign, exponent and fraction stand for, by their definition. */
static double meaning(uint16_t bits, int fraction_bits, int bias)
{
    int fraction = bits & ((1 << fraction_bits) - 1);
    int exponent = (bits & 0x7fff) >> fraction_bits;
    double value = exponent == 0
                       ? ldexp(fraction, 1 - bias - fraction_bits)
                       : ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
    return (bits & 0x8000) != 0 ? -value : value;
}

static const struct {
    enum dtype dtype;
    int fraction_bits, bias;
    uint16_t infinite;
} types[] = {{DTYPE_FP16, 10, 15, 0x7c00}, {DTYPE_BF16, 7, 127, 0x7f80}};

TEST_LOOP(every_pattern_is_read_and_written, 0, ARRAY_LEN(types))
{
    for (int i = 0; i <= 0xffff; i++) {
        uint16_t bits = (uint16_t)i, rest = bits & 0x7fff;
        float value = unpacked(types[_i].dtype, bits);
        if (rest > types[_i].infinite) {
            ck_assert(isnan(value));
            ck_assert_uint_gt(packed(types[_i].dtype, value) & 0x7fff, types[_i].infinite);
            continue;
        }
        if (rest == types[_i].infinite)
            ck_assert(isinf(value) && (signbit(value) != 0) == (bits >> 15 != 0));
        else
            ck_assert(value == (float)meaning(bits, types[_i].fraction_bits, types[_i].bias));
        ck_assert_uint_eq(packed(types[_i].dtype, value), bits);
        ck_assert(element_round(types[_i].dtype, value) == value);
    }
}

/* Halfway between neighbours goes to the even one, a little off it to the nearer one. */
TEST_LOOP(every_midpoint_goes_to_even, 0, ARRAY_LEN(types))
{
    enum dtype dtype = types[_i].dtype;
    for (uint16_t low = 0; low < types[_i].infinite - 1; low++) {
        uint16_t high = low + 1, even = low % 2 == 0 ? low : high;
        double middle = (meaning(low, types[_i].fraction_bits, types[_i].bias) +
                         meaning(high, types[_i].fraction_bits, types[_i].bias)) /
                        2;
        float at = (float)middle;
        ck_assert(at == middle);
        ck_assert_uint_eq(packed(dtype, at), even);
        ck_assert_uint_eq(packed(dtype, -at), even | 0x8000);
        ck_assert_uint_eq(packed(dtype, nextafterf(at, 0)), low);
        ck_assert_uint_eq(packed(dtype, nextafterf(at, INFINITY)), high);
    }
}

/* By vectors, by threads and what is left over. */
TEST_LOOP(many_are_as_one, 0, ARRAY_LEN(types))
{
    enum { COUNT = (1 << 18) + 5 };
    enum dtype dtype = types[_i].dtype;
    SCOPED float *values = mem_alloc(COUNT, sizeof(*values));
    SCOPED float *back = mem_alloc(COUNT, sizeof(*back));
    SCOPED uint16_t *bits = mem_alloc(COUNT, sizeof(*bits));
    for (uint64_t i = 0; i < COUNT; i++) {
        uint32_t drawn = (uint32_t)splitmix64(i);
        memcpy(&values[i], &drawn, sizeof(drawn));
        if (i % 2 == 0) /* few others are in the range of fp16 */
            values[i] = ldexpf((float)(drawn & 0x7fff) / 0x4000 - 1, (int)(drawn >> 16) % 48 - 28);
    }
    elements_pack(dtype, values, COUNT, bits);
    elements_unpack(dtype, bits, COUNT, back);
    for (int i = 0; i < COUNT; i++) {
        const float one = unpacked(dtype, bits[i]);
        ck_assert_uint_eq(bits[i], packed(dtype, values[i]));
        ck_assert_mem_eq(&back[i], &one, sizeof(one));
    }
    elements_round(dtype, values, COUNT, values);
    ck_assert_mem_eq(values, back, COUNT * sizeof(*values));
}

/* All patterns, and the ties between neighbours with what is next to them. */
TEST_LOOP(all_at_once_are_as_one, 0, ARRAY_LEN(types))
{
    enum { PATTERNS = 1 << 16 };
    enum dtype dtype = types[_i].dtype;
    SCOPED uint16_t *bits = mem_alloc(3 * PATTERNS, sizeof(*bits));
    SCOPED float *values = mem_alloc(3 * PATTERNS, sizeof(*values));
    for (int i = 0; i < PATTERNS; i++)
        bits[i] = (uint16_t)i;
    elements_unpack(dtype, bits, PATTERNS, values);
    for (int i = 0; i < PATTERNS; i++) {
        const float one = unpacked(dtype, bits[i]);
        ck_assert_mem_eq(&values[i], &one, sizeof(one));
    }
    for (int i = PATTERNS - 2; i >= 0; i--) {
        const float tie = (values[i] + values[i + 1]) / 2;
        values[3 * i] = nextafterf(tie, -INFINITY);
        values[3 * i + 1] = tie;
        values[3 * i + 2] = nextafterf(tie, INFINITY);
    }
    elements_pack(dtype, values, 3 * PATTERNS, bits);
    for (int i = 0; i < 3 * PATTERNS; i++)
        ck_assert_uint_eq(bits[i], packed(dtype, values[i]));
}

TEST(too_large_is_infinite)
{
    ck_assert_uint_eq(packed(DTYPE_FP16, 65504), 0x7bff);
    ck_assert_uint_eq(packed(DTYPE_FP16, nextafterf(65520, 0)), 0x7bff);
    ck_assert_uint_eq(packed(DTYPE_FP16, 65520), 0x7c00);
    ck_assert_uint_eq(packed(DTYPE_FP16, -1e30f), 0xfc00);
    ck_assert_uint_eq(packed(DTYPE_BF16, 3.4e38f), 0x7f80);
    ck_assert(isinf(element_round(DTYPE_TF32, INFINITY)));
    ck_assert(isnan(element_round(DTYPE_TF32, NAN)));
}

/* tf32 has 10 bits of fraction at fp32's exponents. */
TEST(tf32_keeps_ten_bits)
{
    for (int fraction = 0; fraction < 1024; fraction++)
        for (int exponent = -20; exponent <= 20; exponent++) {
            float low = ldexpf(1024 + (float)fraction, exponent);
            float high = ldexpf(1025 + (float)fraction, exponent), middle = (low + high) / 2;
            float even = fraction % 2 == 0 ? low : high;
            ck_assert(element_round(DTYPE_TF32, low) == low);
            ck_assert(element_round(DTYPE_TF32, middle) == even);
            ck_assert(element_round(DTYPE_TF32, -middle) == -even);
            ck_assert(element_round(DTYPE_TF32, nextafterf(middle, 0)) == low);
            ck_assert(element_round(DTYPE_TF32, nextafterf(middle, INFINITY)) == high);
        }
}

TEST(wide_types_are_stored_as_fp32)
{
    const float in[] = {1 + 0x1p-12f, -3, 0.1f};
    float out[3], back[3];
    elements_pack(DTYPE_FP32, in, 3, out);
    ck_assert_mem_eq(in, out, sizeof(in));
    elements_pack(DTYPE_TF32, in, 3, out);
    ck_assert(out[0] == 1 && out[1] == -3 && out[2] == element_round(DTYPE_TF32, 0.1f));
    elements_unpack(DTYPE_TF32, out, 3, back);
    ck_assert_mem_eq(out, back, sizeof(out));
}

/* By its definition. */
static double e4m3_meaning(int code)
{
    int exponent = code >> 3 & 15, fraction = code & 7;
    double value = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
    return (code & 0x80) != 0 ? -value : value;
}

TEST(every_e4m3_is_read_and_written)
{
    for (int code = 0; code <= 0xff; code++) {
        float value = e4m3_unpack((uint8_t)code);
        ck_assert_uint_eq(e4m3_pack(value), code);
        ck_assert((code & 0x7f) == 0x7f ? isnan(value) : value == e4m3_meaning(code));
        ck_assert((signbit(value) != 0) == (code >= 0x80));
    }
    ck_assert(e4m3_meaning(0x7e) == E4M3_MOST);
}

/* Of all codes the nearest, of two the even one, and none but 448 beyond. */
TEST(every_fp16_goes_to_the_nearest_e4m3)
{
    for (int i = 0; i <= 0xffff; i++) {
        float value = unpacked(DTYPE_FP16, (uint16_t)i);
        int sign = i >> 15 << 7, best = 0;
        if (isnan(value)) {
            ck_assert_uint_eq(e4m3_pack(value), sign | 0x7f);
            continue;
        }
        for (int code = 1; code < 0x7f; code++) {
            double before = fabs(e4m3_meaning(best) - fabsf(value)),
                   now = fabs(e4m3_meaning(code) - fabsf(value));
            best = now < before || (now == before && code % 2 == 0) || isinf(value) ? code : best;
        }
        ck_assert_uint_eq(e4m3_pack(value), sign | best);
    }
    ck_assert_uint_eq(e4m3_pack(-1e30f), 0xfe);
}

/* Few rows and many, which threads share. */
TEST_LOOP(rows_become_codes_in_their_places, 0, 2)
{
    enum { ROWS = 3000, COLUMNS = 48 };
    const int64_t rows = _i == 0 ? 2 : ROWS, n = rows * COLUMNS;
    SCOPED float *values = mem_alloc((size_t)n, sizeof(*values));
    SCOPED uint8_t *codes = mem_alloc((size_t)n, 1), *back = mem_alloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(splitmix64((uint64_t)i) % 4096) / 16 - 128.03f;
    e4m3_pack_rows(DTYPE_FP16, values, rows, COLUMNS, 0.25f, codes);
    e4m3_order_rows(codes, rows, COLUMNS, back);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t code = e4m3_pack(element_round(DTYPE_FP16, values[i]) / 0.25f);
        ck_assert_uint_eq(codes[i / COLUMNS * COLUMNS + e4m3_place(i % COLUMNS)], code);
        ck_assert_uint_eq(back[i], code);
    }
}

/* A number is in the cell of its own code, and next to that of any other there is a number that is
 * rounded to it, or a tie. */
TEST(cells_are_what_is_rounded_to_a_code)
{
    for (int i = 0; i <= 0xffff; i++) {
        const float value = unpacked(DTYPE_FP16, (uint16_t)i);
        const int own = e4m3_pack(value);
        if (!isfinite(value))
            continue;
        ck_assert(e4m3_nearest((uint8_t)own, value) == value);
        for (int code = own & 0x80; code < (own & 0x80) + 0x7f; code++) {
            const float nearest = e4m3_nearest((uint8_t)code, value);
            const float inside = (63 * nearest + e4m3_unpack((uint8_t)code)) / 64;
            if (code != own && code != (own & 0x80))
                ck_assert_uint_eq(e4m3_pack(inside), code);
        }
    }
    ck_assert(e4m3_nearest(0x01, -1) == 0x1p-10f && e4m3_nearest(0x80, 1) == 0x1p-10f);
    ck_assert(e4m3_nearest(0x7e, 1e9f) == 1e9f && isnan(e4m3_nearest(0x7f, 1)));
}

SUITE("elements", NULL, NULL)
