/* Operators on token rows (B,S,C): GEMMs with their epilogues, pointwise operators, layernorm. */
#ifndef FUSEPLAN_CPU_TOKENS_H
#define FUSEPLAN_CPU_TOKENS_H

#include "common.h"
#include "vecmath.h"

#include <cblas.h>
#include <omp.h>

enum fp_pointwise {
    FP_NONE,
    FP_BIAS_SPLIT_HEADS,      /* input (rows,3D) + bias (3D), out 3x(B,H,S,W) */
    FP_BIAS_ROPE_SPLIT_HEADS, /* and q and k turned by `table` */
    FP_MERGE_HEADS,           /* input (B,H,S,W), out (rows,D) */
    FP_BIAS_RESIDUAL,         /* input (rows,N) + bias (N) + residual (rows,N) */
#define X(id, name) id,       /* fp_name(input (rows,N) + bias (N)) */
    FP_ACTIVATIONS(X)
#undef X
};

FP_TEMPLATE float fp_activate(enum fp_pointwise activation, float x)
{
#define X(id, name)                                                                                \
    if (activation == id)                                                                          \
        return fp_##name(x);
    FP_ACTIVATIONS(X)
#undef X
    return x;
}

/* One operator, or a GEMM and the pointwise operator of its epilogue, on a block of rows.  Pointers
 * to token rows point to the block's first row; pointers to tensors split into heads to
 * the tensor. */
struct fp_step {
    enum fp_pointwise pointwise;
    int gate;                  /* not 0: N columns of 2N, fp_name(column 2c) * column 2c+1 */
    int inner, columns;        /* K and N */
    const float *input;        /* (rows,K) of a GEMM, else (rows,N), of a gate (rows,2N) */
    const float *weight;       /* (K,N); in front of a gate (K,2N) */
    const float *bias;         /* (N); of a gate (2N) */
    const float *table;        /* (S,W) */
    const float *residual;     /* (rows,N) */
    const float *gamma, *beta; /* (N) */
    int no_bias, no_beta;      /* not 0: the operator lacks it */
    float *out;                /* (rows,N) */
};

/* Columns of the product, or of what a pointwise operator reads. */
FP_TEMPLATE int fp_wide(const struct fp_step *s)
{
    return s->gate ? 2 * s->columns : s->columns;
}

/* Whether the columns go to heads. */
FP_TEMPLATE int fp_splits(const struct fp_step *s)
{
    return s->pointwise == FP_BIAS_SPLIT_HEADS || s->pointwise == FP_BIAS_ROPE_SPLIT_HEADS;
}

/* The step `all` on all rows, narrowed to the block `rows`. */
FP_TEMPLATE struct fp_step fp_step_at(const struct fp_step *all, struct fp_range rows)
{
    struct fp_step s = *all;
    size_t first = (size_t)rows.first;
    if (s.pointwise != FP_MERGE_HEADS)
        s.input += first * (s.weight != NULL ? s.inner : fp_wide(&s));
    if (s.residual != NULL)
        s.residual += first * s.columns;
    if (!fp_splits(&s))
        s.out += first * s.columns;
    return s;
}

/* Columns first.. of a vector that an operator may lack, and element c of one. */
FP_TEMPLATE const float *fp_from(int lacks, const float *vector, int first)
{
    return lacks ? NULL : vector + first;
}

FP_TEMPLATE float fp_element(int lacks, const float *vector, int c)
{
    return lacks ? 0.0f : vector[c];
}

/* The offset of token row `row` of head `head` in a tensor (B,H,S,W). */
FP_TEMPLATE size_t fp_head_offset(const struct fp_args *a, int row, int head)
{
    int at = a->unpacked != NULL ? a->unpacked[row] : row;
    int b = at / a->seq_len, i = at % a->seq_len;
    return (((size_t)b * a->heads + head) * a->seq_len + i) * a->head_size;
}

/* The place of token row `row` in its sequence. */
FP_TEMPLATE int fp_place(const struct fp_args *a, int row)
{
    return (a->unpacked != NULL ? a->unpacked[row] : row) % a->seq_len;
}

/* Adds the bias to columns `cols` of one row and stores them in q, k and v; those that are turned
 * are whole heads.  in: the first of them. */
FP_TEMPLATE void fp_split_row(const struct fp_args *a, const struct fp_step *s, int row,
                              struct fp_range cols, const float *in)
{
    int width = a->head_size, end = cols.first + cols.count;
    for (int c = cols.first, next; c < end; c = next) {
        int head = c / width;
        next = fp_min(end, (head + 1) * width);
        size_t third = (size_t)(head / a->heads) * a->batch * a->seq_len * fp_heads_columns(a);
        float *out = s->out + third + fp_head_offset(a, row, head % a->heads) + c % width;
        for (int i = 0; i < next - c; i++)
            out[i] = in[c - cols.first + i] + fp_element(s->no_bias, s->bias, c + i);
        if (s->pointwise == FP_BIAS_ROPE_SPLIT_HEADS && head < 2 * a->heads)
            fp_rotate(out, s->table + (size_t)fp_place(a, row) * width, width);
    }
}

FP_TEMPLATE void fp_merge_row(const struct fp_args *a, int row, const float *in, float *out)
{
    for (int h = 0; h < a->heads; h++)
        memcpy(out + (size_t)h * a->head_size, in + fp_head_offset(a, row, h),
               (size_t)a->head_size * sizeof(float));
}

/* Columns `cols` of the product give half as many. */
FP_TEMPLATE void fp_gate_row(const struct fp_step *s, struct fp_range cols, const float *x,
                             float *out)
{
    const float *bias = fp_from(s->no_bias, s->bias, cols.first);
#pragma omp simd
    for (int c = 0; c < cols.count / 2; c++)
        out[c] = fp_activate(s->pointwise, x[2 * c] + fp_element(s->no_bias, bias, 2 * c)) *
                 (x[2 * c + 1] + fp_element(s->no_bias, bias, 2 * c + 1));
}

/* The pointwise operator on columns `cols` of a row block; `in` holds them with its own stride. */
FP_TEMPLATE void fp_pointwise_tile(const struct fp_args *a, const struct fp_step *s,
                                   struct fp_range rows, struct fp_range cols, const float *in,
                                   int in_stride)
{
    for (int r = 0; r < rows.count; r++) {
        const float *x = in + (size_t)r * in_stride;
        size_t at = (size_t)r * s->columns + cols.first;
        if (fp_splits(s)) {
            fp_split_row(a, s, rows.first + r, cols, x);
        } else if (s->gate) {
            fp_gate_row(s, cols, x, s->out + (size_t)r * s->columns + cols.first / 2);
        } else if (s->pointwise == FP_MERGE_HEADS) {
            fp_merge_row(a, rows.first + r, s->input, s->out + at);
        } else if (s->pointwise == FP_BIAS_RESIDUAL) {
            const float *bias = fp_from(s->no_bias, s->bias, cols.first),
                        *residual = s->residual + at;
#pragma omp simd
            for (int c = 0; c < cols.count; c++)
                s->out[at + c] = x[c] + fp_element(s->no_bias, bias, c) + residual[c];
        } else {
            const float *bias = fp_from(s->no_bias, s->bias, cols.first);
#pragma omp simd
            for (int c = 0; c < cols.count; c++)
                s->out[at + c] = fp_activate(s->pointwise, x[c] + fp_element(s->no_bias, bias, c));
        }
    }
}

enum {
    FP_HOT_WEIGHTS = 3 << 16, /* floats that are prefetched: 768 KiB of a second-level cache */
    FP_INNER_MOST = 256,      /* a longer piece of K is not faster */
    FP_LINE = 16              /* floats of a cache line */
};

/* out = input @ weight + beta * out, in pieces of K.  OpenBLAS packs a piece of the weights column
 * strip by column strip, which does not hide memory latency.  So this first prefetches the piece
 * row by row.  With 64 rows, which give little work to hide latency behind, it saves a sixth. */
FP_TEMPLATE void fp_sgemm(const struct fp_step *s, int rows, struct fp_range cols, float beta,
                          float *out, int out_stride)
{
    int piece = fp_min(FP_INNER_MOST, FP_HOT_WEIGHTS / cols.count + 1);
    for (int k = 0; k < s->inner; k += piece) {
        int count = fp_min(piece, s->inner - k);
        const float *weight = s->weight + (size_t)k * fp_wide(s) + cols.first;
        for (int i = 0; i < count; i++)
            for (int c = 0; c < cols.count; c += FP_LINE)
                __builtin_prefetch(weight + (size_t)i * fp_wide(s) + c, 0, 2);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, cols.count, count, 1.0f,
                    s->input + k, s->inner, weight, fp_wide(s), k == 0 ? beta : 1.0f, out,
                    out_stride);
    }
}

/* A tile of the GEMM and, while it is in the cache, its epilogue.  Bias and residual take no pass
 * of their own: they are in the output before the GEMM adds to it. */
FP_TEMPLATE void fp_gemm_tile(const struct fp_args *a, const struct fp_step *s,
                              struct fp_range rows, struct fp_range cols)
{
    float *out = s->out + cols.first;
    if (fp_splits(s) || s->gate) {
        float *tile = fp_scratch((size_t)rows.count * cols.count);
        fp_sgemm(s, rows.count, cols, 0.0f, tile, cols.count);
        fp_pointwise_tile(a, s, rows, cols, tile, cols.count);
    } else if (s->pointwise == FP_BIAS_RESIDUAL) {
        const float *bias = fp_from(s->no_bias, s->bias, cols.first),
                    *residual = s->residual + cols.first;
        for (int r = 0; r < rows.count; r++) {
            size_t at = (size_t)r * s->columns;
#pragma omp simd
            for (int c = 0; c < cols.count; c++)
                out[at + c] = fp_element(s->no_bias, bias, c) + residual[at + c];
        }
        fp_sgemm(s, rows.count, cols, 1.0f, out, s->columns);
    } else {
        fp_sgemm(s, rows.count, cols, 0.0f, out, s->columns);
        if (s->pointwise != FP_NONE)
            fp_pointwise_tile(a, s, rows, cols, out, s->columns);
    }
}

FP_TEMPLATE void fp_gemm_rows(const struct fp_args *a, const struct fp_step *s,
                              struct fp_range rows)
{
    fp_gemm_tile(a, s, rows, (struct fp_range){0, fp_wide(s)});
}

FP_TEMPLATE void fp_pointwise_rows(const struct fp_args *a, const struct fp_step *s,
                                   struct fp_range rows)
{
    fp_pointwise_tile(a, s, rows, (struct fp_range){0, fp_wide(s)}, s->input, fp_wide(s));
}

FP_TEMPLATE void fp_layernorm_rows(const struct fp_args *a, const struct fp_step *s,
                                   struct fp_range rows)
{
    int n = s->columns;
    for (int r = 0; r < rows.count; r++) {
        const float *x = s->input + (size_t)r * n;
        float *out = s->out + (size_t)r * n, sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < n; c++)
            sum += x[c];
        float mean = sum / (float)n;
#pragma omp simd reduction(+ : squares)
        for (int c = 0; c < n; c++)
            squares += (x[c] - mean) * (x[c] - mean);
        float scale = 1.0f / sqrtf(squares / (float)n + a->eps);
#pragma omp simd
        for (int c = 0; c < n; c++)
            out[c] = (x[c] - mean) * scale * s->gamma[c] + fp_element(s->no_beta, s->beta, c);
    }
}

FP_TEMPLATE void fp_rmsnorm_rows(const struct fp_args *a, const struct fp_step *s,
                                 struct fp_range rows)
{
    int n = s->columns;
    for (int r = 0; r < rows.count; r++) {
        const float *x = s->input + (size_t)r * n;
        float *out = s->out + (size_t)r * n, squares = 0;
#pragma omp simd reduction(+ : squares)
        for (int c = 0; c < n; c++)
            squares += x[c] * x[c];
        float scale = 1.0f / sqrtf(squares / (float)n + a->eps);
#pragma omp simd
        for (int c = 0; c < n; c++)
            out[c] = x[c] * scale * s->gamma[c];
    }
}

/* The number of column tiles of a GEMM, each of at most col_block columns.  If col_block is 0: the
 * smallest number that gives every thread the same number of tiles. */
FP_TEMPLATE int fp_column_tiles(int columns, int col_block, int row_blocks)
{
    if (col_block > 0)
        return (columns + col_block - 1) / col_block;
    int threads = omp_get_num_threads(), tiles = 1;
    while (row_blocks * tiles % threads != 0)
        tiles++;
    int most = (columns + FP_BLOCK - 1) / FP_BLOCK;
    return fp_min(tiles, most);
}

/* Stages of one step.  Threads share its tiles or row blocks and do not wait at its end. */

FP_TEMPLATE void fp_gemm_stage(const struct fp_args *a, const struct fp_step *all, int row_block,
                               int col_block)
{
    int row_blocks = fp_row_blocks(a, row_block);
    int tiles = fp_column_tiles(fp_wide(all), col_block, row_blocks);
#pragma omp for schedule(static) nowait
    for (int i = 0; i < row_blocks * tiles; i++) {
        struct fp_range rows = fp_row_block(a, row_block, i % row_blocks);
        struct fp_range cols = fp_part(fp_wide(all), 16, tiles, i / row_blocks);
        struct fp_step s = fp_step_at(all, rows);
        if (cols.count > 0)
            fp_gemm_tile(a, &s, rows, cols);
    }
}

enum { FP_FEW_ROWS = 8 }; /* of a block in a stage without a GEMM: they fit the first-level cache */

FP_TEMPLATE void fp_pointwise_stage(const struct fp_args *a, const struct fp_step *all)
{
    int blocks = fp_row_blocks(a, FP_FEW_ROWS);
#pragma omp for schedule(static) nowait
    for (int i = 0; i < blocks; i++) {
        struct fp_range rows = fp_row_block(a, FP_FEW_ROWS, i);
        struct fp_step s = fp_step_at(all, rows);
        fp_pointwise_rows(a, &s, rows);
    }
}

/* The rows of a block, at most `size`, if every thread gets the same number of blocks. */
FP_TEMPLATE int fp_even_rows(const struct fp_args *a, int size)
{
    int rows = 0, threads = omp_get_num_threads();
    for (int b = 0; b < a->batch; b++)
        rows += fp_length(a, b);
    int blocks = (rows + size - 1) / size;
    blocks = (blocks + threads - 1) / threads * threads;
    return blocks > 0 ? (rows + blocks - 1) / blocks : size;
}

#endif
