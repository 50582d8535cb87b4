/* The definition of each operator: a plain loop over the rows of a span.  The chain's table says
 * which tensors and weights an operator reads. */
#include "bench/oracle/oracle_int.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Columns that are summed at a time: 4 x 16 sums stay in the registers of AVX-512. */
enum { TILE_COLUMNS = 16 };

/* Keys that a query meets at a time: no sum waits for the one before. */
enum { KEYS_AT_ONCE = 8 };

static bool is_local(const struct layer *l, int tensor)
{
    return (l->local >> tensor & 1) != 0;
}

/* Row i of batch row b of a tensor (B,S,columns), in a span. */
static double *token_row(const struct layer *l, struct span s, int tensor, int i)
{
    int64_t columns = dim_size(tensor_columns(tensor), l->w);
    int64_t row = is_local(l, tensor) ? i - s.first : (int64_t)s.batch_row * l->w->seq_len + i;
    return l->tensor[tensor] + row * columns;
}

/* Row i of a head of a tensor (parts,B,H,S,columns); part 0, 1, 2 is q, k, v. */
static double *head_row(const struct layer *l, struct span s, int tensor, int columns, int part,
                        int h, int i)
{
    const struct workload *w = l->w;
    int64_t head = ((int64_t)part * w->batch + s.batch_row) * w->heads + h;
    int64_t row =
        is_local(l, tensor) ? (int64_t)h * SPAN_ROWS + i - s.first : head * w->seq_len + i;
    return l->tensor[tensor] + row * columns;
}

static double *qkv_row(const struct layer *l, struct span s, int part, int h, int i)
{
    return head_row(l, s, qkv_tensor(), l->w->head_size, part, h, i);
}

static double *score_row(const struct layer *l, struct span s, int tensor, int h, int i)
{
    return head_row(l, s, tensor, l->w->seq_len, 0, h, i);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Sums of `width` columns of the rows x. */
static inline __attribute__((always_inline)) void gemm_columns(const double *const x[SPAN_ROWS],
                                                               const float *weight, int64_t columns,
                                                               int64_t depth, int width,
                                                               double out[SPAN_ROWS][TILE_COLUMNS])
{
    double sum[SPAN_ROWS][TILE_COLUMNS] = {{0}};
    for (int64_t k = 0; k < depth; k++, weight += columns)
#pragma GCC unroll 4
        for (int r = 0; r < SPAN_ROWS; r++)
#pragma GCC unroll 16
            for (int c = 0; c < width; c++)
                sum[r][c] += x[r][k] * weight[c];
    memcpy(out, sum, sizeof(sum));
}

/* out (rows,N) = in (rows,K) @ weight (K,N) */
FOR_EACH_CPU static void gemm(const struct layer *l, struct span s, int op)
{
    enum weight_id id = op_weight(op, 0);
    int64_t depth = dim_size(weights[id].rows, l->w), columns = dim_size(weights[id].cols, l->w);
    const double *x[SPAN_ROWS];
    for (int r = 0; r < SPAN_ROWS; r++) /* a short span computes its last row again */
        x[r] = token_row(l, s, op_input(op), s.first + (r < s.count ? r : s.count - 1));

    for (int64_t first = 0; first < columns; first += TILE_COLUMNS) {
        double sum[SPAN_ROWS][TILE_COLUMNS];
        const float *weight = l->weight[id] + first;
        int width = columns - first < TILE_COLUMNS ? (int)(columns - first) : TILE_COLUMNS;
        if (width == TILE_COLUMNS) /* a width that the compiler knows */
            gemm_columns(x, weight, columns, depth, TILE_COLUMNS, sum);
        else
            gemm_columns(x, weight, columns, depth, width, sum);
        for (int r = 0; r < s.count; r++)
            memcpy(token_row(l, s, TENSOR_OF(op), s.first + r) + first, sum[r],
                   (size_t)width * sizeof(sum[r][0]));
    }
}

/* out = in + bias + residual */
static void bias_residual(const struct layer *l, struct span s, int op)
{
    const float *bias = l->weight[op_weight(op, 0)];
    int columns = workload_hidden(l->w);
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_input(op), i);
        const double *skip = token_row(l, s, op_residual(op), i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        for (int c = 0; c < columns; c++)
            y[c] = x[c] + bias[c] + skip[c];
    }
}

/* out = (in - mean) / sqrt(variance + eps) * gamma + beta, the variance over D, not D - 1 */
static void layernorm(const struct layer *l, struct span s, int op)
{
    const float *gamma = l->weight[op_weight(op, 0)], *beta = l->weight[op_weight(op, 1)];
    int columns = workload_hidden(l->w);
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_input(op), i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        double mean = 0, variance = 0;
        for (int c = 0; c < columns; c++)
            mean += x[c] / columns;
        for (int c = 0; c < columns; c++)
            variance += (x[c] - mean) * (x[c] - mean) / columns;
        for (int c = 0; c < columns; c++)
            y[c] = (x[c] - mean) / sqrt(variance + l->w->eps) * gamma[c] + beta[c];
    }
}

/* (S, 3*H*W) -> q, k, v: a row's columns are ordered by part (q, k, v), then by head. */
static void qkv_bias_split(const struct layer *l, struct span s, int op)
{
    int width = l->w->head_size;
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_input(op), i);
        const float *bias = l->weight[op_weight(op, 0)];
        for (int part = 0; part < 3; part++)
            for (int h = 0; h < l->w->heads; h++, x += width, bias += width) {
                double *y = qkv_row(l, s, part, h, i);
                for (int c = 0; c < width; c++)
                    y[c] = x[c] + bias[c];
            }
    }
}

/* q (width) times each of some keys. */
static inline __attribute__((always_inline)) void multiply_keys(const double *q,
                                                                const double *const k[KEYS_AT_ONCE],
                                                                int width, double out[KEYS_AT_ONCE])
{
    double dot[KEYS_AT_ONCE] = {0};
    for (int c = 0; c < width; c++)
#pragma GCC unroll 8
        for (int j = 0; j < KEYS_AT_ONCE; j++)
            dot[j] += q[c] * k[j][c];
    memcpy(out, dot, sizeof(dot));
}

/* A row of scores (S), all 0. */
static double *cleared_row(const struct layer *l, struct span s, int tensor, int h, int i)
{
    double *y = score_row(l, s, tensor, h, i);
    memset(y, 0, (size_t)l->w->seq_len * sizeof(*y));
    return y;
}

/* Scores of the kept pairs; nothing reads those of the others. */
FOR_EACH_CPU static void scores(const struct layer *l, struct span s, int op)
{
    int width = l->w->head_size;
    for (int h = 0; h < l->w->heads; h++)
        for (int i = s.first; i < s.first + s.count; i++) {
            const double *q = qkv_row(l, s, 0, h, i), *all = qkv_row(l, s, 1, h, 0);
            double *y = cleared_row(l, s, TENSOR_OF(op), h, i);
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                for (int first = run.begin; first < run.end; first += KEYS_AT_ONCE) {
                    int left = run.end - first, count = left < KEYS_AT_ONCE ? left : KEYS_AT_ONCE;
                    const double *k[KEYS_AT_ONCE];
                    double dot[KEYS_AT_ONCE];
                    for (int j = 0; j < KEYS_AT_ONCE; j++) /* few keys: the last one again */
                        k[j] = all + (ptrdiff_t)(first + (j < count ? j : count - 1)) * width;
                    multiply_keys(q, k, width, dot);
                    for (int j = 0; j < count; j++)
                        y[first + j] = dot[j] / sqrt(width);
                }
        }
}

static void mask(const struct layer *l, struct span s, int op)
{
    for (int h = 0; h < l->w->heads; h++)
        for (int i = s.first; i < s.first + s.count; i++) {
            const double *x = score_row(l, s, op_input(op), h, i);
            double *y = cleared_row(l, s, TENSOR_OF(op), h, i);
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                memcpy(y + run.begin, x + run.begin, (size_t)(run.end - run.begin) * sizeof(*y));
        }
}

/* exp(x - max) / sum over the kept keys; a row that keeps none stays zeros. */
static void softmax(const struct layer *l, struct span s, int op)
{
    for (int h = 0; h < l->w->heads; h++)
        for (int i = s.first; i < s.first + s.count; i++) {
            const double *x = score_row(l, s, op_input(op), h, i);
            double *y = cleared_row(l, s, TENSOR_OF(op), h, i);
            double max = -INFINITY, sum = 0;
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                for (int j = run.begin; j < run.end; j++)
                    max = fmax(max, x[j]);
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                for (int j = run.begin; j < run.end; j++) {
                    y[j] = exp(x[j] - max);
                    sum += y[j];
                }
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                for (int j = run.begin; j < run.end; j++)
                    y[j] /= sum;
        }
}

FOR_EACH_CPU static void context(const struct layer *l, struct span s, int op)
{
    int width = l->w->head_size;
    for (int h = 0; h < l->w->heads; h++)
        for (int i = s.first; i < s.first + s.count; i++) {
            const double *probs = score_row(l, s, op_input(op), h, i);
            const double *all = qkv_row(l, s, 2, h, 0);
            double *y = head_row(l, s, TENSOR_OF(op), width, 0, h, i);
            for (int c = 0; c < width; c++)
                y[c] = 0;
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                for (int j = run.begin; j < run.end; j++)
                    for (int c = 0; c < width; c++)
                        y[c] += probs[j] * all[(ptrdiff_t)j * width + c];
        }
}

static void merge_heads(const struct layer *l, struct span s, int op)
{
    int width = l->w->head_size;
    for (int i = s.first; i < s.first + s.count; i++)
        for (int h = 0; h < l->w->heads; h++)
            memcpy(token_row(l, s, TENSOR_OF(op), i) + h * width,
                   head_row(l, s, op_input(op), width, 0, h, i), (size_t)width * sizeof(double));
}

/* GELU(in + bias), GELU(x) = x/2 * (1 + erf(x / sqrt(2))) */
static void bias_gelu(const struct layer *l, struct span s, int op)
{
    const float *bias = l->weight[op_weight(op, 0)];
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_input(op), i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        for (int c = 0; c < l->w->ffn; c++) {
            double biased = x[c] + bias[c];
            y[c] = biased / 2 * (1 + erf(biased / sqrt(2)));
        }
    }
}

oracle_operator *const oracle_operators[] = {
    gemm,          qkv_bias_split, scores, mask,      softmax, context,       merge_heads, gemm,
    bias_residual, layernorm,      gemm,   bias_gelu, gemm,    bias_residual, layernorm,
};
static_assert(ARRAY_LEN(oracle_operators) == OP_COUNT, "one function an operator");
