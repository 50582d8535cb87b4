/* How tiles of hopper_gemm.cuh go from registers, by way of shared memory, to memory.
 *
 * A warp that multiplies by rows stores its own 16 rows, a panel of columns after the other: it
 * waits for no other warp.  While a panel is on its way it fills the next one, in another place.
 * With SWAP a warp has 16 columns of all rows, too narrow for TMA.  Other warps then store the
 * tile from s.out, once all have left their columns there. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_STORE_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_STORE_CUH

#include "hopper_gemm_load.cuh"

namespace fp
{

/* W: gemm_loads */
template <class W> struct gemm_stores : W {
    using D = typename W::D;
    using S = typename W::S;
    using tile = typename W::tile;
    using sums = typename W::sums;
    using W::a, W::maps, W::n, W::end, W::s;
    using W::BM, W::BN, W::MI, W::PANEL, W::LINE, W::STORERS, W::SCATTERS, W::SWAP;
    using W::first_tile, W::next_tile, W::tiles, W::locate, W::offset, W::first_matrices,
        W::matrices_at, W::block, W::warp_row, W::finish_tile;
    using W::W;

    /* ---- a warp's own rows ------------------------------------------------------------------- */

    /* 16 rows from `row` on, and a panel of columns from `column` on.  fill(first_matrices())
     * leaves them in the warp's next place in s.out.  count: of panels that the warp has stored. */
    template <class Fill>
    FP_DEVICE void store_panel(int row, int column, u32 &count, const Fill &fill) const
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const u32 place = threadIdx.x / 32 * S::SLOTS + count % S::SLOTS,
                  panel = shared_address(s.out) + place * S::SLOT_BYTES;
        count++;
        if constexpr (SCATTERS) {
            fill(first_matrices(panel, WARP_ROWS, 0));
            __syncwarp();
            scatter_panel(row, column, panel, lane);
            __syncwarp();
        } else {
            if (lane == 0)
                box_stores_read<S::SLOTS - 1>();
            __syncwarp();
            fill(first_matrices(panel, WARP_ROWS, 0));
            proxy_fence();
            __syncwarp();
            if (lane == 0) {
                box_store(&maps.out, column, row, panel);
                box_stores_end();
            }
        }
    }

    FP_DEVICE void scatter_panel(int row, int column, u32 panel, int lane) const
    {
        constexpr int CHUNKS = PANEL / VEC<D>;
#pragma unroll
        for (int i = lane; i < WARP_ROWS * CHUNKS; i += 32) {
            const int r = i / CHUNKS, within = i % CHUNKS * VEC<D>;
            if (row + r < a.tokens && column + within < n)
                store_chunk(panel + offset(WARP_ROWS, r, within), row + r, column + within);
        }
    }

    /* 16 bytes */
    FP_DEVICE void store_chunk(u32 from, int row, int column) const
    {
        uint4 x;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "r"(from)
                     : "memory");
        *reinterpret_cast<uint4 *>(end.store.place(row, column)) = x;
    }

    /* Leaves 16 rows and columns of a warp, blocks p and p + 1 of product m, in shared memory. */
    FP_DEVICE void leave(sums &c, int m, int p, u32 at) const
    {
        const auto &x = block(c, m, p), &y = block(c, m, p + 1);
        const float v[4][2] = {
            {x[0][0], x[0][1]}, {x[1][0], x[1][1]}, {y[0][0], y[0][1]}, {y[1][0], y[1][1]}};
        u32 r[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            r[i] = end.activation.template packed<D>(v[i][0], v[i][1]);
        if constexpr (SWAP)
            store_matrix_transposed(at, r);
        else
            store_matrix(at, r);
    }

    /* Columns past the last are left out; a branch between two panels also keeps ptxas from mixing
     * them, for which registers would not suffice. */
    FP_DEVICE void store_rows(sums &c, const tile &t, int member, u32 &panels) const
    {
#pragma unroll
        for (int m = 0; m < MI; m++)
#pragma unroll
            for (int q = 0; q < BN; q += PANEL)
                if (t.n0 + q < n)
                    store_panel(t.m0 + warp_row(member, m), t.n0 + q, panels, [&](u32 first) {
#pragma unroll
                        for (int p = 0; p < PANEL / 8; p += 2)
                            leave(c, m, q / 8 + p, matrices_at(first, WARP_ROWS, 0, p));
                    });
    }

    /* If SWAP a warp leaves its columns of the tile in s.out, for those that store it. */
    FP_DEVICE void hand_over(sums &c, int member, u32 done) const
    {
        const u32 out = first_matrices(shared_address(s.out), BM, warp_row(member, 0));
#pragma unroll
        for (int m = 0; m < MI; m++)
#pragma unroll
            for (int p = 0; p < BM / 8; p += 2)
                leave(c, m, p, matrices_at(out, BM, m, p));
        finish_tile(done);
    }

    /* ---- the warps that store whole tiles ---------------------------------------------------- */

    FP_DEVICE void store_tiles(int tid)
    {
        const u32 out = shared_address(s.out);
        int number = first_tile();
        if constexpr (!SCATTERS)
            fetch_map(&maps.out);
        await_dependencies();
#pragma unroll 1
        for (u32 i = 0; number < tiles(); i++, number = next_tile(number)) {
            const tile t = locate(number);
            mbarrier_arrive(shared_address(&s.ready[i % S::TEAMS]));
            mbarrier_wait(shared_address(&s.done[i % S::TEAMS]), i / S::TEAMS & 1);
            if constexpr (SCATTERS)
                scatter_tile(t, out, tid);
            else
                store_tile(t, out);
        }
    }

    FP_DEVICE void store_tile(const tile &t, u32 out) const
    {
#pragma unroll
        for (int p = 0; p < S::PANELS; p++)
            box_store(&maps.out, t.n0 + p * PANEL, t.m0, out + p * (BM * LINE));
        box_stores_end();
        box_stores_read<0>();
    }

    FP_DEVICE void scatter_tile(const tile &t, u32 out, int tid) const
    {
#pragma unroll 2
        for (int i = tid; i < BM * BN / VEC<D>; i += STORERS) {
            const int r = i / (BN / VEC<D>), column = i % (BN / VEC<D>)*VEC<D>;
            if (t.m0 + r < a.tokens && t.n0 + column < n)
                store_chunk(out + offset(BM, r, column), t.m0 + r, t.n0 + column);
        }
    }
};

} // namespace fp

#endif
