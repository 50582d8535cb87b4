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
 * Rows of q, k and v lie in shared memory (attention_rows.cuh), scores in registers
 * (attention_scores.cuh); here are the steps from one key block to the next.
 *
 * There are two buffers of 64 rows.  An attention that reads k and v has one of each: v is copied
 * during the scores, the next k during the product with v, and a step has two barriers.  Two of
 * each and one barrier were no faster on an H200.  An attention that reads k or v alone has two of
 * it: what a step reads is copied during the step before, and one barrier is enough.  Row words
 * always have two buffers, and list entries are read a step before what they name is copied. */
#ifndef FUSEPLAN_CUDA_ATTENTION_CUH
#define FUSEPLAN_CUDA_ATTENTION_CUH

#include "attention_scores.cuh"

namespace fp
{

/* A step: step `at` takes entry `at` of the query block's list. */
template <class D, int W, int OPS, int THREADS>
struct attention : attention_scores<D, W, OPS, THREADS> {
    using scored = attention_scores<D, W, OPS, THREADS>;
    using scored::a, scored::io, scored::s, scored::group, scored::warp, scored::lane;
    using scored::batch, scored::head, scored::block, scored::length, scored::q;
    using scored::BIAS, scored::ROPE, scored::HAS_QK, scored::HAS_PV;
    using scored::entry, scored::entries, scored::full;
    using scored::LD, scored::CHUNKS, scored::COLUMNS, scored::EACH;
    using scored::meet, scored::fill, scored::distance, scored::k_rows, scored::v_rows;
    using scored::scored;
    using scored::scores, scored::scale, scored::mask, scored::store_scores;
    using typename scored::T, typename scored::smem;
    static constexpr bool HAS_SOFTMAX = OPS & FP_SOFTMAX, MERGE = OPS & FP_MERGE;

    struct listed {
        int key_block, bits; /* -1: the list has ended; the block is full */
    };

    FP_DEVICE listed read_entry(int at) const
    {
        return at < entries ? listed{a.mask.key_block[at], a.mask.bits[at]} : listed{-1, -1};
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
            this->bias_q();
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
                    this->turn_rows(s.q, block, head * W);
                this->turn_rows(k_rows(at), now.key_block, (a.heads + head) * W);
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
        online_softmax<D> state;
        clear_fragment(o);
        state.begin();
        fetch_q();
        walk([&](fragment<D, BLOCK> &c, int at, listed now, listed next) {
            if constexpr (HAS_SOFTMAX) {
                float rescale[ROWS<D>];
                mask(c, at, now.bits);
                state.soften(c, scale() * LOG2_E, rescale);
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

    FP_DEVICE void store_context(const fragment<D, COLUMNS> &o, online_softmax<D> &state)
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
        clear_fragment(c);
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
        online_softmax<D> state;
        float factor[ROWS<D>];
        state.begin();
        fetch_q();
        walk([&](fragment<D, BLOCK> &c, int at, listed now, listed) {
            float rescale[ROWS<D>];
            mask(c, at, now.bits);
            state.soften(c, scale() * LOG2_E, rescale);
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
                        c[p][r][e] = factor[r] *
                                     exp2_fast(c[p][r][e] * unit - state.shift(state.top[r], unit));
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
            this->clear_ends();
        for (int i = blockIdx.x * groups + group; i < tiles; i += gridDim.x * groups) {
            if (!this->select(i))
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
