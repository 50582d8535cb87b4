#include "bench/oracle/oracle_int.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INFINITE 0x7f800000u /* the bits of infinity */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* ---- one element: to nearest, ties to even --------------------------------------------------- */

/* fp16 numbers below 2^-14 are multiples of 2^-24, as floats next to 0.5 are; values from 65520 on
 * become infinite; a NaN becomes quiet and keeps the bits that fit, as processors do it.  Without a
 * branch, the compiler vectorises pack_fp16_rest(). */
static uint16_t to_fp16(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    uint32_t is_small = 0 - (uint32_t)(rest < 0x38800000);
    uint32_t is_large = 0 - (uint32_t)(rest >= 0x477ff000);
    uint32_t nan = (0x200 | (rest >> 13 & 0x3ff)) & (0 - (uint32_t)(rest > INFINITE));
    uint32_t small = bits_of(from_bits(rest) + 0.5f) - bits_of(0.5f);
    uint32_t normal = (rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13;
    uint32_t finite = (small & is_small) | (normal & ~is_small);
    return (uint16_t)(sign | (finite & ~is_large) | (0x7c00 & is_large) | nan);
}

/* The exponents' offsets differ by 112. */
static float from_fp16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    uint32_t scaled = bits_of(from_bits(rest << 13) * 0x1p112f);
    uint32_t special = (rest >= 0x7c00 ? INFINITE : 0) | (rest > 0x7c00 ? 0x400000 : 0);
    return from_bits(sign | scaled | special);
}

static uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > INFINITE ? bits >> 16 | 0x40 : rounded);
}

static float from_bf16(uint16_t half)
{
    return from_bits((uint32_t)half << 16);
}

/* The exponents' offsets differ by 120. */
float e4m3_unpack(uint8_t code)
{
    uint32_t sign = (uint32_t)(code & 0x80) << 24, rest = code & 0x7f;
    uint32_t scaled = bits_of(from_bits(rest << 20) * 0x1p120f);
    return from_bits(sign | scaled | (rest == E4M3_NAN ? INFINITE + 1 : 0));
}

/* The numbers between half a step to each side; beyond 448 all. */
float e4m3_nearest(uint8_t code, float value)
{
    const uint8_t size = code & 0x7f;
    const float sign = (code & 0x80) != 0 ? -1 : 1, of = sign * value, own = e4m3_unpack(size);
    if (size == E4M3_NAN)
        return own;
    const float low = size > 0 ? (own + e4m3_unpack(size - 1)) / 2 : -e4m3_unpack(1) / 2;
    const float high = size < E4M3_NAN - 1 ? (own + e4m3_unpack(size + 1)) / 2 : INFINITY;
    return sign * fminf(fmaxf(of, low), high);
}

static float as_tf32(float value)
{
    uint32_t bits = bits_of(value), rounded = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
    return from_bits((bits & 0x7fffffff) >= INFINITE ? bits : rounded);
}

static float as_fp32(float value)
{
    return value;
}

static float as_fp16(float value)
{
    return from_fp16(to_fp16(value));
}

static float as_bf16(float value)
{
    return from_bf16(to_bf16(value));
}

/* ---- many elements --------------------------------------------------------------------------- */

/* Types take no parentheses: NOLINTBEGIN(bugprone-macro-parentheses) */
#define MANY(name, from_type, to_type, function)                                                   \
    FOR_EACH_CPU static void name(const void *from, int64_t n, void *to)                           \
    {                                                                                              \
        const from_type *in = from;                                                                \
        to_type *out = to;                                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = function(in[i]);                                                              \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
MANY(copy_fp32, float, float, as_fp32)
MANY(pack_tf32, float, float, as_tf32)
MANY(pack_fp16_rest, float, uint16_t, to_fp16)
MANY(unpack_fp16_rest, uint16_t, float, from_fp16)
MANY(pack_bf16, float, uint16_t, to_bf16)
MANY(unpack_bf16, uint16_t, float, from_bf16)
#undef MANY

/* fp16 by instructions for 8 numbers, which all CPUs with AVX2 have: how many were converted. Their
 * bits are those of to_fp16() and from_fp16(). */
#if defined(__x86_64__)
#define F16C __attribute__((target("f16c")))
F16C static int64_t pack_eights(const float *from, int64_t n, uint16_t *to)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        memcpy(to + i, &halves, sizeof(halves));
    }
    return i;
}

F16C static int64_t unpack_eights(const uint16_t *from, int64_t n, float *to)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i halves;
        memcpy(&halves, from + i, sizeof(halves));
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
    }
    return i;
}
#define EIGHTS(convert) (__builtin_cpu_supports("avx2") ? convert(from, n, to) : 0)
#else
#define EIGHTS(convert) 0
#endif

static void pack_fp16(const void *from, int64_t n, void *to)
{
    const int64_t done = EIGHTS(pack_eights);
    pack_fp16_rest((const float *)from + done, n - done, (uint16_t *)to + done);
}

static void unpack_fp16(const void *from, int64_t n, void *to)
{
    const int64_t done = EIGHTS(unpack_eights);
    unpack_fp16_rest((const uint16_t *)from + done, n - done, (float *)to + done);
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef void convert(const void *from, int64_t n, void *to);

static const struct {
    float (*round)(float);
    convert *pack, *unpack;
} types[] = {
    [DTYPE_FP32] = {as_fp32, copy_fp32, copy_fp32},
    [DTYPE_TF32] = {as_tf32, pack_tf32, copy_fp32},
    [DTYPE_FP16] = {as_fp16, pack_fp16, unpack_fp16},
    [DTYPE_BF16] = {as_bf16, pack_bf16, unpack_bf16},
};
_Static_assert(ARRAY_LEN(types) == DTYPE_COUNT, "one row a type");

float element_round(enum dtype dtype, float value)
{
    return types[dtype].round(value);
}

enum { PIECE = 1 << 13 }; /* elements that a thread converts at a time */

static void round_piece(enum dtype dtype, const float *from, int64_t n, float *to)
{
    float stored[PIECE]; /* the widest type */
    types[dtype].pack(from, n, stored);
    types[dtype].unpack(stored, n, to);
}

/* Few elements take less time than to ask for threads, as in convert_all(). */
void elements_round(enum dtype dtype, const float *from, int64_t n, float *to)
{
    if (n <= PIECE) {
        round_piece(dtype, from, n, to);
        return;
    }
#pragma omp parallel for if (n > PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < n; i += PIECE)
        round_piece(dtype, from + i, n - i < PIECE ? n - i : PIECE, to + i);
}

/* Converts elements of so many bytes.  Few take less time than to ask for threads, which rows of a
 * tensor that threads share would do once a row. */
static void convert_all(convert *piece, const char *from, int from_bytes, int64_t n, char *to,
                        int to_bytes)
{
    if (n <= PARALLEL_ELEMENTS) {
        piece(from, n, to);
        return;
    }
#pragma omp parallel for
    for (int64_t i = 0; i < n; i += PIECE)
        piece(from + i * from_bytes, n - i < PIECE ? n - i : PIECE, to + i * to_bytes);
}

void elements_pack(enum dtype dtype, const float *from, int64_t n, void *to)
{
    convert_all(types[dtype].pack, (const char *)from, sizeof(*from), n, to, dtypes[dtype].bytes);
}

void elements_unpack(enum dtype dtype, const void *from, int64_t n, float *to)
{
    convert_all(types[dtype].unpack, from, dtypes[dtype].bytes, n, (char *)to, sizeof(*to));
}

/* ---- rows of e4m3 ---------------------------------------------------------------------------- */

void e4m3_pack_rows(enum dtype dtype, const float *values, int64_t rows, int64_t columns,
                    float scale, uint8_t *codes)
{
#pragma omp parallel if (rows * columns > PARALLEL_ELEMENTS)
    {
        SCOPED float *rounded = mem_alloc((size_t)columns, sizeof(*rounded));
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            uint8_t *to = codes + row * columns;
            elements_round(dtype, values + row * columns, columns, rounded);
            for (int64_t c = 0; c < columns; c++)
                to[e4m3_place(c)] = e4m3_pack(rounded[c] / scale);
        }
    }
}

void e4m3_order_rows(const uint8_t *codes, int64_t rows, int64_t columns, uint8_t *out)
{
#pragma omp parallel for if (rows * columns > PARALLEL_ELEMENTS)
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < columns; c++)
            out[row * columns + c] = codes[row * columns + e4m3_place(c)];
}
