/* Scores, mask, softmax and context in one pass over the key blocks: no scores in memory.
 *
 * For each block of 64 query rows of one head the key blocks are read one after another.  A running
 * maximum m and sum l of each query row, and a context that is rescaled whenever m grows, give the
 * softmax at the end (Milakov and Gimelshein: Online normalizer calculation for softmax, 2018; Dao
 * et al.: FlashAttention, 2022).
 *
 * Everything is held transposed, with queries along the vector: scores (keys, 64), context (W, 64).
 * So keys and values are read in place as scalars, whatever W is, and softmax needs no reduction
 * within a vector.  Query and context are transposed once for each block of query rows. */
#ifndef FUSEPLAN_CPU_STREAMING_ATTENTION_H
#define FUSEPLAN_CPU_STREAMING_ATTENTION_H

#include "blocks.h"
#include "vecmath.h"

#if defined(__AVX512F__)
#define FP_LANES 16
#elif defined(__AVX__)
#define FP_LANES 8
#else
#define FP_LANES 4
#endif

typedef float fp_vec __attribute__((vector_size(4 * FP_LANES), aligned(4)));

struct fp_stream {
    const float *qkv;        /* 3x(B,H,S,W), or, to be split, (B,S,3D) */
    const float *bias;       /* (3D) or null */
    int no_bias;             /* not 0: to be split without one */
    const float *turn;       /* (S,W) by which q and k are turned; null: they are not */
    const float *score_bias; /* (H,2S-1) or null */
    int merged;              /* out is (B,S,D), else (B,H,S,W) */
    float *out;
};

/* What one thread holds; a row has one float for each of 64 queries. */
struct fp_stream_state {
    float *query;   /* (W,64), scaled by 1/sqrt(W) */
    float *scores;  /* (64 keys, 64) */
    float *context; /* (W,64) */
    float *most, *sum, *rescale;
    float *keys, *values; /* (64,W): copies with the bias added */
};

FP_TEMPLATE struct fp_stream_state fp_stream_state(int width)
{
    const size_t row = FP_BLOCK, panel = row * (size_t)width;
    float *p = fp_scratch(4 * panel + row * row + 3 * row);
    return (struct fp_stream_state){.query = p,
                                    .context = p + panel,
                                    .keys = p + 2 * panel,
                                    .values = p + 3 * panel,
                                    .scores = p + 4 * panel,
                                    .most = p + 4 * panel + row * row,
                                    .sum = p + 4 * panel + row * row + row,
                                    .rescale = p + 4 * panel + row * row + 2 * row};
}

enum { FP_TILE_ROWS = 4, FP_TILE_VECS = FP_LANES == 16 ? 4 : 2 }; /* fit the register file */

/* out(i,:) = or += sum over c of m[i*row + c*col] * x(c,:) for i in 0..rows-1, a register tile. */
FP_TEMPLATE void fp_register_tile(int rows, int n, const float *m, size_t row, size_t col,
                                  const float *x, int add, float *out)
{
    fp_vec sum[FP_TILE_ROWS][FP_TILE_VECS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < FP_TILE_VECS; v++)
            sum[i][v] =
                add != 0 ? *(const fp_vec *)(out + i * FP_BLOCK + v * FP_LANES) : (fp_vec){0};
    for (int c = 0; c < n; c++)
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < FP_TILE_VECS; v++)
                sum[i][v] += m[(size_t)i * row + (size_t)c * col] *
                             *(const fp_vec *)(x + c * FP_BLOCK + v * FP_LANES);
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < FP_TILE_VECS; v++)
            *(fp_vec *)(out + i * FP_BLOCK + v * FP_LANES) = sum[i][v];
}

/* out (rows,64) = or += m (rows,n) @ x (n,64) */
FP_TEMPLATE void fp_small_gemm(int rows, int n, const float *m, size_t row, size_t col,
                               const float *x, int add, float *out)
{
    const int step = FP_TILE_VECS * FP_LANES;
    for (int v = 0; v < FP_BLOCK; v += step) {
        int i = 0;
        for (; i + FP_TILE_ROWS <= rows; i += FP_TILE_ROWS)
            fp_register_tile(FP_TILE_ROWS, n, m + i * row, row, col, x + v, add,
                             out + i * FP_BLOCK + v);
        for (; i < rows; i++)
            fp_register_tile(1, n, m + i * row, row, col, x + v, add, out + i * FP_BLOCK + v);
    }
}

/* Rows of q, k or v (part 0, 1, 2) of one head from `first` on, the distance between rows, and the
 * bias that must still be added, or null. */
struct fp_head_rows {
    const float *data, *bias;
    size_t stride;
};

FP_TEMPLATE struct fp_head_rows fp_head_rows(const struct fp_args *a, const struct fp_stream *t,
                                             const struct fp_query_block *q, int part, int first)
{
    size_t width = (size_t)a->head_size, hidden = (size_t)fp_heads_columns(a);
    if (t->bias == NULL && !t->no_bias)
        return (struct fp_head_rows){fp_head(a, q, t->qkv, part) + (size_t)first * width, NULL,
                                     width};
    size_t row = fp_first_row(a, q->b) + (size_t)first, column = part * hidden + q->head * width;
    return (struct fp_head_rows){t->qkv + row * 3 * hidden + column,
                                 t->bias != NULL ? t->bias + column : NULL, 3 * hidden};
}

/* The same rows with their bias added, and turned by rows of `turn`, in `copy`; the rows themselves
 * if they have no bias and turn is null. */
FP_TEMPLATE struct fp_head_rows fp_add_bias(struct fp_head_rows in, const float *turn, int rows,
                                            int width, float *copy)
{
    if (in.bias == NULL && turn == NULL)
        return in;
    for (int r = 0; r < rows; r++) {
#pragma omp simd
        for (int w = 0; w < width; w++)
            copy[r * width + w] =
                in.data[r * in.stride + w] + (in.bias != NULL ? in.bias[w] : 0.0f);
        if (turn != NULL)
            fp_rotate(copy + r * width, turn + (size_t)r * width, width);
    }
    return (struct fp_head_rows){copy, NULL, (size_t)width};
}

FP_TEMPLATE void fp_stream_begin(struct fp_head_rows query, int rows, int width,
                                 const struct fp_stream_state *s)
{
    const size_t size = (size_t)width * FP_BLOCK;
    const float scale = 1.0f / sqrtf((float)width);
    if (rows < FP_BLOCK)
        memset(s->query, 0, size * sizeof(float));
    fp_transpose(rows, width, query.data, query.stride, s->query, FP_BLOCK);
#pragma omp simd
    for (size_t i = 0; i < size; i++)
        s->query[i] *= scale;
    memset(s->context, 0, size * sizeof(float));
    for (int r = 0; r < FP_BLOCK; r++) {
        s->most[r] = -INFINITY;
        s->sum[r] = 0;
    }
}

FP_TEMPLATE void fp_stream_mask(const uint64_t *words, int keys, float *scores)
{
    uint32_t half[2][FP_BLOCK];
    for (int r = 0; r < FP_BLOCK; r++) {
        half[0][r] = (uint32_t)words[r];
        half[1][r] = (uint32_t)(words[r] >> 32);
    }
    for (int c = 0; c < keys; c++)
#pragma omp simd
        for (int r = 0; r < FP_BLOCK; r++)
            scores[c * FP_BLOCK + r] =
                (half[c / 32][r] >> c % 32 & 1) != 0 ? scores[c * FP_BLOCK + r] : -INFINITY;
}

/* Adds to score (i,j) the number of its head and of j - i. */
FP_TEMPLATE void fp_stream_bias(const struct fp_args *a, const struct fp_query_block *q,
                                const float *score_bias, struct fp_range keys, float *scores)
{
    for (int c = 0; c < keys.count; c++) {
        const float *bias = fp_score_bias(a, score_bias, q->head, q->first) + keys.first + c;
        for (int r = 0; r < q->rows; r++)
            scores[c * FP_BLOCK + r] += bias[-r];
    }
}

/* The rotations of the tokens from `first` on; null: there are none. */
FP_TEMPLATE const float *fp_turns(const struct fp_args *a, const struct fp_stream *t, int first)
{
    return t->turn != NULL ? t->turn + (size_t)first * a->head_size : NULL;
}

/* Turns scores into exp(score - m), and updates m, l and the context. */
FP_TEMPLATE void fp_stream_softmax(int keys, int width, const struct fp_stream_state *s)
{
    float most[FP_BLOCK], shift[FP_BLOCK];
    memcpy(most, s->most, sizeof(most));
    for (int c = 0; c < keys; c++)
#pragma omp simd
        for (int r = 0; r < FP_BLOCK; r++)
            most[r] = s->scores[c * FP_BLOCK + r] > most[r] ? s->scores[c * FP_BLOCK + r] : most[r];
#pragma omp simd
    for (int r = 0; r < FP_BLOCK; r++) {
        shift[r] = most[r] == -INFINITY ? 0.0f : most[r]; /* a row that has met no kept key */
        s->rescale[r] = fp_exp(s->most[r] - shift[r]);
        s->most[r] = most[r];
        s->sum[r] *= s->rescale[r];
    }
    for (int c = 0; c < keys; c++)
#pragma omp simd
        for (int r = 0; r < FP_BLOCK; r++) {
            float p = fp_exp(s->scores[c * FP_BLOCK + r] - shift[r]);
            s->scores[c * FP_BLOCK + r] = p;
            s->sum[r] += p;
        }
    for (int w = 0; w < width; w++)
#pragma omp simd
        for (int r = 0; r < FP_BLOCK; r++)
            s->context[w * FP_BLOCK + r] *= s->rescale[r];
}

FP_TEMPLATE void fp_stream_end(const struct fp_stream_state *s, int rows, int width,
                               struct fp_context out)
{
    float scale[FP_BLOCK];
    for (int r = 0; r < FP_BLOCK; r++)
        scale[r] = s->sum[r] > 0 ? 1.0f / s->sum[r] : 0.0f;
    for (int w = 0; w < width; w++)
#pragma omp simd
        for (int r = 0; r < FP_BLOCK; r++)
            s->context[w * FP_BLOCK + r] *= scale[r];
    fp_transpose(width, rows, s->context, FP_BLOCK, out.data, (size_t)out.stride);
}

FP_TEMPLATE void fp_stream_block(const struct fp_args *a, const struct fp_stream *t,
                                 const struct fp_query_block *q)
{
    const int width = a->head_size;
    struct fp_stream_state s = fp_stream_state(width);
    struct fp_head_rows query = fp_head_rows(a, t, q, 0, q->first);
    query = fp_add_bias(query, fp_turns(a, t, q->first), q->rows, width, s.keys);
    fp_stream_begin(query, q->rows, width, &s);
    for (int e = q->entry; e < q->end; e++) {
        struct fp_range keys = fp_keys(a, q, e);
        struct fp_head_rows k = fp_add_bias(fp_head_rows(a, t, q, 1, keys.first),
                                            fp_turns(a, t, keys.first), keys.count, width, s.keys);
        struct fp_head_rows v =
            fp_add_bias(fp_head_rows(a, t, q, 2, keys.first), NULL, keys.count, width, s.values);
        fp_small_gemm(keys.count, width, k.data, k.stride, 1, s.query, 0, s.scores);
        if (t->score_bias != NULL)
            fp_stream_bias(a, q, t->score_bias, keys, s.scores);
        if (fp_row_words(a, q, e) != NULL)
            fp_stream_mask(fp_row_words(a, q, e), keys.count, s.scores);
        fp_stream_softmax(keys.count, width, &s);
        fp_small_gemm(width, keys.count, v.data, 1, v.stride, s.scores, 1, s.context);
    }
    fp_stream_end(&s, q->rows, width, fp_context_of(a, q, t->merged, t->out));
}

FP_TEMPLATE void fp_stream_stage(const struct fp_args *a, const struct fp_stream *t)
{
    int blocks = fp_query_blocks(a);
#pragma omp for schedule(dynamic) nowait
    for (int i = 0; i < blocks; i++) {
        struct fp_query_block q = fp_query_block(a, i);
        if (q.rows > 0)
            fp_stream_block(a, t, &q);
    }
}

#endif
