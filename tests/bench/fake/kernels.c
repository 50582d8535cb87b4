#include "tests/bench/fake/kernels.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* One operator on one layer.  Tensors and weights are fp32. */
struct step {
    const struct fp_args *a;
    float *const *tensor;
};

static const float *weight(const struct step *s, int id)
{
    return s->a->weight[id];
}

static int hidden(const struct fp_args *a)
{
    return a->heads * a->head_size;
}

static int length_of(const struct fp_args *a, int b)
{
    return a->lengths != NULL ? a->lengths[b] : a->seq_len;
}

static bool keeps(const struct fp_args *a, int b, int i, int j)
{
    const struct fp_blocks *m = &a->mask;
    int block = (m->lists == 1 ? 0 : b) * m->blocks + i / FP_BLOCK;
    for (int e = m->start[block]; e < m->start[block + 1] && j < length_of(a, b); e++)
        if (m->key_block[e] == j / FP_BLOCK)
            return m->bits[e] < 0 ||
                   (m->words[m->bits[e] * FP_BLOCK + i % FP_BLOCK] >> j % FP_BLOCK & 1) != 0;
    return false;
}

/* Row i of head h of part q, k or v, or of a tensor (B,H,S,columns), where part is 0. */
static float *head_row(const struct step *s, int tensor, int columns, int part, int b, int h, int i)
{
    const struct fp_args *a = s->a;
    int head = (part * a->batch + b) * a->heads + h;
    return s->tensor[tensor] + ((size_t)head * (size_t)a->seq_len + (size_t)i) * (size_t)columns;
}

static float *token_row(const struct step *s, int tensor, int columns, int b, int i)
{
    return s->tensor[tensor] + ((size_t)b * (size_t)s->a->seq_len + (size_t)i) * (size_t)columns;
}

/* ---- operators: row i of batch row b --------------------------------------------------------- */

static void gemm(const struct step *s, int in, int depth, int id, int columns, int out, int b,
                 int i)
{
    const float *x = token_row(s, in, depth, b, i), *w = weight(s, id);
    float *y = token_row(s, out, columns, b, i);
    for (int c = 0; c < columns; c++) {
        double sum = 0;
        for (int k = 0; k < depth; k++)
            sum += (double)x[k] * w[k * columns + c];
        y[c] = (float)sum;
    }
}

static void bias_residual(const struct step *s, int in, int id, int skip, int out, int b, int i)
{
    int columns = hidden(s->a);
    const float *x = token_row(s, in, columns, b, i), *r = token_row(s, skip, columns, b, i);
    float *y = token_row(s, out, columns, b, i);
    for (int c = 0; c < columns; c++)
        y[c] = x[c] + weight(s, id)[c] + r[c];
}

static void layernorm(const struct step *s, int in, int gamma, int out, int b, int i)
{
    int columns = hidden(s->a);
    const float *x = token_row(s, in, columns, b, i);
    float *y = token_row(s, out, columns, b, i);
    double mean = 0, variance = 0;
    for (int c = 0; c < columns; c++)
        mean += (double)x[c] / columns;
    for (int c = 0; c < columns; c++)
        variance += (x[c] - mean) * (x[c] - mean) / columns;
    for (int c = 0; c < columns; c++)
        y[c] = (float)((x[c] - mean) / sqrt(variance + s->a->eps) * weight(s, gamma)[c] +
                       weight(s, gamma + 1)[c]);
}

static void op0(const struct step *s, int b, int i)
{
    gemm(s, 0, hidden(s->a), 0, 3 * hidden(s->a), 1, b, i);
}

static void op1(const struct step *s, int b, int i)
{
    int width = s->a->head_size;
    const float *x = token_row(s, 1, 3 * hidden(s->a), b, i), *bias = weight(s, 1);
    for (int part = 0; part < 3; part++)
        for (int h = 0; h < s->a->heads; h++)
            for (int c = 0; c < width; c++)
                head_row(s, 2, width, part, b, h, i)[c] = *x++ + *bias++;
}

static void op2(const struct step *s, int b, int i)
{
    int width = s->a->head_size;
    for (int h = 0; h < s->a->heads; h++)
        for (int j = 0; j < length_of(s->a, b); j++) {
            const float *q = head_row(s, 2, width, 0, b, h, i);
            const float *k = head_row(s, 2, width, 1, b, h, j);
            double dot = 0;
            for (int c = 0; c < width; c++)
                dot += (double)q[c] * k[c];
            head_row(s, 3, s->a->seq_len, 0, b, h, i)[j] = (float)(dot / sqrt(width));
        }
}

static void op3(const struct step *s, int b, int i)
{
    int keys = s->a->seq_len;
    for (int h = 0; h < s->a->heads; h++)
        memcpy(head_row(s, 4, keys, 0, b, h, i), head_row(s, 3, keys, 0, b, h, i),
               (size_t)keys * sizeof(float));
}

static void op4(const struct step *s, int b, int i)
{
    int keys = s->a->seq_len;
    for (int h = 0; h < s->a->heads; h++) {
        const float *x = head_row(s, 4, keys, 0, b, h, i);
        float *y = head_row(s, 5, keys, 0, b, h, i);
        double sum = 0;
        for (int j = 0; j < keys; j++)
            sum += keeps(s->a, b, i, j) ? exp((double)x[j]) : 0;
        for (int j = 0; j < keys; j++)
            y[j] = keeps(s->a, b, i, j) ? (float)(exp((double)x[j]) / sum) : 0;
    }
}

static void op5(const struct step *s, int b, int i)
{
    int width = s->a->head_size;
    for (int h = 0; h < s->a->heads; h++)
        for (int c = 0; c < width; c++) {
            double sum = 0;
            for (int j = 0; j < length_of(s->a, b); j++)
                sum += (double)head_row(s, 5, s->a->seq_len, 0, b, h, i)[j] *
                       head_row(s, 2, width, 2, b, h, j)[c];
            head_row(s, 6, width, 0, b, h, i)[c] = (float)sum;
        }
}

static void op6(const struct step *s, int b, int i)
{
    int width = s->a->head_size;
    for (int h = 0; h < s->a->heads; h++)
        memcpy(token_row(s, 7, hidden(s->a), b, i) + h * width, head_row(s, 6, width, 0, b, h, i),
               (size_t)width * sizeof(float));
}

static void op7(const struct step *s, int b, int i)
{
    gemm(s, 7, hidden(s->a), 2, hidden(s->a), 8, b, i);
}

static void op8(const struct step *s, int b, int i)
{
    bias_residual(s, 8, 3, 0, 9, b, i);
}

static void op9(const struct step *s, int b, int i)
{
    layernorm(s, 9, 4, 10, b, i);
}

static void op10(const struct step *s, int b, int i)
{
    gemm(s, 10, hidden(s->a), 6, s->a->ffn, 11, b, i);
}

static void op11(const struct step *s, int b, int i)
{
    const float *x = token_row(s, 11, s->a->ffn, b, i);
    float *y = token_row(s, 12, s->a->ffn, b, i);
    for (int c = 0; c < s->a->ffn; c++) {
        double biased = (double)x[c] + weight(s, 7)[c];
        y[c] = (float)(biased / 2 * (1 + erf(biased / sqrt(2))));
    }
}

static void op12(const struct step *s, int b, int i)
{
    gemm(s, 12, s->a->ffn, 8, hidden(s->a), 13, b, i);
}

static void op13(const struct step *s, int b, int i)
{
    bias_residual(s, 13, 9, 10, 14, b, i);
}

static void op14(const struct step *s, int b, int i)
{
    layernorm(s, 14, 10, 15, b, i);
}

static void (*const operators[])(const struct step *s, int b, int i) = {
    op0, op1, op2, op3, op4, op5, op6, op7, op8, op9, op10, op11, op12, op13, op14,
};

/* ---- segments -------------------------------------------------------------------------------- */

/* No tensor is larger. */
static size_t room(const struct fp_args *a)
{
    size_t rows = (size_t)a->batch * (size_t)a->seq_len, columns = (size_t)a->ffn;
    if (columns < 3 * (size_t)hidden(a))
        columns = 3 * (size_t)hidden(a);
    if (columns < (size_t)a->heads * (size_t)a->seq_len)
        columns = (size_t)a->heads * (size_t)a->seq_len;
    return rows * columns;
}

void fake_segment(const struct fp_args *a, int first, int last)
{
    enum { TENSORS = 16 };
    float *tensor[TENSORS], *inside = calloc(TENSORS * room(a), sizeof(float));
    for (size_t t = 0; t < TENSORS; t++)
        tensor[t] = a->tensor[t] != NULL ? a->tensor[t] : inside + t * room(a);
    const struct step s = {a, tensor};
    for (int op = first; op <= last; op++)
        for (int b = 0; b < a->batch; b++)
            for (int i = 0; i < length_of(a, b); i++)
                operators[op](&s, b, i);
    free(inside);
}
