/* Rows of q, k and v in shared memory, for attention.cuh: copied, with their bias, turned.
 *
 * A head has a multiple of 8 columns, products take multiples of 16: of other heads rows have zeros
 * at their ends, which no copy writes to. */
#ifndef FUSEPLAN_CUDA_ATTENTION_ROWS_CUH
#define FUSEPLAN_CUDA_ATTENTION_ROWS_CUH

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

/* The query block of a group of four warps, and its rows in shared memory.  OPS: bits of
 * fp_attention_op. */
template <class D, int W, int OPS, int THREADS> struct attention_rows {
    static_assert(THREADS >= FOUR_WARPS, "four warps share a query block");
    static_assert(sizeof(attention_smem<D, W>) ==
                      fp_attention_shared(W, sizeof(elem<D>), D::lanes == 4),
                  "what the host gives");
    using T = elem<D>;
    using smem = attention_smem<D, W>;
    static constexpr int LD = smem::LD, CHUNKS = W / VEC<D>, COLUMNS = smem::COLUMNS;
    static constexpr bool SPLIT = OPS & FP_SPLIT, BIAS = OPS & FP_BIAS, ROPE = OPS & FP_ROPE;
    static constexpr bool HAS_QK = OPS & FP_SCORES, HAS_PV = OPS & FP_CONTEXT;
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

    FP_DEVICE attention_rows(const fp_args &args, const fp_attention &operands, void *shared)
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

    FP_DEVICE T *k_rows(int at)
    {
        return s.kv[at % EACH];
    }

    FP_DEVICE T *v_rows(int at)
    {
        return s.kv[(HAS_QK ? EACH : 0) + at % EACH];
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
            for (int e = 0; e < VEC<D>; e += 2) {
                const float4 t = __ldg(reinterpret_cast<const float4 *>(at + 2 * e));
                turn_pair(x[e] += b[e], y[e] += c[e], t.x, t.y);
                turn_pair(x[e + 1] += b[e + 1], y[e + 1] += c[e + 1], t.z, t.w);
            }
            store_vec<D>(low, x);
            store_vec<D>(low + HALF, y);
        }
    }
};

} // namespace fp

#endif
