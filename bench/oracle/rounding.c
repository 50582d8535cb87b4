#include "bench/oracle/oracle_int.h"

uint32_t rounding_stored(const struct chain *c)
{
    uint32_t all = chain_inputs(c) | chain_carried(c);
    for (int i = 0; i < OP_COUNT; i++) {
        const struct op *op = &c->ops[i];
        all |= op->kind == KIND_GEMM ? SET_OF(op->input) : 0;
        all |= op->kind == KIND_SPLIT ? SET_OF(TENSOR_OF(i)) : 0;
        all |= op->skip != TENSOR_NONE ? SET_OF(op->skip) : 0;
    }
    return all;
}

void round_stored(const struct rounding *rounding, int tensor, int64_t n, double *values)
{
    if (rounding == NULL || (rounding->stored >> tensor & 1) == 0)
        return;
    for (int64_t i = 0; i < n; i++)
        values[i] = element_round(rounding->dtype, (float)values[i]);
}

float e4m3_round(float value, float scale)
{
    return e4m3_unpack(e4m3_pack(value / scale)) * scale;
}

/* The largest of n values, each `step` behind the one before. */
static float largest(const float *values, int64_t n, int64_t step)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(values[i * step]));
    return most;
}

void e4m3_round_weight(float *weight, int64_t rows, int64_t columns, bool by_column)
{
    SCOPED float *scale = mem_alloc((size_t)columns, sizeof(*scale));
    float all = e4m3_scale(largest(weight, rows * columns, 1), E4M3_MOST);
    for (int64_t c = 0; c < columns; c++)
        scale[c] = by_column ? e4m3_scale(largest(weight + c, rows, columns), E4M3_MOST) : all;
#pragma omp parallel for if (rows * columns > PARALLEL_ELEMENTS)
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            weight[r * columns + c] = e4m3_round(weight[r * columns + c], scale[c]);
}
