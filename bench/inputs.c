#include "bench/oracle.h"

#include <math.h>
#include <string.h>

enum {
    ARRAY_X = 15,
    ARRAYS_PER_LAYER = 16,
    PARALLEL_ELEMENTS = 1 << 17 /* with fewer, starting threads takes longer than drawing */
};

/* Rounds to nearest, ties to even, dropping low bits of the 23 of the fraction. */
static float drop_fraction_bits(float value, int dropped)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t unit = (uint32_t)1 << dropped, odd = bits >> dropped & 1;
    bits = (bits + unit / 2 - 1 + odd) & ~(unit - 1);
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

static float as_fp32(float value)
{
    return value;
}

static float as_tf32(float value)
{
    return drop_fraction_bits(value, 13);
}

/* Below 2^-14 numbers of fp16 are multiples of 2^-24.  None of ours is too large for it. */
static float as_fp16(float value)
{
    return fabsf(value) < 0x1p-14f ? rintf(value * 0x1p24f) * 0x1p-24f
                                   : drop_fraction_bits(value, 13);
}

static float as_bf16(float value)
{
    return drop_fraction_bits(value, 16);
}

static float (*const rounded[])(float) = {
    [DTYPE_FP32] = as_fp32, [DTYPE_TF32] = as_tf32, [DTYPE_FP16] = as_fp16, [DTYPE_BF16] = as_bf16};
_Static_assert(ARRAY_LEN(rounded) == DTYPE_COUNT, "one row a type");

/* n values around `middle`, at most `range` away. */
static void draw(enum dtype dtype, uint64_t seed, uint64_t array, double middle, double range,
                 int64_t n, float *out)
{
    uint64_t first = seed + (array << 40);
    float (*round)(float) = rounded[dtype];
#pragma omp parallel for if (n > PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < n; i++) {
        double unit = (double)(splitmix64(first + (uint64_t)i) >> 11) * 0x1p-53;
        out[i] = round((float)(middle + (2 * unit - 1) * range));
    }
}

void inputs_weight(const struct workload *w, uint64_t seed, bool notes, int layer,
                   enum weight_id id, float *out)
{
    bool around_1 = weights[id].draw == WEIGHT_ONE_PLUS_UNIFORM && !notes;
    uint64_t array = (uint64_t)layer * ARRAYS_PER_LAYER + id;
    draw(w->dtype, seed, array, around_1 ? 1 : 0, notes ? 0.4 : 0.05, weight_elements(id, w), out);
}

void inputs_x(const struct workload *w, uint64_t seed, float *out)
{
    draw(w->dtype, seed, ARRAY_X, 0, 0.4, tensor_elements(TENSOR_X, w), out);
}
