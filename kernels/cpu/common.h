/* What all kernels share: sizes, blocks of real rows, scratch memory. */
#ifndef FUSEPLAN_CPU_COMMON_H
#define FUSEPLAN_CPU_COMMON_H

#include "abi.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Kernels are templates: inlined, they are specialised for the constants they are called with. */
#define FP_TEMPLATE static inline __attribute__((always_inline))

FP_TEMPLATE int fp_min(int a, int b)
{
    return a < b ? a : b;
}

FP_TEMPLATE int fp_hidden(const struct fp_args *a)
{
    return a->hidden;
}

/* Of all heads side by side. */
FP_TEMPLATE int fp_heads_columns(const struct fp_args *a)
{
    return a->heads * a->head_size;
}

FP_TEMPLATE int fp_length(const struct fp_args *a, int b)
{
    return a->lengths != NULL ? a->lengths[b] : a->seq_len;
}

/* The first row of a batch row in tensors of token rows. */
FP_TEMPLATE size_t fp_first_row(const struct fp_args *a, int b)
{
    return a->offset != NULL ? (size_t)a->offset[b] : (size_t)b * a->seq_len;
}

/* The rows of tensors of token rows where they have no padding between them, else 0. */
FP_TEMPLATE int fp_whole_rows(const struct fp_args *a)
{
    if (a->offset != NULL)
        return a->offset[a->batch];
    return a->lengths == NULL ? a->batch * a->seq_len : 0;
}

/* Turns each pair of columns c and c + W/2 of a head by the cosine and the sine of its place. */
FP_TEMPLATE void fp_rotate(float *x, const float *turn, int width)
{
    int half = width / 2;
#pragma omp simd
    for (int c = 0; c < half; c++) {
        float low = x[c], high = x[c + half];
        x[c] = low * turn[2 * c] - high * turn[2 * c + 1];
        x[c + half] = high * turn[2 * c] + low * turn[2 * c + 1];
    }
}

/* Where the numbers begin that a score bias (H,2S-1) adds to the scores of query i: key 0's. */
FP_TEMPLATE const float *fp_score_bias(const struct fp_args *a, const float *score_bias, int head,
                                       int i)
{
    return score_bias + (size_t)head * (2 * a->seq_len - 1) + (a->seq_len - 1 - i);
}

struct fp_range {
    int first, count;
};

/* Part i of `parts` equal parts of 0..n-1, cut at multiples of `align`. */
FP_TEMPLATE struct fp_range fp_part(int n, int align, int parts, int i)
{
    int64_t units = (n + align - 1) / align;
    int first = (int)(units * i / parts) * align;
    int end = fp_min(n, (int)(units * (i + 1) / parts) * align);
    return (struct fp_range){first, end - first};
}

/* The number of equal blocks, of at most `size` real rows, into which token rows are cut.  Without
 * padding the whole batch is cut as one; with padding a block lies in one batch row. */
FP_TEMPLATE int fp_row_blocks(const struct fp_args *a, int size)
{
    if (fp_whole_rows(a) > 0)
        return (fp_whole_rows(a) + size - 1) / size;
    int blocks = 0;
    for (int b = 0; b < a->batch; b++)
        blocks += (a->lengths[b] + size - 1) / size;
    return blocks;
}

FP_TEMPLATE struct fp_range fp_row_block(const struct fp_args *a, int size, int i)
{
    if (fp_whole_rows(a) > 0)
        return fp_part(fp_whole_rows(a), 1, fp_row_blocks(a, size), i);
    for (int b = 0;; b++) {
        int blocks = (a->lengths[b] + size - 1) / size;
        if (i < blocks) {
            struct fp_range rows = fp_part(a->lengths[b], 1, blocks, i);
            rows.first += b * a->seq_len;
            return rows;
        }
        i -= blocks;
    }
}

/* The first element of a row block in a tensor of token rows. */
FP_TEMPLATE float *fp_rows_of(float *tensor, struct fp_range rows, int columns)
{
    return tensor + (size_t)rows.first * columns;
}

/* This thread's scratch memory: at least `count` floats, aligned to a cache line.  It is kept
 * between calls.  The next call may move it, so it has one user at a time.  A library, whose
 * threads come and go, defines FP_SCRATCH as a function of its own that frees it when the thread
 * ends. */
#ifdef FP_SCRATCH
float *FP_SCRATCH(size_t count);
#define fp_scratch FP_SCRATCH
#else
static inline float *fp_scratch(size_t count)
{
    static _Thread_local struct {
        float *data;
        size_t count;
    } scratch;
    if (count > scratch.count) {
        free(scratch.data);
        scratch.count = (count + 1023) / 1024 * 1024;
        scratch.data = aligned_alloc(64, scratch.count * sizeof(float));
        if (scratch.data == NULL)
            abort();
    }
    return scratch.data;
}
#endif

/* Clears the padded rows of a tensor (B,S,columns). */
FP_TEMPLATE void fp_zero_padding(const struct fp_args *a, float *tensor, int columns)
{
    if (a->offset != NULL)
        return;
#pragma omp for schedule(static) nowait
    for (int b = 0; b < a->batch; b++) {
        size_t first = (size_t)b * a->seq_len + fp_length(a, b);
        size_t rows = (size_t)(a->seq_len - fp_length(a, b));
        memset(tensor + first * columns, 0, rows * columns * sizeof(float));
    }
}

#endif
