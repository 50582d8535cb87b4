/* Scores, mask, softmax and context, or neighbours among these operators, for all heads by lists
 * of 64x64 blocks.  Whole attention may begin with the split of heads and end with their merge.
 *
 * Four warps take 64 query rows of one head, 16 rows each, and walk the key blocks that hold a kept
 * element; full blocks need no mask, the others have one bit an element.  Softmax is online
 * (Milakov and Gimelshein 2018), with 2^x and the scale folded in.
 *
 *   scores   q k^T / sqrt(W), or read from (B,H,S,S)
 *   biases   that of q is added to q, that of v to the result, as the probabilities of a row sum to
 *            1; that of k shifts a row of scores by a constant, which softmax ignores, unless k
 *            is turned
 *   turned   q and k in place, once they are copied: rotary embeddings, by pairs of columns
 *   result   scores; probabilities, 0 where masked; or the context
 *
 * A head has a multiple of 8 columns, products take multiples of 16: of other heads rows have zeros
 * at their ends, which no copy writes to.
 *
 * There are two buffers of 64 rows.  An attention that reads k and v has one of each: v is copied
 * during the scores, the next k during the product with v, and a step has two barriers.  Two of
 * each and one barrier were no faster on an H200.  An attention that reads k or v alone has two of
 * it: what a step reads is copied during the step before, and one barrier is enough.  Row words
 * always have two buffers, and list entries are read a step before what they name is copied. */
#ifndef FUSEPLAN_CUDA_ATTENTION_CUH
#define FUSEPLAN_CUDA_ATTENTION_CUH

#include "attention.h"
#include "heads.cuh"
#include "mma.cuh"

namespace fp
{

template <class D, int W> struct attention_smem {
    static constexpr int COLUMNS = fp_attention_columns(W), LD = COLUMNS + VEC<D>;
    static constexpr int SCRATCH = D::lanes == 8 ? FFMA_SCRATCH : 1; /* of a warp */
    alignas(16) elem<D> q[BLOCK * LD], kv[2][BLOCK * LD];
    alignas(16) u64 words[2][BLOCK];
    alignas(16) float p[4 * SCRATCH];
};

/* OPS: bits of fp_attention_op. */
template <class D, int W, int OPS, int THREADS> struct attention {
    static_assert(THREADS >= FOUR_WARPS, "four warps share a query block");
    static_assert(sizeof(attention_smem<D, W>) ==
                      fp_attention_shared(W, sizeof(elem<D>), D::lanes == 4),
                  "what the host gives");
    using T = elem<D>;
    using smem = attention_smem<D, W>;
    static constexpr int LD = smem::LD, CHUNKS = W / VEC<D>, COLUMNS = smem::COLUMNS;
    static constexpr bool SPLIT = OPS & FP_SPLIT, BIAS = OPS & FP_BIAS, ROPE = OPS & FP_ROPE;
    static constexpr bool SCORE_BIAS = OPS & FP_BIAS_MASK;
    static constexpr bool HAS_QK = OPS & FP_SCORES, HAS_SOFTMAX = OPS & FP_SOFTMAX;
    static constexpr bool HAS_PV = OPS & FP_CONTEXT, MERGE = OPS & FP_MERGE;
    static constexpr u32 EACH = HAS_QK && HAS_PV ? 1 : 2; /* buffers of k, and of v */
    static_assert(!SPLIT || (HAS_QK && HAS_PV), "only whole attention reads token rows");
    static_assert(!(BIAS || ROPE) || SPLIT, "heads have their bias, and are turned");

    const fp_args &a;
    const fp_attention &io;
    smem &s;
    int group, tid, warp, lane; /* of this group of 128 threads */

    /* The query block at hand. */
    int batch, head, block, length, entry, entries, full;
    const T *q;     /* row 0 of the head */
    i64 score_base; /* of (B,H,S,S) */

    FP_DEVICE attention(const fp_args &args, const fp_attention &operands, void *shared)
        : a(args), io(operands), s(static_cast<smem *>(shared)[group_of()]), group(group_of()),
          tid(threadIdx.x % FOUR_WARPS), warp(threadIdx.x % FOUR_WARPS / 32), lane(threadIdx.x % 32)
    {
    }

    static FP_DEVICE int group_of()
    {
        return THREADS == FOUR_WARPS ? 0 : threadIdx.x / FOUR_WARPS;
    }

    FP_DEVICE void meet()
    {
        if constexpr (THREADS == FOUR_WARPS)
            __syncthreads();
        else
            asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    }

    /* Sets the query block of a tile, the longest lists first; false if all its rows
     * are padding. */
    FP_DEVICE bool select(int tile)
    {
        int each = a.mask.lists == 1 ? a.batch * a.heads : a.heads;
        int list = a.mask.order ? a.mask.order[tile / each] : tile / each;
        batch = a.mask.lists == 1 ? tile % each / a.heads : list / a.mask.blocks;
        head = tile % a.heads;
        block = list % a.mask.blocks;
        length = a.lengths ? a.lengths[batch] : a.seq_len;
        entry = a.mask.start[list];
        entries = a.mask.start[list + 1];
        full = a.mask.full[list];
        i64 matrix = static_cast<i64>(batch) * a.heads + head;
        if constexpr (SPLIT)
            q = elements<D>(*io.in) + first_row(a, batch) * stride() + head * W;
        else if constexpr (HAS_QK || HAS_PV)
            q = elements<D>(*io.in) + matrix * a.seq_len * W;
        score_base = matrix * a.seq_len * a.seq_len;
        return block * BLOCK < length;
    }

    /* Elements between rows of q, k and v; from q to k and from k to v.  They are not kept, which
     * saves registers. */
    FP_DEVICE int stride() const
    {
        return SPLIT ? 3 * a.heads * W : W;
    }

    FP_DEVICE i64 distance() const
    {
        return SPLIT ? a.heads * W : static_cast<i64>(a.batch) * a.heads * a.seq_len * W;
    }

    /* Sets the columns behind the heads'. */
    FP_DEVICE void clear_ends()
    {
        constexpr int EACH_ROW = (COLUMNS - W) / VEC<D>; /* 0 or more chunks */
        for (int i = tid; i < 3 * BLOCK * EACH_ROW; i += FOUR_WARPS) {
            const int row = i / EACH_ROW, col = W + i % EACH_ROW * VEC<D>;
            T *rows = row < BLOCK ? s.q : s.kv[row / BLOCK - 1];
            *reinterpret_cast<uint4 *>(rows + row % BLOCK * LD + col) = make_uint4(0, 0, 0, 0);
        }
        meet();
    }

    /* 64 rows of q, k or v; rows past the length become zeros, so that 0 * v is 0. */
    FP_DEVICE void fill(T *dst, const T *src, int block_row)
    {
        if constexpr (BLOCK * CHUNKS % FOUR_WARPS == 0 && FOUR_WARPS % CHUNKS == 0) {
            fill_rows(dst, src, block_row);
            return;
        }
        const int left = length - block_row * BLOCK;
        const T *from = src + static_cast<i64>(block_row * BLOCK) * stride();
        for (int i = tid; i < BLOCK * CHUNKS; i += FOUR_WARPS) {
            const int row = i / CHUNKS, col = i % CHUNKS * VEC<D>;
            const bool valid = row < left;
            copy_async(dst + row * LD + col, from + (valid ? row * stride() + col : 0), valid);
        }
    }

    /* The same where whole rows are a copy of all threads. */
    FP_DEVICE void fill_rows(T *dst, const T *src, int block_row)
    {
        constexpr int rows = FOUR_WARPS / CHUNKS;
        const int row = tid / CHUNKS, col = tid % CHUNKS * VEC<D>,
                  left = length - block_row * BLOCK;
        const T *from = src + static_cast<i64>(block_row * BLOCK) * stride() + col;
        T *to = dst + row * LD + col;
#pragma unroll
        for (int i = 0; i < BLOCK; i += rows) {
            bool valid = row + i < left;
            copy_async(to + i * LD, from + (valid ? (row + i) * stride() : 0), valid);
        }
    }

    /* Adds the bias to the elements that this thread copied. */
    FP_DEVICE void bias_q()
    {
        for (int i = tid; i < BLOCK * CHUNKS; i += FOUR_WARPS) {
            int col = i % CHUNKS * VEC<D>;
            float x[VEC<D>], b[VEC<D>];
            T *at = s.q + i / CHUNKS * LD + col;
            load_vec<D>(at, x);
            load_vec<D>(elements<D>(*io.bias) + head * W + col, b);
#pragma unroll
            for (int e = 0; e < VEC<D>; e++)
                x[e] += b[e];
            store_vec<D>(at, x);
        }
    }

    /* Adds the bias to 64 rows of q or k, and turns them.  rows: of the block at block_row; bias:
     * of the head.  Rows past the length stay zeros. */
    FP_DEVICE void turn_rows(T *rows, int block_row, int bias)
    {
        constexpr int HALF = W / 2, PAIRS_OF_CHUNKS = CHUNKS / 2;
        static_assert(HALF % VEC<D> == 0, "chunks lie in one half");
        for (int i = tid; i < BLOCK * PAIRS_OF_CHUNKS; i += FOUR_WARPS) {
            const int row = i / PAIRS_OF_CHUNKS, col = i % PAIRS_OF_CHUNKS * VEC<D>;
            const int place = block_row * BLOCK + row;
            if (place >= length)
                continue;
            const float *at =
                static_cast<const float *>(*io.rope) + static_cast<i64>(place) * W + 2 * col;
            float x[VEC<D>], y[VEC<D>], b[VEC<D>] = {}, c[VEC<D>] = {};
            T *low = rows + row * LD + col;
            load_vec<D>(low, x);
            load_vec<D>(low + HALF, y);
            if constexpr (BIAS) {
                load_vec<D>(elements<D>(*io.bias) + bias + col, b);
                load_vec<D>(elements<D>(*io.bias) + bias + col + HALF, c);
            }
#pragma unroll
            for (int e = 0; e < VEC<D>; e++) {
                x[e] += b[e], y[e] += c[e];
                turn_pair(x[e], y[e], at[2 * e], at[2 * e + 1]);
            }
            store_vec<D>(low, x);
            store_vec<D>(low + HALF, y);
        }
    }

    FP_DEVICE int row_of(int r) const
    {
        return block * BLOCK + warp * WARP_ROWS + fragment_row<D>(r);
    }

    template <class F> static FP_DEVICE void clear(F &f)
    {
        constexpr int N = sizeof(F) / sizeof(float);
#pragma unroll
        for (int i = 0; i < N; i++)
            reinterpret_cast<float *>(&f)[i] = 0.0f;
    }

    /* scores or probabilities of one block to or from memory */
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
            clear(c);
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

    /* Of the blocks so far: a row's maximum, and the sum over this lane's columns of the row. */
    struct row_state {
        float top[ROWS<D>], sum[ROWS<D>];
    };

    static FP_DEVICE float shift(float top, float unit)
    {
        return top <= 0.5f * MASKED ? 0.0f : top * unit;
    }

    /* Turns masked scores into 2^(unit*score - shift); rescale[r] is the factor of earlier sums. */
    FP_DEVICE void soften(fragment<D, BLOCK> &c, row_state &state, float (&rescale)[ROWS<D>])
    {
        const float unit = scale() * LOG2_E;
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++) {
            float top = state.top[r];
#pragma unroll
            for (int p = 0; p < PAIRS<D, BLOCK>; p++)
                top = fmaxf(top, fmaxf(c[p][r][0], c[p][r][1]));
            top = lanes_max<D::lanes>(top);
            float down = shift(top, unit), sum = 0.0f;
            rescale[r] = exp2_fast(state.top[r] * unit - down);
#pragma unroll
            for (int p = 0; p < PAIRS<D, BLOCK>; p++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    c[p][r][e] = exp2_fast(c[p][r][e] * unit - down);
                    sum += c[p][r][e];
                }
            state.top[r] = top;
            state.sum[r] = state.sum[r] * rescale[r] + sum;
        }
    }

    FP_DEVICE void begin(row_state &state)
    {
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++)
            state.top[r] = MASKED, state.sum[r] = 0.0f;
    }

    /* ---- the steps of a tile -------------------------------------------------------------------
     *
     * Step `at` takes entry `at` of the list. */

    struct listed {
        int key_block, bits; /* -1: the list has ended; the block is full */
    };

    FP_DEVICE listed read_entry(int at) const
    {
        return at < entries ? listed{a.mask.key_block[at], a.mask.bits[at]} : listed{-1, -1};
    }

    FP_DEVICE T *k_rows(int at)
    {
        return s.kv[at % EACH];
    }

    FP_DEVICE T *v_rows(int at)
    {
        return s.kv[(HAS_QK ? EACH : 0) + at % EACH];
    }

    FP_DEVICE void fetch_q()
    {
        if constexpr (HAS_QK)
            fill(s.q, q, block);
        copy_commit();
    }

    /* k and row words of a step.  A warp copies the words of its own rows. */
    FP_DEVICE void fetch_k(listed e, int at)
    {
        if (HAS_QK && e.key_block >= 0)
            fill(k_rows(at), q + distance(), e.key_block);
        if (HAS_SOFTMAX && e.bits >= 0 && lane < WARP_ROWS / 2) {
            int row = warp * WARP_ROWS + lane * 2;
            copy_async(&s.words[at % 2u][row],
                       a.mask.words + static_cast<i64>(e.bits) * BLOCK + row, true);
        }
    }

    FP_DEVICE void fetch_v(listed e, int at)
    {
        if (HAS_PV && e.key_block >= 0)
            fill(v_rows(at), q + 2 * distance(), e.key_block);
    }

    /* Before it this thread's copies are complete and it has read what later copies overwrite;
     * after it this holds for all threads that share a buffer. */
    FP_DEVICE void turn()
    {
        copy_wait<0>();
        if constexpr (HAS_QK || HAS_PV)
            meet();
        else
            __syncwarp();
    }

    /* Calls use(c, at, its entry, the next one) with the scores of each step. */
    template <class F> FP_DEVICE void walk(const F &use)
    {
        fragment<D, BLOCK> c;
        listed now = read_entry(entry), next = read_entry(entry + 1);
        fetch_k(now, entry);
        if constexpr (EACH == 2)
            fetch_v(now, entry);
        copy_commit();
        if constexpr (BIAS && !ROPE) {
            copy_wait<1>();
            bias_q();
        }
        if (entry == entries)
            turn(); /* for q */
        for (int at = entry; at < entries; at++) {
            turn();
            if constexpr (EACH == 2) {
                fetch_k(next, at + 1);
                fetch_v(next, at + 1);
            } else {
                fetch_v(now, at);
            }
            copy_commit();
            if constexpr (ROPE) {
                if (at == entry)
                    turn_rows(s.q, block, head * W);
                turn_rows(k_rows(at), now.key_block, (a.heads + head) * W);
                meet();
            }
            scores(c, at, now.key_block);
            use(c, at, now, next);
            now = next;
            next = read_entry(at + 2);
        }
    }

    FP_DEVICE void context()
    {
        fragment<D, COLUMNS> o;
        row_state state;
        clear(o);
        begin(state);
        fetch_q();
        walk([&](fragment<D, BLOCK> &c, int at, listed now, listed next) {
            if constexpr (HAS_SOFTMAX) {
                float rescale[ROWS<D>];
                mask(c, at, now.bits);
                soften(c, state, rescale);
#pragma unroll
                for (int p = 0; p < PAIRS<D, COLUMNS>; p++)
#pragma unroll
                    for (int r = 0; r < ROWS<D>; r++)
                        o[p][r][0] *= rescale[r], o[p][r][1] *= rescale[r];
            }
            if constexpr (EACH == 1) {
                turn();
                fetch_k(next, at + 1);
                copy_commit();
            }
            warp_tile<D>::template pn<COLUMNS>(o, c, v_rows(at), LD, s.p + warp * smem::SCRATCH);
        });
        store_context(o, state);
        turn();
    }

    FP_DEVICE void store_context(const fragment<D, COLUMNS> &o, row_state &state)
    {
        T *rows = s.q + warp * WARP_ROWS * LD; /* a barrier has followed the last scores */
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++) {
            float factor = 1.0f, some = 1.0f;
            if constexpr (HAS_SOFTMAX) {
                float sum = lanes_sum<D::lanes>(state.sum[r]);
                factor = sum > 0.0f ? 1.0f / sum : 0.0f;
                some = sum > 0.0f ? 1.0f : 0.0f;
            }
#pragma unroll
            for (int p = 0; p < PAIRS<D, COLUMNS>; p++) {
                if (COLUMNS > W && fragment_col<D>(p) >= W)
                    continue;
                float x = o[p][r][0] * factor, y = o[p][r][1] * factor;
                if constexpr (BIAS) {
                    const T *bias =
                        elements<D>(*io.bias) + (2 * a.heads + head) * W + fragment_col<D>(p);
                    x += some * load_one<D>(bias);
                    y += some * load_one<D>(bias + 1);
                }
                store_pair<D>(rows + fragment_row<D>(r) * LD + fragment_col<D>(p), x, y);
            }
        }
        __syncwarp();
        i64 step = MERGE ? a.heads * W : W;
        T *out = elements<D>(*io.out);
        out = MERGE ? out + (first_row(a, batch) * a.heads + head) * W
                    : out + (static_cast<i64>(batch) * a.heads + head) * a.seq_len * W;
#pragma unroll
        for (int i = lane; i < WARP_ROWS * CHUNKS; i += 32) {
            int row = block * BLOCK + warp * WARP_ROWS + i / CHUNKS, col = i % CHUNKS * VEC<D>;
            if (row < length)
                *reinterpret_cast<uint4 *>(out + row * step + col) =
                    *reinterpret_cast<const uint4 *>(rows + i / CHUNKS * LD + col);
        }
    }

    FP_DEVICE void only_scores()
    {
        fetch_q();
        walk([&](fragment<D, BLOCK> &c, int, listed now, listed) {
#pragma unroll
            for (int p = 0; p < PAIRS<D, BLOCK>; p++)
#pragma unroll
                for (int r = 0; r < ROWS<D>; r++)
                    c[p][r][0] *= scale(), c[p][r][1] *= scale();
            store_scores(c, elements<D>(*io.out), now.key_block);
        });
        turn();
    }

    /* Stores 0 in the blocks that the list lacks.  The list has full blocks first and partial
     * blocks after them, each group ascending. */
    FP_DEVICE void store_zeros()
    {
        fragment<D, BLOCK> c;
        clear(c);
        int whole = entry, part = entry + full;
        for (int key_block = 0; key_block < a.mask.blocks; key_block++) {
            if (whole < entry + full && a.mask.key_block[whole] == key_block)
                whole++;
            else if (part < entries && a.mask.key_block[part] == key_block)
                part++;
            else
                store_scores(c, elements<D>(*io.out), key_block);
        }
    }

    /* Computes maxima and sums, then computes the scores anew and stores the probabilities. */
    FP_DEVICE void probabilities()
    {
        row_state state;
        float factor[ROWS<D>];
        begin(state);
        fetch_q();
        walk([&](fragment<D, BLOCK> &c, int at, listed now, listed) {
            float rescale[ROWS<D>];
            mask(c, at, now.bits);
            soften(c, state, rescale);
        });
        turn();
#pragma unroll
        for (int r = 0; r < ROWS<D>; r++) {
            float sum = lanes_sum<D::lanes>(state.sum[r]);
            factor[r] = sum > 0.0f ? 1.0f / sum : 0.0f;
        }
        const float unit = scale() * LOG2_E;
        walk([&](fragment<D, BLOCK> &c, int at, listed now, listed) {
            mask(c, at, now.bits);
#pragma unroll
            for (int r = 0; r < ROWS<D>; r++)
#pragma unroll
                for (int p = 0; p < PAIRS<D, BLOCK>; p++)
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        c[p][r][e] =
                            factor[r] * exp2_fast(c[p][r][e] * unit - shift(state.top[r], unit));
            store_scores(c, elements<D>(*io.out), now.key_block);
        });
        store_zeros();
        turn();
    }

    FP_DEVICE void run()
    {
        constexpr int groups = THREADS / FOUR_WARPS;
        static_assert(THREADS % FOUR_WARPS == 0, "whole groups of four warps");
        int tiles = a.batch * a.heads * a.mask.blocks;
        if constexpr (COLUMNS > W && (HAS_QK || HAS_PV))
            clear_ends();
        for (int i = blockIdx.x * groups + group; i < tiles; i += gridDim.x * groups) {
            if (!select(i))
                continue;
            if constexpr (HAS_PV)
                context();
            else if constexpr (HAS_SOFTMAX)
                probabilities();
            else
                only_scores();
        }
    }
};

} // namespace fp

#endif
