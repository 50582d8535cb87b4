/* What hopper_gemm.cuh adds to its products: the bias, with which sums begin, and the residual. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_ADD_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_ADD_CUH

#include "hopper_gemm_shape.cuh"

namespace fp
{

/* W: gemm_work */
template <class W> struct gemm_additions : W {
    using D = typename W::D;
    using S = typename W::S;
    using sums = typename W::sums;
    using W::BM, W::BN, W::SPLIT, W::MI, W::PANEL, W::SWAP;
    using W::n, W::end;
    using W::W;
    using W::warp_row, W::first_matrices, W::matrices_at, W::block;

    /* Sums begin with the bias of their columns, those of a split with 0. */
    FP_DEVICE void begin(sums &c, int n0, int member) const
    {
        if constexpr (SWAP)
            begin_swapped(c, n0, member);
        else
            begin_rows(c, n0);
    }

    /* A thread has sums of two columns of each product. */
    FP_DEVICE void begin_swapped(sums &c, int n0, int member) const
    {
#pragma unroll
        for (int m = 0; m < MI; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int column =
                    n0 + warp_row(member, m) + half * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
                float bias = 0.0f, none;
                if (end.bias != nullptr && column < n)
                    D::unpack(end.bias[column], bias, none);
#pragma unroll
                for (int p = 0; p < BM / 8; p++)
                    block(c, m, p)[half][0] = block(c, m, p)[half][1] = bias;
            }
    }

    /* A warp loads each pair of columns once, and its lanes hand them to each other.  Were each
     * thread to load its own pairs, ptxas would let it wait for a few at a time: for 192 columns
     * that took as long as half of the products where K is 768. */
    FP_DEVICE void begin_rows(sums &c, int n0) const
    {
        constexpr int WARP_COLUMNS = 64, LOADS = (BN + WARP_COLUMNS - 1) / WARP_COLUMNS;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        u32 bias[LOADS] = {};
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int column = n0 + i * WARP_COLUMNS + lane * 2;
            if (SPLIT == 1 && end.bias != nullptr && column < n)
                bias[i] = *reinterpret_cast<const u32 *>(end.bias + column);
        }
#pragma unroll
        for (int p = 0; p < BN / 8; p++) {
            float pair[2] = {};
            if (SPLIT == 1)
                D::unpack(__shfl_sync(~0u, bias[p / 8], p % 8 * 4 + lane % 4), pair[0], pair[1]);
            pin(pair); /* else bf16's bits make all sums integers, and products copy them */
#pragma unroll
            for (int i = 0; i < MI; i++) {
                auto &x = block(c, i, p);
                x[0][0] = x[1][0] = pair[0], x[0][1] = x[1][1] = pair[1];
            }
        }
    }

    /* Where sums take more than 96 registers, branches between steps keep ptxas from mixing them,
     * for which the others would not suffice.  So each step loads what a later one needs. */
    FP_DEVICE bool past_columns(int p) const
    {
        return MI * BN > 2 * 96 && p * 8 >= n;
    }

    /* What a step of the ring has of the residual: PIECE rows.  If SWAP the sums are of all columns
     * of a warp, else of the product of that number, whose rows these are. */
    FP_DEVICE void add_piece(sums &c, u32 panels, int piece, int member) const
    {
        constexpr int ROWS = S::PIECE, BLOCKS = (SWAP ? ROWS : BN) / 8;
        constexpr int AHEAD = BLOCKS < 4 ? 1 : 2; /* loads under way, each of 16 columns and rows */
        const u32 from = first_matrices(panels, ROWS, warp_row(SWAP ? member : 0, 0));
#pragma unroll
        for (int i = 0; i < (SWAP ? MI : 1); i++) {
            u32 next[AHEAD][4];
#pragma unroll
            for (int b = 0; b < AHEAD; b++)
                load_block(next[b], matrices_at(from, ROWS, i, b * 2));
#pragma unroll
            for (int p = 0; p < BLOCKS; p += 2) {
                if (!SWAP && past_columns(p))
                    break;
                u32(&x)[4] = next[p / 2 % AHEAD];
                const u32 r[4] = {x[0], x[1], x[2], x[3]};
                if (p + AHEAD * 2 < BLOCKS)
                    load_block(x, matrices_at(from, ROWS, i, p + AHEAD * 2));
                add_block(c, SWAP ? i : piece, SWAP ? piece * BLOCKS + p : p, r);
            }
        }
    }

    /* What the residual adds to product m of two products, in columns of a chunk. */
    using addends = float[S::CHUNK / 8][2][2];

    /* panel: its place in shared memory. */
    FP_DEVICE void load_addends(addends &x, u32 panel, int chunk, int m) const
    {
        constexpr int BLOCKS = S::CHUNK / 8, WITHIN = PANEL / 8;
        const u32 from = first_matrices(panel, BM, warp_row(0, m));
#pragma unroll
        for (int p = 0; p < BLOCKS; p += 2) {
            u32 r[4];
            load_block(r, matrices_at(from, BM, 0, chunk * BLOCKS % WITHIN + p));
#pragma unroll
            for (int i = 0; i < 4; i++)
                D::unpack(r[i], x[p + i / 2][i % 2][0], x[p + i / 2][i % 2][1]);
        }
        pin(x);
    }

    FP_DEVICE void add(sums &c, const addends &x, int chunk, int m) const
    {
        constexpr int BLOCKS = S::CHUNK / 8;
#pragma unroll
        for (int p = 0; p < BLOCKS; p++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                auto &sum = block(c, m, chunk * BLOCKS + p)[i];
                sum[0] += x[p][i][0], sum[1] += x[p][i][1];
            }
    }

    /* 16 rows and columns of a warp. */
    static FP_DEVICE void add_block(sums &c, int m, int p, const u32 (&r)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float lo, hi;
            D::unpack(r[i], lo, hi);
            auto &x = block(c, m, p + i / 2)[i % 2];
            x[0] += lo, x[1] += hi;
        }
    }

    static FP_DEVICE void load_block(u32 (&r)[4], u32 from)
    {
        if constexpr (SWAP)
            load_matrix_transposed(r, from);
        else
            load_matrix(r, from);
    }
};

} // namespace fp

#endif
