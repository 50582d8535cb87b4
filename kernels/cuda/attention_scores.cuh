/* A warp's scores of 16 query rows and 64 keys, for attention.cuh: from products or from memory,
 * with their bias, their mask and their softmax. */
#ifndef FUSEPLAN_CUDA_ATTENTION_SCORES_CUH
#define FUSEPLAN_CUDA_ATTENTION_SCORES_CUH

#include "attention_rows.cuh"

namespace fp
{

template <class F> FP_DEVICE void clear_fragment(F &f)
{
    constexpr int N = sizeof(F) / sizeof(float);
#pragma unroll
    for (int i = 0; i < N; i++)
        reinterpret_cast<float *>(&f)[i] = 0.0f;
}

/* Of the blocks so far: a row's maximum, and the sum over this lane's columns of the row. */
template <class D> struct online_softmax {
    float top[ROWS<D>], sum[ROWS<D>];

    FP_DEVICE void begin()
    {
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++)
            top[r] = MASKED, sum[r] = 0.0f;
    }

    static FP_DEVICE float shift(float top, float unit)
    {
        return top <= 0.5f * MASKED ? 0.0f : top * unit;
    }

    /* Turns masked scores into 2^(unit*score - shift); rescale[r] is the factor of earlier sums. */
    FP_DEVICE void soften(fragment<D, BLOCK> &c, float unit, float (&rescale)[ROWS<D>])
    {
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++) {
            float most = top[r];
#pragma unroll
            for (int p = 0; p < PAIRS<D, BLOCK>; p++)
                most = fmaxf(most, fmaxf(c[p][r][0], c[p][r][1]));
            most = lanes_max<D::lanes>(most);
            float down = shift(most, unit), all = 0.0f;
            rescale[r] = exp2_fast(top[r] * unit - down);
#pragma unroll
            for (int p = 0; p < PAIRS<D, BLOCK>; p++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    c[p][r][e] = exp2_fast(c[p][r][e] * unit - down);
                    all += c[p][r][e];
                }
            top[r] = most;
            sum[r] = sum[r] * rescale[r] + all;
        }
    }
};

/* The scores of the query block at hand. */
template <class D, int W, int OPS, int THREADS>
struct attention_scores : attention_rows<D, W, OPS, THREADS> {
    using rows = attention_rows<D, W, OPS, THREADS>;
    using rows::a, rows::io, rows::s, rows::warp, rows::head, rows::block, rows::length;
    using rows::rows;
    using rows::score_base, rows::LD, rows::COLUMNS, rows::HAS_QK, rows::k_rows;
    using typename rows::T;
    static constexpr bool SCORE_BIAS = OPS & FP_BIAS_MASK;

    FP_DEVICE int row_of(int r) const
    {
        return block * BLOCK + warp * WARP_ROWS + fragment_row<D>(r);
    }

    FP_DEVICE void load_scores(fragment<D, BLOCK> &c, const T *from, int key_block)
    {
        const bool paired = a.seq_len % 2 == 0;
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++) {
            const T *at = from + score_base + static_cast<i64>(row_of(r)) * a.seq_len;
            const bool row = row_of(r) < length;
#pragma unroll
            for (int p = 0; p < PAIRS<D, BLOCK>; p++) {
                int key = key_block * BLOCK + fragment_col<D>(p);
                c[p][r][0] = c[p][r][1] = 0.0f;
                if (row && paired && key < a.seq_len) {
                    if constexpr (is_half<D>) {
                        D::unpack(*reinterpret_cast<const u32 *>(at + key), c[p][r][0], c[p][r][1]);
                    } else {
                        float2 x = *reinterpret_cast<const float2 *>(at + key);
                        c[p][r][0] = x.x, c[p][r][1] = x.y;
                    }
                } else if (row) {
                    if (key < a.seq_len)
                        c[p][r][0] = load_one<D>(at + key);
                    if (key + 1 < a.seq_len)
                        c[p][r][1] = load_one<D>(at + key + 1);
                }
            }
        }
    }

    FP_DEVICE void store_scores(const fragment<D, BLOCK> &c, T *to, int key_block)
    {
        const bool paired = a.seq_len % 2 == 0;
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++) {
            T *at = to + score_base + static_cast<i64>(row_of(r)) * a.seq_len;
            if (row_of(r) >= length)
                continue;
#pragma unroll
            for (int p = 0; p < PAIRS<D, BLOCK>; p++) {
                int key = key_block * BLOCK + fragment_col<D>(p);
                if (paired && key < a.seq_len) {
                    store_pair<D>(at + key, c[p][r][0], c[p][r][1]);
                } else {
                    if (key < a.seq_len)
                        store_one<D>(at + key, c[p][r][0]);
                    if (key + 1 < a.seq_len)
                        store_one<D>(at + key + 1, c[p][r][1]);
                }
            }
        }
    }

    /* Raw q k^T of the block at hand, or the scores that an earlier kernel wrote. */
    FP_DEVICE void scores(fragment<D, BLOCK> &c, int at, int key_block)
    {
        if constexpr (HAS_QK) {
            clear_fragment(c);
            warp_tile<D>::template nt<BLOCK, COLUMNS>(c, s.q + warp * WARP_ROWS * LD, LD,
                                                      k_rows(at), LD);
        } else {
            load_scores(c, elements<D>(*io.scores), key_block);
        }
        if constexpr (SCORE_BIAS)
            add_score_bias(c, key_block);
    }

    /* What is still to be multiplied with scores. */
    static FP_DEVICE float scale()
    {
        return HAS_QK && !SCORE_BIAS ? inverse_root<W> : 1.0f;
    }

    /* Scales the scores and adds what belongs to the distance of key and query. */
    FP_DEVICE void add_score_bias(fragment<D, BLOCK> &c, int key_block)
    {
        const int most = 2 * a.seq_len - 2; /* what lies beyond it is no score */
        const float *of = static_cast<const float *>(*io.score_bias) + head * (most + 1);
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++)
#pragma unroll
            for (int p = 0; p < PAIRS<D, BLOCK>; p++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    int key = key_block * BLOCK + fragment_col<D>(p) + e;
                    int at = min(max(key - row_of(r) + a.seq_len - 1, 0), most);
                    c[p][r][e] = c[p][r][e] * (HAS_QK ? inverse_root<W> : 1.0f) + of[at];
                }
    }

    FP_DEVICE void mask(fragment<D, BLOCK> &c, int at, int bits)
    {
        if (bits < 0)
            return;
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++) {
            u64 word = s.words[at % 2u][warp * WARP_ROWS + fragment_row<D>(r)];
            word >>= fragment_col<D>(0);
#pragma unroll
            for (int p = 0; p < PAIRS<D, BLOCK>; p++) {
                u32 two = static_cast<u32>(word >> (2 * D::lanes * p));
                c[p][r][0] = two & 1 ? c[p][r][0] : MASKED;
                c[p][r][1] = two & 2 ? c[p][r][1] : MASKED;
            }
        }
    }
};

} // namespace fp

#endif
