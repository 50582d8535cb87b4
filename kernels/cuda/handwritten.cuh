/* Scores, mask, softmax, context and merged heads as one kernel, written by hand for pos0 = 1, for
 * every mask.  Shares nothing with attention.cuh but the block lists.
 *
 * A warp keeps 16 query rows and everything else in registers; its loop has no staging and no
 * barrier.  As a product may sum over its inner index in any order, a lane reads 16 contiguous
 * bytes of a row and uses them as its part of a fragment; movmatrix transposes the parts of v.
 *
 * With SPLIT_KEYS, for few or short sequences, a thread block has 16 query rows and each warp a
 * quarter of every key block; the four partial results are joined by their maxima and sums. Without
 * it a thread block has 64 query rows, each warp 16 rows and all keys. */
#ifndef FUSEPLAN_CUDA_HANDWRITTEN_CUH
#define FUSEPLAN_CUDA_HANDWRITTEN_CUH

#include "attention.h"
#include "common.cuh"

namespace fp
{

/* What the thread block works on: rows `first_row`.. of one head. */
struct hand_tile {
    int batch, head, block, quarter, length, entry, entries;
    i64 matrix; /* of (B,H) */

    /* parts: thread blocks that share 64 query rows. */
    FP_DEVICE hand_tile(const fp_args &a, int index, int parts)
    {
        int each = (a.mask.lists == 1 ? a.batch : 1) * a.heads * parts;
        int list = a.mask.order ? a.mask.order[index / each] : index / each;
        int rest = index % each;
        quarter = rest % parts;
        head = rest / parts % a.heads;
        batch = a.mask.lists == 1 ? rest / parts / a.heads : list / a.mask.blocks;
        block = list % a.mask.blocks;
        length = a.lengths ? a.lengths[batch] : a.seq_len;
        entry = a.mask.start[list];
        entries = a.mask.start[list + 1];
        matrix = static_cast<i64>(batch) * a.heads + head;
    }
};

/* What is added to the scores of a head for the distance of key and query; beyond the sequence
 * nothing that counts. */
struct hand_bias {
    const float *row; /* (2S-1) */
    int seq_len;

    FP_DEVICE hand_bias(const fp_args &a, const fp_attention &io, int head)
        : row(static_cast<const float *>(*io.score_bias) + head * (2 * a.seq_len - 1)),
          seq_len(a.seq_len)
    {
    }
    FP_DEVICE float at(int query, int key) const
    {
        return row[min(max(key - query + seq_len - 1, 0), 2 * seq_len - 2)];
    }
};

template <int N> FP_DEVICE void load_words(u32 (&r)[N], const void *p, bool valid)
{
    static_assert(N == 2 || N == 4, "8 or 16 bytes");
#pragma unroll
    for (int i = 0; i < N; i++)
        r[i] = 0;
    if (!valid)
        return;
    if constexpr (N == 4) {
        uint4 x = *static_cast<const uint4 *>(p);
        r[0] = x.x, r[1] = x.y, r[2] = x.z, r[3] = x.w;
    } else {
        uint2 x = *static_cast<const uint2 *>(p);
        r[0] = x.x, r[1] = x.y;
    }
}

template <class D, int W, bool SPLIT_KEYS, bool SCORE_BIAS = false> struct hand_attention {
    using T = elem<D>;
    static constexpr bool HALF = is_half<D>;
    static constexpr int ROW = W * sizeof(T) / 4;       /* words of a row */
    static constexpr int WORDS = ROW % 16 == 0 ? 4 : 2; /* that a lane reads at once */
    static constexpr int SLABS = (ROW + 4 * WORDS - 1) / (4 * WORDS); /* of q and k */
    static constexpr int KEYS = SPLIT_KEYS ? 16 : BLOCK, TILES = KEYS / 8;
    static constexpr int GROUP = W % 32 == 0 ? 4 : 2; /* column tiles that share a load of v */
    static constexpr int GROUPS = (W + 8 * GROUP - 1) / (8 * GROUP);
    static constexpr int PARTS = SPLIT_KEYS ? 4 : 1;
    static constexpr float UNIT = inverse_root<W> * LOG2_E; /* softmax in powers of 2 */

    struct smem {
        alignas(16) float o[SPLIT_KEYS ? 4 : 1][SPLIT_KEYS ? 16 : 1][SPLIT_KEYS ? W + 4 : 1];
        float top[4][16], sum[4][16];
    };
    static_assert(sizeof(smem) == fp_handwritten_shared(W, true, SPLIT_KEYS),
                  "what the host gives");

    u32 q[SLABS][2][WORDS];
    float o[GROUPS][GROUP][2][2];
    float top[2], sum[2];

    /* Whether a lane has words of slab u of q and k, columns of slab u of v, and of the result; of
     * the last slab some lanes have none. */
    static FP_DEVICE bool has_words(int u)
    {
        return ROW % (4 * WORDS) == 0 || (4 * u + threadIdx.x % 4) * WORDS < ROW;
    }

    static FP_DEVICE bool has_columns(int u)
    {
        return W % (8 * GROUP) == 0 || (4 * u + threadIdx.x % 4) * 2 * GROUP < W;
    }

    static FP_DEVICE bool reads_columns(int u)
    {
        if constexpr (HALF)
            return has_columns(u);
        else
            return W % (8 * GROUP) == 0 || (8 * u + threadIdx.x % 32 / 4) * GROUP < W;
    }

    static FP_DEVICE u32 operand(u32 x)
    {
        if constexpr (HALF)
            return x;
        else
            return D::round(__uint_as_float(x));
    }

    static FP_DEVICE u32 turn(u32 x)
    {
        u32 r;
        asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(x));
        return r;
    }

    FP_DEVICE void start(const T *rows, int row, int length)
    {
        const int t = threadIdx.x % 4;
#pragma unroll
        for (int u = 0; u < SLABS; u++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const u32 *p =
                    reinterpret_cast<const u32 *>(rows + static_cast<i64>(row + 8 * r) * W);
                load_words<WORDS>(q[u][r], p + (4 * u + t) * WORDS,
                                  row + 8 * r < length && has_words(u));
#pragma unroll
                for (int i = 0; i < WORDS; i++)
                    q[u][r][i] = operand(q[u][r][i]);
            }
#pragma unroll
        for (int u = 0; u < GROUPS; u++)
#pragma unroll
            for (int i = 0; i < GROUP; i++)
                o[u][i][0][0] = o[u][i][0][1] = o[u][i][1][0] = o[u][i][1][1] = 0.0f;
        top[0] = top[1] = MASKED;
        sum[0] = sum[1] = 0.0f;
    }

    FP_DEVICE void scores(float (&c)[TILES][2][2], const T *rows, int key0, int length)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            int key = key0 + 8 * n + g;
            const u32 *p = reinterpret_cast<const u32 *>(rows + static_cast<i64>(key) * W);
            c[n][0][0] = c[n][0][1] = c[n][1][0] = c[n][1][1] = 0.0f;
#pragma unroll
            for (int u = 0; u < SLABS; u++) {
                u32 k[WORDS];
                load_words<WORDS>(k, p + (4 * u + t) * WORDS, key < length && has_words(u));
#pragma unroll
                for (int j = 0; j < WORDS / 2; j++) {
                    u32 f[4] = {q[u][0][2 * j], q[u][1][2 * j], q[u][0][2 * j + 1],
                                q[u][1][2 * j + 1]};
                    D::mma(c[n], f, operand(k[2 * j]), operand(k[2 * j + 1]));
                }
            }
        }
    }

    /* Scales raw scores and adds the bias, in powers of 2.  row: of this lane's first. */
    FP_DEVICE void scale(float (&c)[TILES][2][2], const hand_bias &bias, int row, int key0)
    {
        const int t = threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    c[n][r][e] =
                        c[n][r][e] * UNIT + bias.at(row + 8 * r, key0 + 8 * n + 2 * t + e) * LOG2_E;
    }

    /* word[r]: bit 2t+e+8n keeps that key for row r. */
    FP_DEVICE void soften(float (&c)[TILES][2][2], const u64 (&word)[2])
    {
        const int t = threadIdx.x % 4;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            u64 bits = word[r] >> (2 * t);
            float high = top[r];
#pragma unroll
            for (int n = 0; n < TILES; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    c[n][r][e] =
                        bits >> (8 * n + e) & 1 ? c[n][r][e] * (SCORE_BIAS ? 1.0f : UNIT) : MASKED;
                    high = fmaxf(high, c[n][r][e]);
                }
            high = lanes_max<4>(high);
            float base = high < 0.1f * MASKED ? 0.0f : high;
            float shrink = exp2_fast(top[r] - base);
            sum[r] *= shrink;
            top[r] = high;
#pragma unroll
            for (int n = 0; n < TILES; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    c[n][r][e] = exp2_fast(c[n][r][e] - base);
                    sum[r] += c[n][r][e];
                }
#pragma unroll
            for (int u = 0; u < GROUPS; u++)
#pragma unroll
                for (int i = 0; i < GROUP; i++)
                    o[u][i][r][0] *= shrink, o[u][i][r][1] *= shrink;
        }
    }

    FP_DEVICE void context(const float (&c)[TILES][2][2], const T *rows, int key0, int length)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        if constexpr (HALF) {
#pragma unroll
            for (int n = 0; n < TILES; n += 2) {
                u32 f[4] = {D::pack(c[n][0][0], c[n][0][1]), D::pack(c[n][1][0], c[n][1][1]),
                            D::pack(c[n + 1][0][0], c[n + 1][0][1]),
                            D::pack(c[n + 1][1][0], c[n + 1][1][1])};
                int key = key0 + 8 * n + g;
                const T *p = rows + static_cast<i64>(key) * W + t * 2 * GROUP;
#pragma unroll
                for (int u = 0; u < GROUPS; u++) {
                    u32 x[GROUP], y[GROUP];
                    load_words<GROUP>(x, p + u * 8 * GROUP, key < length && reads_columns(u));
                    load_words<GROUP>(y, p + 8 * W + u * 8 * GROUP,
                                      key + 8 < length && reads_columns(u));
#pragma unroll
                    for (int i = 0; i < GROUP; i++)
                        D::mma(o[u][i], f, turn(x[i]), turn(y[i]));
                }
            }
        } else {
#pragma unroll
            for (int n = 0; n < TILES; n++) {
                u32 f[4] = {
                    operand(__float_as_uint(c[n][0][0])), operand(__float_as_uint(c[n][1][0])),
                    operand(__float_as_uint(c[n][0][1])), operand(__float_as_uint(c[n][1][1]))};
                int key = key0 + 8 * n + 2 * t;
                const T *p = rows + static_cast<i64>(key) * W + g * GROUP;
#pragma unroll
                for (int u = 0; u < GROUPS; u++) {
                    u32 x[GROUP], y[GROUP];
                    load_words<GROUP>(x, p + u * 8 * GROUP, key < length && reads_columns(u));
                    load_words<GROUP>(y, p + W + u * 8 * GROUP,
                                      key + 1 < length && reads_columns(u));
#pragma unroll
                    for (int i = 0; i < GROUP; i++)
                        D::mma(o[u][i], f, operand(x[i]), operand(y[i]));
                }
            }
        }
    }

    /* The 2*GROUP neighbouring columns of slab u that this lane holds of row r. */
    FP_DEVICE void columns(float (&v)[2 * GROUP], int u, int r, float factor) const
    {
#pragma unroll
        for (int i = 0; i < GROUP; i++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                v[HALF ? 2 * i + e : e * GROUP + i] = o[u][i][r][e] * factor;
    }

    static FP_DEVICE void store(T *p, const float (&v)[2 * GROUP])
    {
#pragma unroll
        for (int i = 0; i < 2 * GROUP; i += 2)
            store_pair<D>(p + i, v[i], v[i + 1]);
    }

    FP_DEVICE void join(smem &s, const fp_args &a, const hand_tile &tile, int row0, T *out)
    {
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            if (t == 0)
                s.top[warp][g + 8 * r] = top[r], s.sum[warp][g + 8 * r] = sum[r];
#pragma unroll
            for (int u = 0; u < GROUPS; u++) {
                float v[2 * GROUP];
                if (!has_columns(u))
                    continue;
                columns(v, u, r, 1.0f);
                float *p = &s.o[warp][g + 8 * r][(4 * u + t) * 2 * GROUP];
#pragma unroll
                for (int i = 0; i < 2 * GROUP; i++)
                    p[i] = v[i];
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < 16 * W / 4; i += FOUR_WARPS) {
            int row = i / (W / 4), col = i % (W / 4) * 4;
            float high = MASKED, total = 0.0f, v[4] = {};
#pragma unroll
            for (int w = 0; w < 4; w++)
                high = fmaxf(high, s.top[w][row]);
            float base = high < 0.1f * MASKED ? 0.0f : high;
#pragma unroll
            for (int w = 0; w < 4; w++) {
                float share = exp2_fast(s.top[w][row] - base);
                total += share * s.sum[w][row];
#pragma unroll
                for (int e = 0; e < 4; e++)
                    v[e] += share * s.o[w][row][col + e];
            }
            float factor = total > 0.0f ? 1.0f / total : 0.0f;
            if (row0 + row < tile.length) {
                T *p = out + static_cast<i64>(row) * a.heads * W + col;
                store_pair<D>(p, v[0] * factor, v[1] * factor);
                store_pair<D>(p + 2, v[2] * factor, v[3] * factor);
            }
        }
        __syncthreads();
    }

    FP_DEVICE void finish(const fp_args &a, const hand_tile &tile, int row, T *out)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int u = 0; u < GROUPS; u++) {
                float v[2 * GROUP];
                columns(v, u, r, sum[r] > 0.0f ? 1.0f / sum[r] : 0.0f);
                if (row + 8 * r < tile.length && has_columns(u))
                    store(out + static_cast<i64>(g + 8 * r) * a.heads * W + (4 * u + t) * 2 * GROUP,
                          v);
            }
    }

    FP_DEVICE void run(const fp_args &a, const fp_attention &io, void *shared)
    {
        const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
        const i64 all = static_cast<i64>(a.batch) * a.heads * a.seq_len * W;
        const int tiles = a.batch * a.heads * a.mask.blocks * PARTS;
        for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
            hand_tile tile(a, index, PARTS);
            int row0 = tile.block * BLOCK + (SPLIT_KEYS ? tile.quarter : warp) * 16;
            if (tile.block * BLOCK + (SPLIT_KEYS ? tile.quarter * 16 : 0) >= tile.length)
                continue;
            const T *rows = elements<D>(*io.in) + tile.matrix * a.seq_len * W;
            start(rows, row0 + g, tile.length);
            for (int at = tile.entry; at < tile.entries; at++) {
                float c[TILES][2][2];
                int shift = SPLIT_KEYS ? warp * 16 : 0;
                int key0 = a.mask.key_block[at] * BLOCK + shift, bits = a.mask.bits[at];
                u64 word[2] = {~0ull, ~0ull};
                if (bits >= 0) {
                    const u64 *words =
                        a.mask.words + static_cast<i64>(bits) * BLOCK + row0 % BLOCK + g;
                    word[0] = words[0] >> shift;
                    word[1] = words[8] >> shift;
                }
                scores(c, rows + all, key0, tile.length);
                if constexpr (SCORE_BIAS)
                    scale(c, hand_bias(a, io, tile.head), row0 + g, key0);
                soften(c, word);
                context(c, rows + 2 * all, key0, tile.length);
            }
            sum[0] = lanes_sum<4>(sum[0]);
            sum[1] = lanes_sum<4>(sum[1]);
            T *out = elements<D>(*io.out) +
                     ((first_row(a, tile.batch) + row0) * a.heads + tile.head) * W;
            if constexpr (SPLIT_KEYS)
                join(*static_cast<smem *>(shared), a, tile, row0, out);
            else
                finish(a, tile, row0 + g, out);
        }
    }
};

/* fp32: a thread block has 16 query rows, a warp 4 rows; lanes are keys for the scores and
 * columns for the result. */
template <int W, bool SPLIT_KEYS, bool SCORE_BIAS>
struct hand_attention<fp32, W, SPLIT_KEYS, SCORE_BIAS> {
    static constexpr int PARTS = 4, COLS = (W + 31) / 32;
    static constexpr float UNIT = inverse_root<W> * LOG2_E; /* softmax in powers of 2 */

    struct smem {
        alignas(16) float q[16][W];
    };
    static_assert(sizeof(smem) == fp_handwritten_shared(W, false, SPLIT_KEYS),
                  "what the host gives");

    FP_DEVICE void run(const fp_args &a, const fp_attention &io, void *shared)
    {
        smem &s = *static_cast<smem *>(shared);
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const i64 all = static_cast<i64>(a.batch) * a.heads * a.seq_len * W;
        const int tiles = a.batch * a.heads * a.mask.blocks * PARTS;
        for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
            hand_tile tile(a, index, PARTS);
            int row0 = tile.block * BLOCK + tile.quarter * 16 + warp * 4;
            if (row0 - warp * 4 >= tile.length)
                continue;
            const float *rows = elements<fp32>(*io.in) + tile.matrix * a.seq_len * W;
            for (int i = threadIdx.x; i < 16 * W; i += FOUR_WARPS) {
                int row = row0 - warp * 4 + i / W;
                s.q[i / W][i % W] =
                    row < tile.length ? rows[static_cast<i64>(row) * W + i % W] : 0.0f;
            }
            __syncthreads();
            float o[4][COLS] = {}, top[4], sum[4];
            for (int r = 0; r < 4; r++)
                top[r] = MASKED, sum[r] = 0.0f;
            for (int at = tile.entry; at < tile.entries; at++)
                for (int half = 0; half < BLOCK; half += 32)
                    keys(a, io, tile, s, rows, all, at, half, o, top, sum);
            float *out = elements<fp32>(*io.out) +
                         ((first_row(a, tile.batch) + row0) * a.heads + tile.head) * W;
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float total = lanes_sum<32>(sum[r]);
                float factor = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
                for (int i = 0; i < COLS; i++)
                    if (row0 + r < tile.length && lane + 32 * i < W)
                        out[static_cast<i64>(r) * a.heads * W + lane + 32 * i] = o[r][i] * factor;
            }
            __syncthreads();
        }
    }

    FP_DEVICE void keys(const fp_args &a, const fp_attention &io, const hand_tile &tile,
                        const smem &s, const float *rows, i64 all, int at, int half,
                        float (&o)[4][COLS], float (&top)[4], float (&sum)[4])
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int key0 = a.mask.key_block[at] * BLOCK + half, bits = a.mask.bits[at];
        const float *k = rows + all + static_cast<i64>(key0 + lane) * W;
        const float *v = rows + 2 * all + static_cast<i64>(key0) * W;
        float c[4] = {};
        if (key0 + lane < tile.length) {
#pragma unroll 4
            for (int w = 0; w < W; w += 4) {
                float4 y = *reinterpret_cast<const float4 *>(k + w);
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    float4 x = *reinterpret_cast<const float4 *>(&s.q[warp * 4 + r][w]);
                    c[r] += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
                }
            }
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            u64 word = ~0ull;
            if (bits >= 0)
                word =
                    a.mask.words[static_cast<i64>(bits) * BLOCK + tile.quarter * 16 + warp * 4 + r];
            c[r] *= UNIT;
            if constexpr (SCORE_BIAS) {
                int row = tile.block * BLOCK + tile.quarter * 16 + warp * 4 + r;
                c[r] += hand_bias(a, io, tile.head).at(row, key0 + lane) * LOG2_E;
            }
            c[r] = word >> (half + lane) & 1 ? c[r] : MASKED;
            float high = fmaxf(top[r], lanes_max<32>(c[r]));
            float base = high < 0.1f * MASKED ? 0.0f : high;
            float shrink = exp2_fast(top[r] - base);
            c[r] = exp2_fast(c[r] - base);
            sum[r] = sum[r] * shrink + c[r];
            top[r] = high;
#pragma unroll
            for (int i = 0; i < COLS; i++)
                o[r][i] *= shrink;
        }
        int count = min(32, tile.length - key0);
        for (int j = 0; j < count; j++) {
            float x[COLS];
#pragma unroll
            for (int i = 0; i < COLS; i++)
                x[i] = lane + 32 * i < W ? v[static_cast<i64>(j) * W + lane + 32 * i] : 0.0f;
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float p = __shfl_sync(0xffffffffu, c[r], j);
#pragma unroll
                for (int i = 0; i < COLS; i++)
                    o[r][i] = fmaf(p, x[i], o[r][i]);
            }
        }
    }
};

} // namespace fp

#endif
