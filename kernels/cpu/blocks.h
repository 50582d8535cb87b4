/* The unit of work of attention: a block of query rows of one head and the key blocks it keeps. */
#ifndef FUSEPLAN_CPU_BLOCKS_H
#define FUSEPLAN_CPU_BLOCKS_H

#include "common.h"

struct fp_query_block {
    int b, head;
    int first, rows;      /* query rows; rows is 0 where all are padding */
    int length;           /* real tokens of the batch row */
    int entry, full, end; /* entries of the block lists; those before `full` have no masked key */
};

FP_TEMPLATE int fp_query_blocks(const struct fp_args *a)
{
    return a->batch * a->heads * a->mask.blocks;
}

/* Query block i.  The last query rows of all heads come first: under a causal mask they keep the
 * most keys, and the longest work should start first. */
FP_TEMPLATE struct fp_query_block fp_query_block(const struct fp_args *a, int i)
{
    const struct fp_blocks *m = &a->mask;
    int heads = a->batch * a->heads, block = m->blocks - 1 - i / heads;
    struct fp_query_block q = {.b = i % heads / a->heads, .head = i % a->heads};
    int at = (m->lists > 1 ? q.b * m->blocks : 0) + block;
    q.length = fp_length(a, q.b);
    q.first = block * FP_BLOCK;
    q.rows = q.first < q.length ? fp_min(FP_BLOCK, q.length - q.first) : 0;
    q.entry = m->start[at];
    q.full = q.entry + m->full[at];
    q.end = m->start[at + 1];
    return q;
}

/* The real keys of entry e. */
FP_TEMPLATE struct fp_range fp_keys(const struct fp_args *a, const struct fp_query_block *q, int e)
{
    int first = a->mask.key_block[e] * FP_BLOCK;
    return (struct fp_range){first, fp_min(FP_BLOCK, q->length - first)};
}

/* The row words of entry e; null for a full block. */
FP_TEMPLATE const uint64_t *fp_row_words(const struct fp_args *a, const struct fp_query_block *q,
                                         int e)
{
    return e < q->full ? NULL : a->mask.words + (size_t)a->mask.bits[e] * FP_BLOCK;
}

/* Returns the end of the run of neighbouring key blocks that begins at entry e; one GEMM
 * takes all. */
FP_TEMPLATE int fp_run_end(const struct fp_args *a, const struct fp_query_block *q, int e)
{
    int next = e + 1;
    while (next < q->end && a->mask.key_block[next] == a->mask.key_block[next - 1] + 1)
        next++;
    return next;
}

/* q, k or v (part 0, 1, 2) of a query block's head in a tensor 3x(B,H,S,W). */
FP_TEMPLATE const float *fp_head(const struct fp_args *a, const struct fp_query_block *q,
                                 const float *qkv, int part)
{
    size_t head = ((size_t)part * a->batch + q->b) * a->heads + q->head;
    return qkv + head * a->seq_len * a->head_size;
}

/* Where the context of a query block is stored: its first row, and the distance between rows. */
struct fp_context {
    float *data;
    int stride;
};

FP_TEMPLATE struct fp_context fp_context_of(const struct fp_args *a, const struct fp_query_block *q,
                                            int merged, float *out)
{
    int width = a->head_size;
    if (merged != 0) {
        size_t row = fp_first_row(a, q->b) + (size_t)q->first;
        return (struct fp_context){out + (row * a->heads + q->head) * width, fp_heads_columns(a)};
    }
    size_t row = ((size_t)q->b * a->heads + q->head) * a->seq_len + q->first;
    return (struct fp_context){out + row * width, width};
}

#endif
