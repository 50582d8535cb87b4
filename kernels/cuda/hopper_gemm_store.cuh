/* Finish, by storing: how tiles go from registers, by way of shared memory, to memory.
 *
 * A warp that multiplies by rows stores its own 16 rows, a panel of columns after the other: it
 * waits for no other warp.  While a panel is on its way it fills the next one, in another place.
 * With SWAP a warp has 16 columns of all rows, too narrow for TMA.  Other warps then store the
 * tile from `out`, once all have left their columns there. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_STORE_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_STORE_CUH

#include "hopper_gemm_work.cuh"

namespace fp::hopper_gemm
{

template <class W> struct store {
    FP_GEMM_STEP;
    static constexpr int STORERS = W::STORERS;
    static constexpr bool SCATTERS = W::SCATTERS;

    /* ---- a warp's own rows ------------------------------------------------------------------- */

    /* 16 rows from `row` on, and a panel of columns from `column` on, of the matrix of a map.
     * fill(first_of(panel)) leaves them in the warp's next place in `out`.  count: of panels that
     * the warp has stored. */
    template <class Fill>
    static FP_DEVICE void store_panel(const W &w, const fp_map &map, int row, int column,
                                      u32 &count, const Fill &fill)
    {
        const int lane =
            static_cast<int>(threadIdx.x) % 32; /* ptxas makes other code of S::lane() */
        const u32 place = threadIdx.x / 32 * S::SLOTS + count % S::SLOTS,
                  panel = address(w.s.out) + place * S::SLOT_BYTES;
        count++;
        if constexpr (SCATTERS) {
            fill(first_of(panel));
            __syncwarp();
            scatter_panel(w, row, column, panel, lane);
            __syncwarp();
        } else {
            if (lane == 0)
                box_stores_read<S::SLOTS - 1>();
            __syncwarp();
            fill(first_of(panel));
            proxy_fence();
            __syncwarp();
            if (lane == 0) {
                box_store(&map, column, row, panel);
                box_stores_end();
            }
        }
    }

    static FP_DEVICE void scatter_panel(const W &w, int row, int column, u32 panel, int lane)
    {
        constexpr int CHUNKS = PANEL / VEC<D>;
#pragma unroll
        for (int i = lane; i < WARP_ROWS * CHUNKS; i += 32) {
            const int r = i / CHUNKS, within = i % CHUNKS * VEC<D>;
            if (row + r < w.a.tokens && column + within < w.n)
                store_chunk(w, panel + S::offset(WARP_ROWS, r, within), row + r, column + within);
        }
    }

    /* 16 bytes */
    static FP_DEVICE void store_chunk(const W &w, u32 from, int row, int column)
    {
        uint4 x;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "r"(from)
                     : "memory");
        *reinterpret_cast<uint4 *>(w.end.store.place(row, column)) = x;
    }

    /* Leaves 16 rows and columns of a warp, blocks p and p + 1 of product m, in shared memory. */
    static FP_DEVICE void leave(const W &w, sums &c, int m, int p, u32 at)
    {
        const auto &x = S::block(c, m, p), &y = S::block(c, m, p + 1);
        const float v[4][2] = {
            {x[0][0], x[0][1]}, {x[1][0], x[1][1]}, {y[0][0], y[0][1]}, {y[1][0], y[1][1]}};
        u32 r[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            r[i] = w.end.activation.template packed<D>(v[i][0], v[i][1]);
        if constexpr (S::SWAP)
            store_matrix_transposed(at, r);
        else
            store_matrix(at, r);
    }

    /* ---- a gate: half as many columns --------------------------------------------------------
     *
     * A thread has a pair of columns of each block, that is one column of the result, in two rows.
     * Neighbouring lanes trade: an even one has two columns of the first row then, an odd one of
     * the second row, and each stores words of 32 bits. */

    /* Where this lane's word of the first 16 bytes is, in lines of 64 bytes with their swizzle.
     * Odd lanes begin with the second block, so that 16 rows are in different banks. */
    static FP_DEVICE u32 first_words(u32 panel)
    {
        const int lane = S::lane(), odd = lane % 2, row = lane / 4 + odd * 8;
        return panel + row * 64 + row / 2 % 4 * 16 + odd * 8 + lane % 4 / 2 * 4;
    }

    /* Where this lane's part of a panel begins. */
    static FP_DEVICE u32 first_of(u32 panel)
    {
        if constexpr (S::GATE)
            return first_words(panel);
        else
            return S::first_matrices(panel, WARP_ROWS, 0);
    }

    /* Leaves what blocks p and p + 1 of product m become: 8 columns of 16 rows. */
    static FP_DEVICE void leave_gated(const W &w, sums &c, int m, int p, u32 at)
    {
        using function = typename decltype(w.end.activation)::function;
        const auto &x = S::block(c, m, p), &y = S::block(c, m, p + 1);
        const bool odd = S::lane() % 2 != 0;
        u32 of[2]; /* a row each */
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float first = x[r][0], second = y[r][0];
            function::pair(first, second);
            of[r] = D::pack(first * x[r][1], second * y[r][1]);
        }
        const u32 mine = odd ? of[1] : of[0], other = __shfl_xor_sync(~0u, odd ? of[0] : of[1], 1);
        const u32 block = __byte_perm(mine, other, odd ? 0x3276 : 0x5410),
                  next = __byte_perm(mine, other, odd ? 0x1054 : 0x7632);
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(block) : "memory");
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at ^ 8), "r"(next) : "memory");
    }

    /* ---- a tile's rows ----------------------------------------------------------------------- */

    /* Columns past the last are left out; a branch between two panels also keeps ptxas from mixing
     * them, for which registers would not suffice. */
    static FP_DEVICE void store_rows(const W &w, sums &c, const tile &t, int member, u32 &panels)
    {
#pragma unroll
        for (int m = 0; m < MI; m++)
            store_product(w, c, m, w.maps.out, t, member, panels);
    }

    static FP_DEVICE void store_product(const W &w, sums &c, int m, const fp_map &map,
                                        const tile &t, int member, u32 &panels)
    {
#pragma unroll
        for (int q = 0; q < BN; q += PANEL)
            if (t.n0 + q < w.n)
                store_panel(w, map, t.m0 + S::warp_row(member, m), (t.n0 + q) / (S::GATE ? 2 : 1),
                            panels, [&](u32 first) {
#pragma unroll
                                for (int p = 0; p < PANEL / 8; p += 2)
                                    if constexpr (S::GATE)
                                        leave_gated(w, c, m, q / 8 + p, first ^ p * 8);
                                    else
                                        leave(w, c, m, q / 8 + p,
                                              S::matrices_at(first, WARP_ROWS, 0, p));
                            });
    }

    /* A warp has left its columns of the tile in `out`. */
    static FP_DEVICE void hand_in(u32 done)
    {
        proxy_fence();
        mbarrier_arrive_warp(done);
    }

    /* If SWAP a warp leaves its columns of the tile in `out`, for those that store it. */
    static FP_DEVICE void hand_over(const W &w, sums &c, int member, u32 done)
    {
        const u32 out = S::first_matrices(address(w.s.out), BM, S::warp_row(member, 0));
#pragma unroll
        for (int m = 0; m < MI; m++)
#pragma unroll
            for (int p = 0; p < BM / 8; p += 2)
                leave(w, c, m, p, S::matrices_at(out, BM, m, p));
        hand_in(done);
    }

    /* ---- the warps that store whole tiles ---------------------------------------------------- */

    static FP_DEVICE void store_tiles(const W &w, int tid)
    {
        const u32 out = address(w.s.out);
        int number = w.first_tile();
        if constexpr (!SCATTERS)
            fetch_map(&w.maps.out);
        await_dependencies();
#pragma unroll 1
        for (u32 i = 0; number < w.tiles(); i++, number = w.next_tile(number)) {
            const tile t = w.locate(number);
            if constexpr (S::KEEPS) {
                mbarrier_arrive(address(w.s.ready[i % S::TEAMS]));
                mbarrier_wait(address(w.s.done[i % S::TEAMS]), 0);
                store_tile(w, w.maps.sum, t, out);
            }
            mbarrier_arrive(address(w.s.ready[i % S::TEAMS]));
            mbarrier_wait(address(w.s.done[i % S::TEAMS]), S::KEEPS ? 1 : i / S::TEAMS & 1);
            if constexpr (SCATTERS)
                scatter_tile(w, t, out, tid);
            else
                store_tile(w, w.maps.out, t, out);
        }
    }

    static FP_DEVICE void store_tile(const W &w, const fp_map &map, const tile &t, u32 out)
    {
#pragma unroll
        for (int p = 0; p < S::PANELS; p++)
            box_store(&map, t.n0 + p * PANEL, t.m0, out + p * (BM * LINE));
        box_stores_end();
        box_stores_read<0>();
    }

    static FP_DEVICE void scatter_tile(const W &w, const tile &t, u32 out, int tid)
    {
#pragma unroll 2
        for (int i = tid; i < BM * BN / VEC<D>; i += STORERS) {
            const int r = i / (BN / VEC<D>), column = i % (BN / VEC<D>)*VEC<D>;
            if (t.m0 + r < w.a.tokens && t.n0 + column < w.n)
                store_chunk(w, out + S::offset(BM, r, column), t.m0 + r, t.n0 + column);
        }
    }
};

} // namespace fp::hopper_gemm

#endif
