/* Elements of the library's type from and to float, rounded to nearest, ties to even.  C, and CUDA
 * for host and device. */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include "encoder.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if __FINITE_MATH_ONLY__
#error "compile without -ffast-math and -Ofast, or with -fno-fast-math: NaN would not be seen"
#endif

#ifdef __CUDACC__
#define ELEMENTS static __host__ __device__ inline
#else
#define ELEMENTS static inline
#endif

ELEMENTS uint32_t element_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

ELEMENTS float element_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* fp16 numbers below 2^-14 are multiples of 2^-24; values from 65520 on become infinite. */
ELEMENTS uint16_t element_to_fp16(float value)
{
#ifdef __CUDA_ARCH__
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#else
    uint32_t bits = element_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000)
        return (uint16_t)(sign | (uint32_t)rintf(element_from_bits(rest) * 0x1p24f));
    return (uint16_t)(sign | (rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13);
#endif
}

ELEMENTS float element_from_fp16(uint16_t half)
{
#ifdef __CUDA_ARCH__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
#else
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    float scaled = element_from_bits(rest << 13) * 0x1p112f;
    return element_from_bits(sign |
                             (rest >= 0x7c00 ? 0x7f800000u | rest << 13 : element_bits(scaled)));
#endif
}

ELEMENTS uint16_t element_to_bf16(float value)
{
    uint32_t bits = element_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The exponents' offsets differ by 120; NaN is 0x7f or 0xff. */
ELEMENTS float element_from_e4m3(uint8_t code)
{
    uint32_t sign = (uint32_t)(code & 0x80) << 24, rest = code & 0x7f;
    float scaled = element_from_bits(rest << 20) * 0x1p120f;
    return element_from_bits(sign | (rest == 0x7f ? 0x7fc00000u : element_bits(scaled)));
}

ELEMENTS void element_store(enum encoder_dtype dtype, void *array, size_t i, float value)
{
    if (dtype == ENCODER_FP16)
        ((uint16_t *)array)[i] = element_to_fp16(value);
    else if (dtype == ENCODER_BF16)
        ((uint16_t *)array)[i] = element_to_bf16(value);
    else
        ((float *)array)[i] = value;
}

ELEMENTS float element_load(enum encoder_dtype dtype, const void *array, size_t i)
{
    if (dtype == ENCODER_FP16)
        return element_from_fp16(((const uint16_t *)array)[i]);
    if (dtype == ENCODER_BF16)
        return element_from_bits((uint32_t)((const uint16_t *)array)[i] << 16);
    return ((const float *)array)[i];
}

#endif
