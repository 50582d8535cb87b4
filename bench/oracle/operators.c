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

static const struct op *op_of(const struct layer *l, int op)
{
    return &l->w->chain->ops[op];
}

/* A weight of an operator by role; null if it has none. */
static const float *weight_of(const struct layer *l, int op, enum weight_role role)
{
    int id = op_of(l, op)->weight[role];
    return id != WEIGHT_NONE ? l->weight[id] : NULL;
}

/* Element c of a vector that may be missing. */
static double element(const float *vector, int c)
{
    return vector != NULL ? vector[c] : 0;
}

static bool is_local(const struct layer *l, int tensor)
{
    return (l->local >> tensor & 1) != 0;
}

/* Row i of batch row b of a tensor (B,S,columns), in a span. */
static double *token_row(const struct layer *l, struct span s, int tensor, int i)
{
    int64_t columns = dim_size(tensor_columns(l->w->chain, tensor), l->w);
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
    int id = op_of(l, op)->weight[ROLE_MATRIX];
    const struct weight *shape = &l->w->chain->weights[id];
    int64_t depth = dim_size(shape->rows, l->w), columns = dim_size(shape->cols, l->w);
    const double *x[SPAN_ROWS];
    for (int r = 0; r < SPAN_ROWS; r++) /* a short span computes its last row again */
        x[r] = token_row(l, s, op_of(l, op)->input, s.first + (r < s.count ? r : s.count - 1));

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

/* out = in + bias + skip */
static void bias_residual(const struct layer *l, struct span s, int op)
{
    const float *bias = weight_of(l, op, ROLE_BIAS);
    int64_t columns = dim_size(op_of(l, op)->columns, l->w);
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_of(l, op)->input, i);
        const double *skip = token_row(l, s, op_of(l, op)->skip, i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        for (int c = 0; c < columns; c++)
            y[c] = x[c] + element(bias, c) + skip[c];
    }
}

/* out = (in - mean) / sqrt(variance + eps) * gamma + beta, the variance over D, not D - 1 */
static void layernorm(const struct layer *l, struct span s, int op)
{
    const float *gamma = weight_of(l, op, ROLE_GAMMA), *beta = weight_of(l, op, ROLE_BETA);
    int columns = (int)dim_size(op_of(l, op)->columns, l->w);
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_of(l, op)->input, i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        double mean = 0, variance = 0;
        for (int c = 0; c < columns; c++)
            mean += x[c] / columns;
        for (int c = 0; c < columns; c++)
            variance += (x[c] - mean) * (x[c] - mean) / columns;
        for (int c = 0; c < columns; c++)
            y[c] = (x[c] - mean) / sqrt(variance + l->w->eps) * gamma[c] + element(beta, c);
    }
}

/* (S, 3*H*W) -> q, k, v: a row's columns are ordered by part (q, k, v), then by head. */
static void qkv_bias_split(const struct layer *l, struct span s, int op)
{
    int width = l->w->head_size;
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_of(l, op)->input, i);
        const float *bias = weight_of(l, op, ROLE_BIAS);
        for (int part = 0, first = 0; part < 3; part++)
            for (int h = 0; h < l->w->heads; h++, first += width) {
                double *y = head_row(l, s, TENSOR_OF(op), width, part, h, i);
                for (int c = 0; c < width; c++)
                    y[c] = x[first + c] + element(bias, first + c);
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

/* Scores of the kept pairs; nothing reads the scores of other pairs. */
FOR_EACH_CPU static void scores(const struct layer *l, struct span s, int op)
{
    int width = l->w->head_size, qkv = op_of(l, op)->qkv;
    for (int h = 0; h < l->w->heads; h++)
        for (int i = s.first; i < s.first + s.count; i++) {
            const double *q = head_row(l, s, qkv, width, 0, h, i),
                         *all = head_row(l, s, qkv, width, 1, h, 0);
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
            const double *x = score_row(l, s, op_of(l, op)->input, h, i);
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
            const double *x = score_row(l, s, op_of(l, op)->input, h, i);
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
            const double *probs = score_row(l, s, op_of(l, op)->input, h, i);
            const double *all = head_row(l, s, op_of(l, op)->qkv, width, 2, h, 0);
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
                   head_row(l, s, op_of(l, op)->input, width, 0, h, i),
                   (size_t)width * sizeof(double));
}

/* x/2 * (1 + erf(x / sqrt(2))) */
static double gelu(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}

static double activation_of(enum function_id function, double x);

/* out = activation(in + bias) */
static void activation(const struct layer *l, struct span s, int op)
{
    const float *bias = weight_of(l, op, ROLE_BIAS);
    int columns = (int)dim_size(op_of(l, op)->columns, l->w);
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_of(l, op)->input, i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        for (int c = 0; c < columns; c++)
            y[c] = activation_of(op_of(l, op)->function, x[c] + element(bias, c));
    }
}

/* ---- by function ----------------------------------------------------------------------------- */

/* None of a function that is in no chain. */
static const struct {
    oracle_operator *operator;
    double (*activation)(double);
} definitions[FUNCTION_COUNT] = {
    [FUNCTION_GEMM] = {gemm, NULL},
    [FUNCTION_BIAS_SPLIT_HEADS] = {qkv_bias_split, NULL},
    [FUNCTION_SCORES] = {scores, NULL},
    [FUNCTION_MASK] = {mask, NULL},
    [FUNCTION_SOFTMAX] = {softmax, NULL},
    [FUNCTION_CONTEXT] = {context, NULL},
    [FUNCTION_MERGE_HEADS] = {merge_heads, NULL},
    [FUNCTION_BIAS_RESIDUAL] = {bias_residual, NULL},
    [FUNCTION_BIAS_GELU] = {activation, gelu},
    [FUNCTION_LAYERNORM] = {layernorm, NULL},
};

static double activation_of(enum function_id function, double x)
{
    return definitions[function].activation(x);
}

void oracle_operator_run(const struct layer *l, struct span s, int op)
{
    definitions[op_of(l, op)->function].operator(l, s, op);
}
