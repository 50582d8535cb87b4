/* Numbers in e4m3, their scales and their order: the same in the oracle, in the worker and in an
 * exported library.  C, and CUDA for host and device.
 *
 * e4m3 (OCP, 8-bit floating-point specification, 2023): a sign, 4 bits of exponent, 3 of fraction.
 * It has no infinity: what is larger than 448 becomes 448, as cvt.satfinite has it.  NaN is 0x7f or
 * 0xff. */
#ifndef FUSEPLAN_LAYER_E4M3_H
#define FUSEPLAN_LAYER_E4M3_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define E4M3 static __host__ __device__ inline
#else
#define E4M3 static inline
#endif

#define E4M3_MOST 448.0f
enum { E4M3_NAN = 0x7f };

/* Scales of inputs leave room for values twice as large, and 1 over them is a number of fp16. */
#define E4M3_INPUT_MOST  224.0f
#define E4M3_INPUT_LEAST 0x1p-15f

/* To nearest, ties to even.  Normal numbers are from 2^-6 on, below them multiples of 2^-9. */
E4M3 uint8_t e4m3_pack(float value)
{
    uint32_t bits, sign, rest;
    memcpy(&bits, &value, sizeof(bits));
    sign = bits >> 24 & 0x80;
    rest = bits & 0x7fffffff;
    if (rest > 0x7f800000u)
        return (uint8_t)(sign | E4M3_NAN);
    if (rest >= 0x43e00000u) /* 448 */
        return (uint8_t)(sign | (E4M3_NAN - 1));
    if (rest < 0x3c800000u)
        return (uint8_t)(sign | (uint32_t)rintf(fabsf(value) * 0x1p9f));
    return (uint8_t)(sign | (rest + 0x7ffff + (rest >> 20 & 1) - 0x3c000000) >> 20);
}

/* The place of a column in memory: of each 16 columns byte 2i is column i, and byte 2i + 1 column
 * i + 8. */
E4M3 int64_t e4m3_place(int64_t column)
{
    return column / 16 * 16 + column % 8 * 2 + column % 16 / 8;
}

/* The least power of two by which `amax` becomes `most` or less; 1 for 0.  frexp() gives a fraction
 * in [0.5,1), which is 0.5 for a power of two alone. */
static inline float e4m3_scale(float amax, float most)
{
    int exponent;
    if (amax == 0)
        return 1;
    double fraction = frexp((double)amax / (double)most, &exponent);
    return ldexpf(1, fraction > 0.5 ? exponent : exponent - 1);
}

static inline float e4m3_largest(const float *values, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(values[i]));
    return most;
}

static inline float e4m3_input_scale(float amax)
{
    return fmaxf(e4m3_scale(amax, E4M3_INPUT_MOST), E4M3_INPUT_LEAST);
}

static inline float e4m3_weight_scale(const float *values, int64_t n)
{
    return e4m3_scale(e4m3_largest(values, n), E4M3_MOST);
}

/* A weight (K,N) as codes (N,K), each row of which has the order of a tensor's. */
static inline void e4m3_pack_weight(const float *values, int64_t inner, int64_t columns,
                                    float scale, uint8_t *codes)
{
    for (int64_t first = 0; first < inner; first += 16)
        for (int64_t n = 0; n < columns; n++)
            for (int64_t i = first; i < first + 16; i++)
                codes[n * inner + e4m3_place(i)] = e4m3_pack(values[i * columns + n] / scale);
}

/* What element i of an array of a layer adds to the fingerprint of weights, modulo 2^64:
 * splitmix64((layer * 16 + array) * 2^40 + i) times its bits in a half type.  Exported libraries
 * have no base/, so splitmix64() stands here once more. */
static inline uint64_t e4m3_fingerprint(int layer, int array, uint64_t i, uint16_t half)
{
    uint64_t z = ((uint64_t)(layer * 16 + array) << 40) + i + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) * half;
}

#endif
