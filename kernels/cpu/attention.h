/* A run of scores, mask, softmax and context that begins or ends at a tensor (B,H,S,S).
 *
 * One block of query rows of one head goes through all operators of the run while its scores are in
 * the cache.  The scores are in the output if the run stores them, else in scratch memory.  Only
 * key blocks with a kept key are touched.  merge_heads decides where the context is stored. */
#ifndef FUSEPLAN_CPU_ATTENTION_H
#define FUSEPLAN_CPU_ATTENTION_H

#include "blocks.h"
#include "vecmath.h"

#include <cblas.h>

enum fp_attention_op {
    FP_SCORES,
    FP_MASK,
    FP_BIAS_MASK = FP_MASK,
    FP_SOFTMAX,
    FP_CONTEXT,
    FP_MERGE
};

struct fp_attention {
    enum fp_attention_op first, last;
    const float *qkv;        /* 3x(B,H,S,W) of a run with scores or context */
    const float *input;      /* (B,H,S,S) of a run without scores */
    const float *score_bias; /* (H,2S-1), added in front of the mask; or null */
    float *out;              /* (B,H,S,S), (B,H,S,W) or (B,S,D) */
};

/* The scores of one query block, rows of S or more columns. */
struct fp_panel {
    float *data;
    int stride;
};

FP_TEMPLATE void fp_panel_scores(const struct fp_args *a, const struct fp_query_block *q,
                                 const float *qkv, struct fp_panel p)
{
    int width = a->head_size;
    const float *query = fp_head(a, q, qkv, 0) + (size_t)q->first * width;
    const float *key = fp_head(a, q, qkv, 1);
    float scale = 1.0f / sqrtf((float)width);
    for (int e = q->entry, next; e < q->end; e = next) {
        next = fp_run_end(a, q, e);
        int first = fp_keys(a, q, e).first;
        struct fp_range last = fp_keys(a, q, next - 1);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, q->rows,
                    last.first + last.count - first, width, scale, query, width,
                    key + (size_t)first * width, width, 0.0f, p.data + first, p.stride);
    }
}

/* Copies the key blocks of q from `in` to the panel. */
FP_TEMPLATE void fp_panel_copy(const struct fp_args *a, const struct fp_query_block *q,
                               struct fp_panel in, struct fp_panel p)
{
    for (int e = q->entry; e < q->end; e++) {
        struct fp_range keys = fp_keys(a, q, e);
        for (int r = 0; r < q->rows; r++)
            memcpy(p.data + (size_t)r * p.stride + keys.first,
                   in.data + (size_t)r * in.stride + keys.first,
                   (size_t)keys.count * sizeof(float));
    }
}

/* Adds to score (i,j) the number of its head and of j - i. */
FP_TEMPLATE void fp_panel_bias(const struct fp_args *a, const struct fp_query_block *q,
                               const float *score_bias, struct fp_panel p)
{
    for (int e = q->entry; e < q->end; e++) {
        struct fp_range keys = fp_keys(a, q, e);
        for (int r = 0; r < q->rows; r++) {
            float *x = p.data + (size_t)r * p.stride + keys.first;
            const float *bias = fp_score_bias(a, score_bias, q->head, q->first + r) + keys.first;
#pragma omp simd
            for (int c = 0; c < keys.count; c++)
                x[c] += bias[c];
        }
    }
}

/* Sets the scores of masked keys to minus infinity. */
FP_TEMPLATE void fp_panel_mask(const struct fp_args *a, const struct fp_query_block *q,
                               struct fp_panel p)
{
    for (int e = q->full; e < q->end; e++) {
        struct fp_range keys = fp_keys(a, q, e);
        const uint64_t *words = fp_row_words(a, q, e);
        for (int r = 0; r < q->rows; r++) {
            float *x = p.data + (size_t)r * p.stride + keys.first;
#pragma omp simd
            for (int c = 0; c < keys.count; c++)
                x[c] = (words[r] >> c & 1) != 0 ? x[c] : -INFINITY;
        }
    }
}

/* Softmax of one row over the key blocks of q; a row without a kept key becomes zeros. */
FP_TEMPLATE void fp_softmax_row(const struct fp_args *a, const struct fp_query_block *q, float *row)
{
    float most = -INFINITY, sum = 0;
    for (int e = q->entry; e < q->end; e++) {
        struct fp_range keys = fp_keys(a, q, e);
        const float *x = row + keys.first;
#ifndef __clang__ /* which warns that it cannot do that for a maximum of floats */
#pragma omp simd reduction(max : most)
#endif
        for (int c = 0; c < keys.count; c++)
            most = x[c] > most ? x[c] : most;
    }
    most = most == -INFINITY ? 0.0f : most;
    for (int e = q->entry; e < q->end; e++) {
        struct fp_range keys = fp_keys(a, q, e);
        float *x = row + keys.first;
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < keys.count; c++) {
            x[c] = fp_exp(x[c] - most);
            sum += x[c];
        }
    }
    float scale = sum > 0 ? 1.0f / sum : 0.0f;
    for (int e = q->entry; e < q->end; e++) {
        struct fp_range keys = fp_keys(a, q, e);
        float *x = row + keys.first;
#pragma omp simd
        for (int c = 0; c < keys.count; c++)
            x[c] *= scale;
    }
}

/* Clears the columns that no key block of q covers. */
FP_TEMPLATE void fp_panel_zero_rest(const struct fp_args *a, const struct fp_query_block *q,
                                    struct fp_panel p)
{
    for (int block = 0; block < a->mask.blocks; block++) {
        int first = block * FP_BLOCK, end = fp_min(a->seq_len, first + FP_BLOCK);
        for (int e = q->entry; e < q->end; e++)
            if (a->mask.key_block[e] == block)
                first += fp_keys(a, q, e).count;
        for (int r = 0; r < q->rows; r++)
            memset(p.data + (size_t)r * p.stride + first, 0, (size_t)(end - first) * sizeof(float));
    }
}

FP_TEMPLATE void fp_panel_context(const struct fp_args *a, const struct fp_query_block *q,
                                  struct fp_panel p, const float *qkv, struct fp_context out)
{
    int width = a->head_size;
    const float *value = fp_head(a, q, qkv, 2);
    if (q->entry == q->end)
        for (int r = 0; r < q->rows; r++)
            memset(out.data + (size_t)r * out.stride, 0, (size_t)width * sizeof(float));
    for (int e = q->entry, next; e < q->end; e = next) {
        next = fp_run_end(a, q, e);
        int first = fp_keys(a, q, e).first;
        struct fp_range last = fp_keys(a, q, next - 1);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, q->rows, width,
                    last.first + last.count - first, 1.0f, p.data + first, p.stride,
                    value + (size_t)first * width, width, e == q->entry ? 0.0f : 1.0f, out.data,
                    out.stride);
    }
}

FP_TEMPLATE struct fp_panel fp_panel_in(const struct fp_args *a, const struct fp_query_block *q,
                                        float *scores)
{
    size_t row = ((size_t)q->b * a->heads + q->head) * a->seq_len + q->first;
    return (struct fp_panel){scores + row * a->seq_len, a->seq_len};
}

FP_TEMPLATE void fp_attention_block(const struct fp_args *a, const struct fp_attention *t,
                                    const struct fp_query_block *q)
{
    struct fp_panel in = {0}, p;
    if (t->first != FP_SCORES)
        in = fp_panel_in(a, q, (float *)t->input);
    if (t->last < FP_CONTEXT)
        p = fp_panel_in(a, q, t->out);
    else if (t->first == FP_CONTEXT)
        p = in;
    else
        p = (struct fp_panel){fp_scratch((size_t)FP_BLOCK * FP_BLOCK * a->mask.blocks),
                              FP_BLOCK * a->mask.blocks};

    if (t->first == FP_SCORES)
        fp_panel_scores(a, q, t->qkv, p);
    else if (t->first != FP_CONTEXT)
        fp_panel_copy(a, q, in, p);
    int masks = t->first <= FP_MASK && t->last >= FP_MASK;
    if (masks && t->score_bias != NULL)
        fp_panel_bias(a, q, t->score_bias, p);
    if (masks || t->first == FP_SOFTMAX)
        fp_panel_mask(a, q, p);
    if (t->first <= FP_SOFTMAX && t->last >= FP_SOFTMAX)
        for (int r = 0; r < q->rows; r++)
            fp_softmax_row(a, q, p.data + (size_t)r * p.stride);
    if (t->last == FP_SOFTMAX)
        fp_panel_zero_rest(a, q, p);
    if (t->last >= FP_CONTEXT)
        fp_panel_context(a, q, p, t->qkv, fp_context_of(a, q, t->last == FP_MERGE, t->out));
}

FP_TEMPLATE void fp_attention_stage(const struct fp_args *a, const struct fp_attention *t)
{
    int blocks = fp_query_blocks(a);
#pragma omp for schedule(dynamic) nowait
    for (int i = 0; i < blocks; i++) {
        struct fp_query_block q = fp_query_block(a, i);
        if (q.rows > 0)
            fp_attention_block(a, t, &q);
    }
}

#endif
