/* Copies of blocks of q, k and v by the loaders of hopper_attention_load.cuh: by cp.async or TMA in
 * the 128-byte swizzle. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_COPY_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_COPY_CUH

#include "hopper_attention_tiles.cuh"

namespace fp::hopper_attention
{

/* The tokens of a block's rows `lane` and `lane` + 32.  One that does not exist is negative. */
struct tokens {
    int low, high;
};

/* Where the rows of a tile's head begin, for one thread; bytes between rows; rows. */
struct head_rows {
    const unsigned char *q, *k, *v;
    i64 pitch;
    int length;
};

/* Copies 64 rows of q, k or v into shared memory. */
template <class S> struct block_copy {
    static constexpr int C = S::C, P = S::P, PANELS = S::PANELS, PANEL = S::PANEL;

    /* Where this thread's 16 bytes of row 4*P*i + tid/8 of a block go.
     *
     * Rows of q lie in order.  Rows of keys are dealt out: key 16t + 2p + e is row 8p + 2t + e.
     * Of the scores a lane then holds 16 neighbouring keys, and finds them in 16 neighbouring bits
     * of a row word. */
    template <bool KEYS> static FP_DEVICE u32 place(u32 to, int i)
    {
        const int tid = static_cast<int>(threadIdx.x) - C * FOUR_WARPS, r0 = tid / 8, c = tid % 8;
        if constexpr (!KEYS)
            return ((to + r0 * 128 + (c ^ (r0 % 8)) * 16) ^ (P == 1 ? i % 2 * 64 : 0)) +
                   i * 512 * P;
        constexpr int N = 4 / P; /* steps of 16 keys */
        const u32 first = to + (r0 / 2 * 8 + r0 % 2) * 128 + (c ^ (r0 % 2)) * 16;
        return (first ^ (i / N * 32)) + i % N * (2048 * P) + i / N * 256;
    }

    /* This thread's 16 bytes of a row in panel j; zeros if not `valid` or behind the head's. */
    static FP_DEVICE void copy_chunk(u32 to, int j, const unsigned char *from, bool valid)
    {
        const int c = static_cast<int>(threadIdx.x) % 8;
        if constexpr (S::W % 64 == 0)
            copy_16(to, from, valid);
        else if (S::reads(j, c))
            copy_16(to, from, valid && S::has(j, c));
    }
    static FP_DEVICE void copy_chunk(u32 to, int j, const unsigned char *from)
    {
        if constexpr (S::W % 64 == 0)
            copy_16(to, from);
        else
            copy_chunk(to, j, from, true);
    }

    /* The rows from `first` on; `from` is this thread's place in row 0.  Rows past the length
     * become zeros: a probability of 0 times v is then 0. */
    template <bool KEYS>
    static FP_DEVICE void in_order(u32 to, const unsigned char *from, i64 pitch, int first,
                                   int length)
    {
        const int tid = static_cast<int>(threadIdx.x) - C * FOUR_WARPS, r0 = tid / 8;
        const unsigned char *p = from + (first + r0) * pitch;
        const u32 hop = static_cast<u32>(4 * P * pitch);
        if (first + BLOCK <= length) {
#pragma unroll
            for (int i = 0; i < BLOCK / (4 * P); i++) {
                const unsigned char *row; /* computed apart, so that none waits */
                asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(row) : "r"(hop), "r"(i), "l"(p));
#pragma unroll
                for (int j = 0; j < PANELS; j++)
                    copy_chunk(place<KEYS>(to, i) + j * PANEL, j, row + j * 128);
            }
            return;
        }
        const int rows = length - first - r0;
#pragma unroll 1
        for (int i = 0; i < BLOCK / (4 * P); i++, p += hop) {
            const bool valid = 4 * P * i < rows;
#pragma unroll
            for (int j = 0; j < PANELS; j++)
                copy_chunk(place<KEYS>(to, i) + j * PANEL, j, valid ? p + j * 128 : from, valid);
        }
    }

    /* By TMA, for an mbarrier: 64 rows of k (1) or v (2), all of which exist, to their places. */
    static FP_DEVICE void box(const fp_args &a, const fp_maps &maps, u32 to, const tile &t,
                              int which, int block, u32 full)
    {
        int row = block * BLOCK, column = 0;
        if constexpr (S::SPLIT) {
            row += static_cast<int>(first_row(a, t.batch));
            column = (which * a.heads + t.head) * S::W;
        } else {
            row += ((which * a.batch + t.batch) * a.heads + t.head) * a.seq_len;
        }
        box_load_dealt(to, &maps.in, column, row, full);
    }

    /* As in_order() for rows anywhere. */
    template <bool KEYS>
    static FP_DEVICE void by_tokens(u32 to, const unsigned char *from, i64 pitch, const tokens &of,
                                    int length)
    {
        const int r0 = (static_cast<int>(threadIdx.x) - C * FOUR_WARPS) / 8;
        constexpr int UNROLL = P == 1 ? 16 : 1; /* two warps lack the registers for more */
#pragma unroll UNROLL
        for (int i = 0; i < BLOCK / (4 * P); i++) {
            const int r = 4 * P * i; /* of the warp's first row; its last one is in the same half */
            const int token = __shfl_sync(0xffffffffu, r < 32 ? of.low : of.high, r0 + r);
            const bool valid = static_cast<u32>(token) < static_cast<u32>(length);
            const unsigned char *row;
            asm("mad.wide.s32 %0, %1, %2, %3;"
                : "=l"(row)
                : "r"(valid ? token : 0), "r"(static_cast<int>(pitch)), "l"(from));
#pragma unroll
            for (int j = 0; j < PANELS; j++)
                copy_chunk(place<KEYS>(to, i) + j * PANEL, j, row + j * 128, valid);
        }
    }
};

} // namespace fp::hopper_attention

#endif
