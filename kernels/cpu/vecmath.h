/* exp, erf and activations as straight-line code that a compiler can vectorise, and transposition.
 */
#ifndef FUSEPLAN_CPU_VECMATH_H
#define FUSEPLAN_CPU_VECMATH_H

#include "common.h"

/* e^x for x <= 88, relative error about 1e-7; 0 below -87.3, where floats become subnormal.
 * x = n ln 2 + r, |r| <= ln(2)/2, with ln 2 in two parts so that r is exact; e^r by the polynomial
 * of the Cephes library (S. Moshier, expf.c). */
FP_TEMPLATE float fp_exp(float x)
{
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves an integer in the low bits */
    float shifted = x * 1.44269504088896341f + round;
    float n = shifted - round;
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    union {
        uint32_t u;
        float f;
    } bits = {.f = shifted}, power;
    power.u = (bits.u + 127) << 23; /* 2^n; the bits of `round` are shifted out */
    return x < -87.3f ? 0.0f : p * power.f;
}

/* erf(x), absolute error below 5e-7: the rational minimax approximation on [-4, 4] that Eigen and
 * XLA use; beyond it erf is 1 in fp32. */
FP_TEMPLATE float fp_erf(float x)
{
    x = x > 4.0f ? 4.0f : x;
    x = x < -4.0f ? -4.0f : x;
    float s = x * x;
    float p = -2.72614225801306e-10f;
    p = p * s + 2.77068142495902e-08f;
    p = p * s - 2.10102402082508e-06f;
    p = p * s - 5.69250639462346e-05f;
    p = p * s - 7.34990630326855e-04f;
    p = p * s - 2.95459980854025e-03f;
    p = p * s - 1.60960333262415e-02f;
    float q = -1.45660718464996e-05f;
    q = q * s - 2.13374055278905e-04f;
    q = q * s - 1.68282697438203e-03f;
    q = q * s - 7.37332916720468e-03f;
    q = q * s - 1.42647390514189e-02f;
    return x * p / q;
}

#define FP_FUNCTION FP_TEMPLATE
#define FP_ERF      fp_erf
#define FP_EXP      fp_exp
#include "activations.h"

typedef float fp_four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int fp_four_lanes __attribute__((vector_size(16)));

/* Elements i, j, k, l of the eight in a and b. */
#ifdef __clang__
#define FP_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define FP_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (fp_four_lanes){i, j, k, l})
#endif

FP_TEMPLATE void fp_transpose_four(const float *in, size_t in_stride, float *out, size_t out_stride)
{
    fp_four r[4], pair[4];
    for (int i = 0; i < 4; i++)
        r[i] = *(const fp_four *)(in + i * in_stride);
    for (int i = 0; i < 2; i++) {
        pair[i] = FP_SHUFFLE(r[2 * i], r[2 * i + 1], 0, 4, 1, 5);
        pair[2 + i] = FP_SHUFFLE(r[2 * i], r[2 * i + 1], 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        *(fp_four *)(out + 2 * i * out_stride) =
            FP_SHUFFLE(pair[2 * i], pair[2 * i + 1], 0, 1, 4, 5);
        *(fp_four *)(out + (2 * i + 1) * out_stride) =
            FP_SHUFFLE(pair[2 * i], pair[2 * i + 1], 2, 3, 6, 7);
    }
}

/* out (columns,rows) = in (rows,columns) transposed */
FP_TEMPLATE void fp_transpose(int rows, int columns, const float *in, size_t in_stride, float *out,
                              size_t out_stride)
{
    int fours = rows / 4 * 4, across = columns / 4 * 4;
    for (int i = 0; i < fours; i += 4)
        for (int j = 0; j < across; j += 4)
            fp_transpose_four(in + i * in_stride + j, in_stride, out + j * out_stride + i,
                              out_stride);
    for (int i = 0; i < rows; i++)
        for (int j = i < fours ? across : 0; j < columns; j++)
            out[j * out_stride + i] = in[i * in_stride + j];
}

#endif
