/* Hand-written attention for scores..merge_heads: exact softmax over gathered keys.
 *
 * It shares no algorithm with streaming_attention.h.  The unit of work is a group of 16 query rows
 * of one head.  The keys that at least one of them keeps are gathered, so that the cost of a sparse
 * mask follows from the keys that it keeps, not from the 64x64 blocks that it touches.  Two passes
 * over these keys follow, without rescaling: scores (keys,16) with their maximum, then exp, sum and
 * context.  A vector holds one number of each of the 16 queries. */
#ifndef FUSEPLAN_CPU_HANDWRITTEN_ATTENTION_H
#define FUSEPLAN_CPU_HANDWRITTEN_ATTENTION_H

#include "common.h"
#include "vecmath.h"

enum { FP_GROUP = 16 };

typedef float fp_group_f __attribute__((vector_size(4 * FP_GROUP), may_alias));
typedef uint32_t fp_group_u __attribute__((vector_size(4 * FP_GROUP), may_alias));

#if defined(__AVX512F__)
enum { FP_GROUP_TILE = 12 }; /* sums in registers: hides the latency of a multiply-add */
#elif defined(__AVX__)
enum { FP_GROUP_TILE = 4 };
#else
enum { FP_GROUP_TILE = 2 };
#endif

/* One group of query rows and the thread's scratch for it. */
struct fp_group {
    int b, head, block, row, rows; /* row: the first one in its batch row; rows <= 16 */
    int keys;                      /* that at least one row keeps */
    fp_group_f *query;             /* (W) scaled by 1/sqrt(W) */
    fp_group_f *scores;            /* (keys), later exp(score - maximum) */
    fp_group_f *context;           /* (W) */
    const float *key, *value;      /* (keys,W): in place if they are neighbours, else gathered */
    int *rows_of_keys;             /* (keys) */
    float *gathered;               /* room for 2x(keys,W) */
    const float *score_bias;       /* (H,2S-1) or null */
};

/* The first element of row `row` of the group's head in q, k or v (part 0, 1, 2). */
FP_TEMPLATE const float *fp_group_row(const struct fp_args *a, const struct fp_group *g,
                                      const float *qkv, int part, int row)
{
    size_t head = ((size_t)part * a->batch + g->b) * a->heads + g->head;
    return qkv + (head * a->seq_len + row) * a->head_size;
}

/* The keys of one block that at least one row of the group keeps, as bits. */
FP_TEMPLATE uint64_t fp_group_keeps(const struct fp_group *g, const uint64_t *words)
{
    uint64_t any = 0;
    for (int r = 0; r < FP_GROUP; r++)
        any |= words[g->row % FP_BLOCK + r];
    return any;
}

/* The row words of one block, lane r for row r of the group: keys 0..31, then keys 32..63. */
struct fp_group_words {
    fp_group_u half[2];
};

/* By address: compilers warn of wide vectors as values where the CPU has none. */
FP_TEMPLATE void fp_group_words(const struct fp_group *g, const uint64_t *words,
                                struct fp_group_words *w)
{
    for (int r = 0; r < FP_GROUP; r++) {
        w->half[0][r] = (uint32_t)words[g->row % FP_BLOCK + r];
        w->half[1][r] = (uint32_t)(words[g->row % FP_BLOCK + r] >> 32);
    }
}

/* What the score of a key starts as: 0, or a number of its head and distance. */
FP_TEMPLATE void fp_group_start(const struct fp_args *a, const struct fp_group *g, int key,
                                fp_group_f *out)
{
    *out = (fp_group_f){0};
    for (int r = 0; g->score_bias != NULL && r < g->rows; r++)
        (*out)[r] = fp_score_bias(a, g->score_bias, g->head, g->row + r)[key];
}

/* Lists the keys that the group needs.  Scores start as minus infinity for masked keys. */
FP_TEMPLATE void fp_group_list_keys(const struct fp_args *a, struct fp_group *g)
{
    const struct fp_blocks *m = &a->mask;
    int list = (m->lists > 1 ? g->b * m->blocks : 0) + g->block;
    g->keys = 0;
    for (int e = m->start[list]; e < m->start[list + 1]; e++) {
        const uint64_t *words = m->bits[e] < 0 ? NULL : m->words + (size_t)m->bits[e] * FP_BLOCK;
        uint64_t left = words != NULL ? fp_group_keeps(g, words) : UINT64_MAX;
        struct fp_group_words lanes = {0};
        if (words != NULL)
            fp_group_words(g, words, &lanes);
        for (; left != 0; left &= left - 1) {
            int c = __builtin_ctzll(left);
            g->rows_of_keys[g->keys] = m->key_block[e] * FP_BLOCK + c;
            fp_group_u masked = {0}; /* all ones in the lanes whose row masks the key */
            if (words != NULL)
                masked = (lanes.half[c / 32] >> c % 32 & 1) - 1;
            fp_group_f start;
            fp_group_start(a, g, g->rows_of_keys[g->keys], &start);
            g->scores[g->keys++] = /* minus infinity */
                (fp_group_f)(((fp_group_u)start & ~masked) | (masked & 0xff800000u));
        }
    }
}

FP_TEMPLATE void fp_group_gather(const struct fp_args *a, struct fp_group *g, const float *qkv)
{
    int width = a->head_size, first = g->keys > 0 ? g->rows_of_keys[0] : 0;
    g->key = fp_group_row(a, g, qkv, 1, first);
    g->value = fp_group_row(a, g, qkv, 2, first);
    int i = 0;
    while (i < g->keys && g->rows_of_keys[i] == first + i)
        i++;
    if (i == g->keys)
        return;
    float *key = g->gathered, *value = g->gathered + (size_t)g->keys * width;
    for (i = 0; i < g->keys; i++) {
        ptrdiff_t from = (ptrdiff_t)(g->rows_of_keys[i] - first) * width;
        size_t to = (size_t)i * width;
#pragma omp simd
        for (int w = 0; w < width; w++) {
            key[to + w] = g->key[from + w];
            value[to + w] = g->value[from + w];
        }
    }
    g->key = key;
    g->value = value;
}

FP_TEMPLATE void fp_group_load_query(const struct fp_args *a, const struct fp_group *g,
                                     const float *qkv)
{
    int width = a->head_size;
    float scale = 1.0f / sqrtf((float)width);
    if (g->rows < FP_GROUP)
        memset(g->query, 0, (size_t)width * sizeof(*g->query));
    fp_transpose(g->rows, width, fp_group_row(a, g, qkv, 0, g->row), (size_t)width,
                 (float *)g->query, FP_GROUP);
    for (int w = 0; w < width; w++)
        g->query[w] *= scale;
}

/* out[i] += sum over c of m[i*row + c*col] * x[c], i = 0..count-1, in registers. */
FP_TEMPLATE void fp_group_tile(int count, int n, const float *m, size_t row, size_t col,
                               const fp_group_f *x, fp_group_f *out)
{
    fp_group_f sum[FP_GROUP_TILE];
    for (int i = 0; i < count; i++)
        sum[i] = out[i];
    for (int c = 0; c < n; c++)
        for (int i = 0; i < count; i++)
            sum[i] += m[i * row + c * col] * x[c];
    for (int i = 0; i < count; i++)
        out[i] = sum[i];
}

FP_TEMPLATE void fp_group_product(int count, int n, const float *m, size_t row, size_t col,
                                  const fp_group_f *x, fp_group_f *out)
{
    int i = 0;
    for (; i + FP_GROUP_TILE <= count; i += FP_GROUP_TILE)
        fp_group_tile(FP_GROUP_TILE, n, m + i * row, row, col, x, out + i);
    for (; i < count; i++)
        fp_group_tile(1, n, m + i * row, row, col, x, out + i);
}

/* exp(score - maximum) in place; scale gets 1/sum, 0 in a lane whose row keeps no key. */
FP_TEMPLATE void fp_group_softmax(const struct fp_group *g, float scale[FP_GROUP])
{
    float *scores = (float *)g->scores, most[FP_GROUP], sum[FP_GROUP] = {0};
    for (int r = 0; r < FP_GROUP; r++)
        most[r] = -INFINITY;
    for (int i = 0; i < g->keys; i++)
#pragma omp simd
        for (int r = 0; r < FP_GROUP; r++)
            most[r] = scores[i * FP_GROUP + r] > most[r] ? scores[i * FP_GROUP + r] : most[r];
    for (int r = 0; r < FP_GROUP; r++)
        most[r] = most[r] == -INFINITY ? 0.0f : most[r];
    for (int i = 0; i < g->keys; i++)
#pragma omp simd
        for (int r = 0; r < FP_GROUP; r++) {
            scores[i * FP_GROUP + r] = fp_exp(scores[i * FP_GROUP + r] - most[r]);
            sum[r] += scores[i * FP_GROUP + r];
        }
    for (int r = 0; r < FP_GROUP; r++)
        scale[r] = sum[r] > 0 ? 1.0f / sum[r] : 0.0f;
}

FP_TEMPLATE void fp_group_store(const struct fp_args *a, const struct fp_group *g,
                                const float scale[FP_GROUP], float *out)
{
    size_t row = fp_first_row(a, g->b) + (size_t)g->row;
    float *context = (float *)g->context;
    for (int w = 0; w < a->head_size; w++)
#pragma omp simd
        for (int r = 0; r < FP_GROUP; r++)
            context[w * FP_GROUP + r] *= scale[r];
    fp_transpose(a->head_size, g->rows, context, FP_GROUP,
                 out + (row * a->heads + g->head) * a->head_size, (size_t)fp_heads_columns(a));
}

FP_TEMPLATE void fp_group_run(const struct fp_args *a, struct fp_group *g, const float *qkv,
                              float *out)
{
    int width = a->head_size;
    fp_group_load_query(a, g, qkv);
    fp_group_list_keys(a, g);
    fp_group_gather(a, g, qkv);
    fp_group_product(g->keys, width, g->key, (size_t)width, 1, g->query, g->scores);
    float scale[FP_GROUP];
    fp_group_softmax(g, scale);
    memset(g->context, 0, (size_t)width * sizeof(*g->context));
    fp_group_product(width, g->keys, g->value, 1, (size_t)width, g->scores, g->context);
    fp_group_store(a, g, scale, out);
}

/* qkv 3x(B,H,S,W) to out (B,S,D).  score_bias: (H,2S-1) or null. */
FP_TEMPLATE void fp_handwritten_biased(const struct fp_args *a, const float *qkv,
                                       const float *score_bias, float *out)
{
    int blocks = a->mask.blocks, heads = a->batch * a->heads;
    size_t width = (size_t)a->head_size, keys = (size_t)blocks * FP_BLOCK;
    size_t lanes = (2 * width + keys) * FP_GROUP, gathered = 2 * keys * width;
#pragma omp for schedule(dynamic) nowait
    for (int i = 0; i < blocks * heads; i++) {
        float *scratch = fp_scratch(lanes + gathered + keys);
        struct fp_group g = {.b = i % heads / a->heads,
                             .head = i % a->heads,
                             .block = blocks - 1 - i / heads, /* long rows of a causal mask first */
                             .query = (fp_group_f *)scratch,
                             .context = (fp_group_f *)scratch + width,
                             .scores = (fp_group_f *)scratch + 2 * width,
                             .gathered = scratch + lanes,
                             .score_bias = score_bias,
                             .rows_of_keys = (int *)(scratch + lanes + gathered)};
        int end = fp_min((g.block + 1) * FP_BLOCK, fp_length(a, g.b));
        for (g.row = g.block * FP_BLOCK; g.row < end; g.row += FP_GROUP) {
            g.rows = fp_min(FP_GROUP, end - g.row);
            fp_group_run(a, &g, qkv, out);
        }
    }
}

FP_TEMPLATE void fp_handwritten_attention(const struct fp_args *a, const float *qkv, float *out)
{
    fp_handwritten_biased(a, qkv, NULL, out);
}

#endif
