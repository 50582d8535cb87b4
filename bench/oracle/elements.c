#include "bench/oracle/oracle_int.h"

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

/* fp16 numbers below 2^-14 are multiples of 2^-24; values from 65520 on become infinite. */
static uint16_t to_fp16(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > INFINITE)
        return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000)
        return (uint16_t)(sign | (uint32_t)rintf(from_bits(rest) * 0x1p24f));
    return (uint16_t)(sign | (rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13);
}

/* The exponents' offsets differ by 112.  Without a branch, the compiler
 * vectorises unpack_fp16(). */
static float from_fp16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    uint32_t scaled = bits_of(from_bits(rest << 13) * 0x1p112f);
    return from_bits(sign | scaled | (rest >= 0x7c00 ? INFINITE : 0));
}

static uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > INFINITE)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
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
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) >= INFINITE)
        return value;
    return from_bits((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
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

FOR_EACH_CPU static void unpack_fp16(const uint16_t *from, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from_fp16(from[i]);
}

FOR_EACH_CPU static void unpack_bf16(const uint16_t *from, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from_bf16(from[i]);
}

/* ---- the table: only 16-bit types pack and unpack -------------------------------------------- */

static const struct {
    float (*round)(float);
    uint16_t (*pack)(float);
    void (*unpack)(const uint16_t *from, int64_t n, float *to);
} types[] = {
    [DTYPE_FP32] = {as_fp32, NULL, NULL},
    [DTYPE_TF32] = {as_tf32, NULL, NULL},
    [DTYPE_FP16] = {as_fp16, to_fp16, unpack_fp16},
    [DTYPE_BF16] = {as_bf16, to_bf16, unpack_bf16},
};
_Static_assert(ARRAY_LEN(types) == DTYPE_COUNT, "one row a type");

float element_round(enum dtype dtype, float value)
{
    return types[dtype].round(value);
}

void elements_pack(enum dtype dtype, const float *from, int64_t n, void *to)
{
    float (*round)(float) = types[dtype].round;
    uint16_t (*pack)(float) = types[dtype].pack;
    if (pack == NULL) {
        float *out = to;
#pragma omp parallel for if (n > PARALLEL_ELEMENTS)
        for (int64_t i = 0; i < n; i++)
            out[i] = round(from[i]);
    } else {
        uint16_t *out = to;
#pragma omp parallel for if (n > PARALLEL_ELEMENTS)
        for (int64_t i = 0; i < n; i++)
            out[i] = pack(from[i]);
    }
}

void elements_unpack(enum dtype dtype, const void *from, int64_t n, float *to)
{
    enum { PIECE = 1 << 13 }; /* elements that a thread reads at a time */
    const uint16_t *in = from;
    if (types[dtype].unpack == NULL) {
        memcpy(to, from, (size_t)n * sizeof(*to));
        return;
    }
#pragma omp parallel for if (n > PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < n; i += PIECE)
        types[dtype].unpack(in + i, n - i < PIECE ? n - i : PIECE, to + i);
}
