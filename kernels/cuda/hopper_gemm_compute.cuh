/* Compute: the products of a tile's steps, the bias, with which sums begin unless BIAS_LAST, and a
 * residual that follows its tile in the ring.  The ways differ in what they do between steps. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_COMPUTE_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_COMPUTE_CUH

#include "hopper_gemm_work.cuh"

namespace fp::hopper_gemm
{

template <class W> struct compute {
    FP_GEMM_STEP;
    static constexpr bool SWAP = S::SWAP;

    /* What is added to sums of e4m3 operands is over their scales, as they are. */
    static FP_DEVICE float as_sum(const W &w, float x)
    {
        return S::E4M3 ? x * w.a.e4m3.inverse : x;
    }

    /* ---- bias -------------------------------------------------------------------------------- */

    /* Sums begin with the bias of their columns, those of a split with 0.  If BIAS_LAST the first
     * products overwrite what they hold. */
    static FP_DEVICE void begin(const W &w, sums &c, int n0, int member)
    {
        if constexpr (S::BIAS_LAST)
            return;
        else if constexpr (SWAP)
            begin_swapped(w, c, n0, member);
        else
            begin_rows(w, c, n0);
    }

    /* A thread has sums of two columns of each product. */
    static FP_DEVICE void begin_swapped(const W &w, sums &c, int n0, int member)
    {
#pragma unroll
        for (int m = 0; m < MI; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int column =
                    n0 + S::warp_row(member, m) + half * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
                float bias = 0.0f, none;
                if (w.end.bias != nullptr && column < w.n)
                    D::unpack(w.end.bias[column], bias, none);
                bias = as_sum(w, bias);
#pragma unroll
                for (int p = 0; p < BM / 8; p++)
                    S::block(c, m, p)[half][0] = S::block(c, m, p)[half][1] = bias;
            }
    }

    /* A warp loads each pair of columns once, and its lanes hand them to each other.  Were each
     * thread to load its own pairs, ptxas would let it wait for a few at a time: for 192 columns
     * that took as long as half of the products where K is 768. */
    static constexpr int WARP_COLUMNS = 64, LOADS = (BN + WARP_COLUMNS - 1) / WARP_COLUMNS;

    static FP_DEVICE void load_bias(const W &w, int n0, u32 (&bias)[LOADS])
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int column = n0 + i * WARP_COLUMNS + lane * 2;
            bias[i] = 0;
            if (S::SPLIT == 1 && w.end.bias != nullptr && column < w.n)
                bias[i] = *reinterpret_cast<const u32 *>(w.end.bias + column);
        }
    }

    /* Of a lane's columns of block p. */
    static FP_DEVICE void unpack_bias(const u32 (&bias)[LOADS], int lane, int p, float (&pair)[2])
    {
        D::unpack(__shfl_sync(~0u, bias[p / 8], p % 8 * 4 + lane % 4), pair[0], pair[1]);
    }

    static FP_DEVICE void begin_rows(const W &w, sums &c, int n0)
    {
        u32 bias[LOADS];
        load_bias(w, n0, bias);
        begin_with(w, c, bias);
    }

    static FP_DEVICE void begin_with(const W &w, sums &c, const u32 (&bias)[LOADS])
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int p = 0; p < BN / 8; p++) {
            float pair[2] = {};
            if (S::SPLIT == 1) {
                unpack_bias(bias, lane, p, pair);
                pair[0] = as_sum(w, pair[0]), pair[1] = as_sum(w, pair[1]);
            }
            pin(pair); /* else bf16's bits make all sums integers, and products copy them */
#pragma unroll
            for (int i = 0; i < MI; i++) {
                auto &x = S::block(c, i, p);
                x[0][0] = x[1][0] = pair[0], x[0][1] = x[1][1] = pair[1];
            }
        }
    }

    /* ---- products ---------------------------------------------------------------------------- */

    /* A step was multiplied.  Its place is free for the next one once it was in all thread blocks
     * that the next one goes to. */
    static FP_DEVICE void give_back(const W &w, u32 slot)
    {
        const u32 empty = address(w.s.empty[slot]);
        if constexpr (S::CLUSTER == 1) {
            mbarrier_arrive_warp(empty);
        } else {
            const int lane = static_cast<int>(threadIdx.x) % 32;
            __syncwarp();
            if (lane < S::CLUSTER)
                mbarrier_arrive_cluster(cluster_address(empty, lane));
        }
    }

    /* step: of its tile, where a weight stays. */
    static FP_DEVICE void await_step(const W &w, position at, int step = 0)
    {
        if constexpr (S::STAYS)
            mbarrier_wait(address(w.s.full[S::STAGES + step]), 0);
        mbarrier_wait(address(w.s.full[at.slot]), at.phase);
        if constexpr (W::GATHERS)
            proxy_fence();
    }

    /* A step of COUNT products of a warpgroup, from the FIRST one on. */
    template <int FIRST, int COUNT>
    static FP_DEVICE void issue(const W &w, sums &c, position at, int member, int step = 0)
    {
        if constexpr (S::E4M3)
            issue_e4m3<FIRST, COUNT>(w, c, at, member, step);
        else
            issue_half<FIRST, COUNT>(w, c, at, member);
    }

    /* Both operands lie by rows of the inner dimension.  The first one is that of 64 rows. */
    template <int FIRST, int COUNT>
    static FP_DEVICE void issue_e4m3(const W &w, sums &c, position at, int member, int step)
    {
        constexpr int INNER = 32, PRODUCT = 64 * FP_GEMM_LINE; /* of an instruction; bytes */
        constexpr int OWN = SWAP ? BN : BM, OTHER = SWAP ? BM : BN;
        const u32 input = address(w.s.input[at.slot]),
                  weight = address(w.s.weight[S::STAYS ? step : at.slot]);
        const u64 own = wgmma_matrix((SWAP ? weight : input) + member * MI * PRODUCT, 16, 1024),
                  other = wgmma_matrix(SWAP ? input : weight, 16, 1024);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK; k += INNER) {
            const int panel = k / S::A_PANEL * (FP_GEMM_LINE / 16), within = k % S::A_PANEL / 16;
#pragma unroll
            for (int m = FIRST; m < FIRST + COUNT; m++) {
                const u64 a = own + panel * OWN + m * (PRODUCT / 16) + within,
                          b = other + panel * OTHER + within;
                if (S::BIAS_LAST && k == 0)
                    wgmma<e4m3, OTHER>::nt_from(c[m], a, b, at.adds);
                else
                    wgmma<e4m3, OTHER>::nt(c[m], a, b);
            }
        }
    }

    template <int FIRST, int COUNT>
    static FP_DEVICE void issue_half(const W &w, sums &c, position at, int member)
    {
        const u32 a = address(w.s.input[at.slot]) + (SWAP ? 0 : member * MI * 8192),
                  b = address(w.s.weight[at.slot]) + (SWAP ? member * MI * BK * LINE : 0);
        const u64 rows = wgmma_matrix(a, 16, 1024),
                  columns = wgmma_matrix<LINE>(b, BK * LINE, 8 * LINE);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            const u64 from =
                rows + k / S::A_PANEL * (S::A_PANEL_BYTES / 16) + k % S::A_PANEL * 2 / 16;
#pragma unroll
            for (int m = FIRST; m < FIRST + COUNT; m++)
                if constexpr (SWAP)
                    wgmma<D, BM>::tt(c[m], columns + m * (BK * LINE / 16) + k * (LINE / 16), from);
                else
                    wgmma<D, BN>::nn(c[m], from + m * (8192 / 16), columns + k * (LINE / 16));
        }
    }

    struct nothing { /* before a step */
        FP_DEVICE void operator()(int) const
        {
        }
    };

    /* Issues so many steps from `at` on, at least one, and returns the last one's place: all before
     * it are multiplied and given back.  member: of the warpgroups that share the tile.  before(i)
     * comes before step i.  A loop that tests at its end keeps ptxas from writing the bias into the
     * sums' registers twice. */
    template <class Before>
    static FP_DEVICE u32 issue_steps(const W &w, sums &c, position &at, int count, int member,
                                     const Before &before)
    {
        u32 held = 0;
        int i = 0;
#pragma unroll 1
        do {
            before(i);
            await_step(w, at, i);
            issue<0, MI>(w, c, at, member, i);
            wgmma_commit();
            if (i > 0) {
                wgmma_wait<1>();
                give_back(w, held);
            }
            held = at.slot;
            at.advance();
        } while (++i < count);
        return held;
    }

    /* Waits for the last step, in place `held`. */
    static FP_DEVICE void complete(const W &w, sums &c, u32 held)
    {
        wgmma_wait<0>();
        give_back(w, held);
#pragma unroll
        for (int m = 0; m < MI; m++)
            pin(c[m]);
    }

    /* So many steps, see issue_steps().  next: the mbarrier of the warpgroup whose turn it is
     * then, 0 for none.  before(count) comes before that turn. */
    template <class Before = nothing>
    static FP_DEVICE void multiply(const W &w, sums &c, position &at, int count, int member,
                                   u32 next, const Before &before = {})
    {
        const u32 held = issue_steps(w, c, at, count, member, before);
        before(count);
        if (next != 0)
            mbarrier_arrive_warp(next);
        complete(w, c, held);
    }

    /* ---- a residual in the ring -------------------------------------------------------------- */

    /* It follows the tile's steps.  Without SWAP each warpgroup adds its own MI pieces.  landed:
     * the mbarrier that tells the other team that all of it is here. */
    static FP_DEVICE void add_residual(const W &w, sums &c, position at, int member, u32 landed)
    {
        constexpr int EACH = SWAP ? S::PIECES : MI;
#pragma unroll 1
        for (int i = 0; i < S::RESIDUAL_STEPS; i += EACH)
#pragma unroll
            for (int j = 0; j < EACH; j++, at.advance()) {
                mbarrier_wait(address(w.s.full[at.slot]), at.phase);
                if (S::TEAMS > 1 && j == EACH - 1)
                    mbarrier_arrive_warp(landed);
                if (SWAP || i == member * MI) {
                    add_piece(w, c, address(w.s.weight[at.slot]), j, member);
                    proxy_fence(); /* TMA writes there next */
                }
                give_back(w, at.slot);
            }
    }

    /* Where sums take more than 96 registers, branches between steps keep ptxas from mixing them,
     * for which the others would not suffice.  So each step loads what a later one needs. */
    static FP_DEVICE bool past_columns(const W &w, int p)
    {
        return MI * BN > 2 * 96 && p * 8 >= w.n;
    }

    /* What a step of the ring has of the residual: PIECE rows.  If SWAP the sums are of all columns
     * of a warp, else of the product of that number, whose rows these are. */
    static FP_DEVICE void add_piece(const W &w, sums &c, u32 panels, int piece, int member)
    {
        constexpr int ROWS = S::PIECE, BLOCKS = (SWAP ? ROWS : BN) / 8;
        constexpr int AHEAD = BLOCKS < 4 ? 1 : 2; /* loads under way, each of 16 columns and rows */
        const u32 from = S::first_matrices(panels, ROWS, S::warp_row(SWAP ? member : 0, 0));
#pragma unroll
        for (int i = 0; i < (SWAP ? MI : 1); i++) {
            u32 next[AHEAD][4];
#pragma unroll
            for (int b = 0; b < AHEAD; b++)
                load_block(next[b], S::matrices_at(from, ROWS, i, b * 2));
#pragma unroll
            for (int p = 0; p < BLOCKS; p += 2) {
                if (!SWAP && past_columns(w, p))
                    break;
                u32(&x)[4] = next[p / 2 % AHEAD];
                const u32 r[4] = {x[0], x[1], x[2], x[3]};
                if (p + AHEAD * 2 < BLOCKS)
                    load_block(x, S::matrices_at(from, ROWS, i, p + AHEAD * 2));
                add_block(w, c, SWAP ? i : piece, SWAP ? piece * BLOCKS + p : p, r);
            }
        }
    }

    /* 16 rows and columns of a warp. */
    static FP_DEVICE void add_block(const W &w, sums &c, int m, int p, const u32 (&r)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float lo, hi;
            D::unpack(r[i], lo, hi);
            auto &x = S::block(c, m, p + i / 2)[i % 2];
            x[0] += as_sum(w, lo), x[1] += as_sum(w, hi);
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

} // namespace fp::hopper_gemm

#endif
