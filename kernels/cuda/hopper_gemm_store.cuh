/* Finish, by storing: how tiles go from registers, by way of shared memory, to memory.
 *
 * A warp that multiplies by rows stores its own 16 rows, a panel of columns after the other: it
 * waits for no other warp.  While a panel is on its way it fills the next one, in another place.
 * With SWAP a warp has 16 columns of all rows, too narrow for TMA.  Other warps then store the
 * tile from `out`, once all have left their columns there. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_STORE_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_STORE_CUH

#include "hopper_gemm_pairs.cuh"

namespace fp::hopper_gemm
{

template <class W> struct store {
    FP_GEMM_STEP;
    static constexpr int STORERS = W::STORERS, TURNED = W::TURNED;
    static constexpr bool SCATTERS = W::SCATTERS;

    /* ---- a warp's own rows ------------------------------------------------------------------- */

    /* Panels in e4m3 are half as large, so that there is room for twice as many. */
    static constexpr int ROOMS = S::PAIRS ? 2 * S::SLOTS : S::SLOTS,
                         ROOM_BYTES = S::SLOTS * S::SLOT_BYTES / ROOMS;

    /* The warp's next place in `out`.  count: of panels that the warp has stored. */
    static FP_DEVICE u32 next_panel(const W &w, u32 &count)
    {
        const u32 place = threadIdx.x / 32 * ROOMS + count % ROOMS;
        count++;
        return address(w.s.out) + place * ROOM_BYTES;
    }

    /* 16 rows from `row` on, and a panel of columns from `column` on, of the matrix of a map.
     * fill(first_of(panel)) leaves them in the warp's next place. */
    template <bool PAIRS = S::PAIRS, class Fill>
    static FP_DEVICE void store_panel(const W &w, const fp_map &map, int row, int column,
                                      u32 &count, const Fill &fill)
    {
        const int lane =
            static_cast<int>(threadIdx.x) % 32; /* ptxas makes other code of S::lane() */
        const u32 panel = next_panel(w, count);
        if (lane == 0)
            box_stores_read<ROOMS - 1>();
        __syncwarp();
        fill(first_of<PAIRS>(panel));
        proxy_fence();
        __syncwarp();
        if (lane == 0) {
            box_store(&map, column, row, panel);
            box_stores_end();
        }
    }

    /* ---- the same of rows that are no neighbours in memory ----------------------------------- */

    /* A lane stores chunks of 16 bytes, each BELOW rows below the one before. */
    static constexpr int CHUNKS = PANEL / VEC<D>, BELOW = 32 / CHUNKS, EACH = WARP_ROWS / BELOW;

    /* The token of a lane's row of a warp's 16, from `row` on. */
    static FP_DEVICE auto token_of_lane(const W &w, int row)
    {
        return w.end.store.token_of(
            min(row + static_cast<int>(threadIdx.x % WARP_ROWS), w.a.tokens - 1));
    }

    /* Where the rows begin of which a lane stores chunks, in units of 16 bytes. */
    struct places {
        u32 row[EACH];
    };
    template <class Token> static FP_DEVICE places places_of(const W &w, const Token &own)
    {
        places out;
        const u32 at = static_cast<u32>(w.end.store.of_row(own) / VEC<D>);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            out.row[i] = __shfl_sync(~0u, at, threadIdx.x % 32 / CHUNKS + i * BELOW);
        return out;
    }

    /* Like store_panel(). */
    template <class Fill>
    static FP_DEVICE void scatter_panel(const W &w, const places &to, int row, int column,
                                        u32 &count, const Fill &fill)
    {
        const u32 panel = next_panel(w, count);
        const u32 first = threadIdx.x % 32 / CHUNKS, within = threadIdx.x % CHUNKS * VEC<D>;
        fill(first_of<false>(panel));
        __syncwarp();
        if (column + static_cast<int>(within) < w.n) {
            elem<D> *out = w.end.store.out + w.end.store.of_column(column + within);
            const u32 from = panel + S::offset(WARP_ROWS, first, within);
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (row + static_cast<int>(first) + i * BELOW < w.a.tokens)
                    store_16(out + static_cast<i64>(to.row[i]) * VEC<D>,
                             load_chunk((from ^ i * BELOW % 8 * 16) + i * BELOW * LINE));
        }
        __syncwarp();
    }

    static FP_DEVICE uint4 load_chunk(u32 from)
    {
        uint4 x;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "r"(from)
                     : "memory");
        return x;
    }

    /* ---- rotary embeddings -------------------------------------------------------------------
     *
     * A thread has columns 2t and 2t + 1 of each block, and so both columns of a pair, which are a
     * whole number of blocks apart. */

    /* The rows of the table of a warp's 16 tokens, from `row` on, come into the cache of this
     * multiprocessor: to be called while the last products run. */
    static FP_DEVICE void fetch_turns(const W &w, int row)
    {
        if constexpr (TURNED > 0) {
            constexpr int LINE = 32; /* floats */
            await_dependencies();    /* tokens may be packed */
            const float *at = w.end.store.turns().table + token_of_lane(w, row).place * TURNED;
#pragma unroll
            for (int i = static_cast<int>(threadIdx.x) % 32 / WARP_ROWS * LINE; i < TURNED;
                 i += 2 * LINE)
                fetch_line(at + i);
        }
    }

    /* Turns the heads of q and k in product m.  place: in its sequence, of a lane's token.  What a
     * thread needs of a row of the table is asked for at once, and serves all heads of the tile. */
    static FP_DEVICE void turn(const W &w, sums &c, int m, int place, int n0)
    {
        constexpr int HALF = TURNED / 16; /* blocks */
        const auto turns = w.end.store.turns();
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float *at = turns.table + (__shfl_sync(~0u, place, fragment_row<D>(r)) * TURNED +
                                             threadIdx.x % 4 * 4);
            float4 t[HALF];
#pragma unroll
            for (int p = 0; p < HALF; p++)
                t[p] = __ldg(reinterpret_cast<const float4 *>(at + p * 16));
#pragma unroll
            for (int head = 0; head < BN / 8; head += 2 * HALF)
                if (turns.of_column(n0 + head * 8))
#pragma unroll
                    for (int p = 0; p < HALF; p++) {
                        auto &x = S::block(c, m, head + p)[r],
                             &y = S::block(c, m, head + p + HALF)[r];
                        turn_pair(x[0], y[0], t[p].x, t[p].y);
                        turn_pair(x[1], y[1], t[p].z, t[p].w);
                    }
        }
    }

    /* ---- sums -------------------------------------------------------------------------------- */

    /* Leaves 16 rows and columns of a warp, blocks p and p + 1 of product m, in shared memory. */
    static FP_DEVICE void leave(const W &w, sums &c, int m, int p, u32 at)
    {
        u32 r[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const auto &x = S::block(c, m, p + i / 2)[i % 2];
            r[i] = w.end.activation.template packed<D>(x[0], x[1]);
        }
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

    /* ---- e4m3 -------------------------------------------------------------------------------- */

    /* Leaves what four blocks become, from block p on: 32 columns of 16 rows, of a gate 16. */
    static FP_DEVICE void leave_e4m3(const W &w, sums &c, int m, int p, u32 at)
    {
        if constexpr (S::GATE) {
            const u32 v[2][2] = {{gated(w, c, m, p, 0), gated(w, c, m, p + 2, 0)},
                                 {gated(w, c, m, p, 1), gated(w, c, m, p + 2, 1)}};
            pairs<W>::leave_gated(w, v, at);
        } else {
            pairs<W>::leave_sums(w, c, m, p, at);
        }
    }

    /* Where this lane's part of a panel begins. */
    template <bool PAIRS> static FP_DEVICE u32 first_of(u32 panel)
    {
        if constexpr (PAIRS)
            return pairs<W>::first(panel);
        else if constexpr (S::GATE)
            return first_words(panel);
        else
            return S::first_matrices(panel, WARP_ROWS, 0);
    }

    /* What this lane's pairs of blocks p and p + 1 of product m become in row r of two. */
    static FP_DEVICE u32 gated(const W &w, sums &c, int m, int p, int r)
    {
        using function = typename decltype(w.end.activation)::function;
        const auto &x = S::block(c, m, p)[r], &y = S::block(c, m, p + 1)[r];
        float first = x[0], second = y[0];
        function::pair(first, second);
        return D::pack(first * x[1], second * y[1]);
    }

    /* Leaves 8 columns of 16 rows. */
    static FP_DEVICE void leave_gated(const W &w, sums &c, int m, int p, u32 at)
    {
        const bool odd = S::lane() % 2 != 0;
        const u32 of[2] = {gated(w, c, m, p, 0), gated(w, c, m, p, 1)}; /* a row each */
        const u32 mine = odd ? of[1] : of[0], other = __shfl_xor_sync(~0u, odd ? of[0] : of[1], 1);
        const u32 block = __byte_perm(mine, other, odd ? 0x3276 : 0x5410),
                  next = __byte_perm(mine, other, odd ? 0x1054 : 0x7632);
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(block) : "memory");
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at ^ 8), "r"(next) : "memory");
    }

    /* ---- a tile's rows ----------------------------------------------------------------------- */

    static FP_DEVICE void store_rows(const W &w, sums &c, const tile &t, int member, u32 &panels)
    {
#pragma unroll
        for (int m = 0; m < MI; m++)
            if constexpr (SCATTERS)
                scatter_product(w, c, m, t, member, panels);
            else
                store_product(w, c, m, S::PAIRS ? w.maps.e4m3 : w.maps.out, t, member, panels);
    }

    /* Columns past the last are left out; a branch between two panels also keeps ptxas from mixing
     * them, for which registers would not suffice. */
    static FP_DEVICE void store_product(const W &w, sums &c, int m, const fp_map &map,
                                        const tile &t, int member, u32 &panels)
    {
#pragma unroll
        for (int q = 0; q < BN; q += PANEL)
            if (t.n0 + q < w.n)
                store_panel(
                    w, map, t.m0 + S::warp_row(member, m), (t.n0 + q) / (S::GATE ? 2 : 1), panels,
                    [&](u32 first) {
#pragma unroll
                        for (int p = 0; p < PANEL / 8; p += S::PAIRS ? 4 : 2)
                            if constexpr (S::PAIRS)
                                leave_e4m3(w, c, m, q / 8 + p, first ^ p * (S::GATE ? 4 : 8));
                            else if constexpr (S::GATE)
                                leave_gated(w, c, m, q / 8 + p, first ^ p * 8);
                            else
                                leave(w, c, m, q / 8 + p, S::matrices_at(first, WARP_ROWS, 0, p));
                    });
    }

    static FP_DEVICE void scatter_product(const W &w, sums &c, int m, const tile &t, int member,
                                          u32 &panels)
    {
        const int row = t.m0 + S::warp_row(member, m);
        const auto own = token_of_lane(w, row);
        if constexpr (TURNED > 0) {
            if (m + 1 < MI)
                fetch_turns(w, row + 64);
            turn(w, c, m, own.place, t.n0);
        }
        const places to = places_of(w, own);
        int n0 = t.n0;
        if constexpr (S::STAYS) /* else what it leads to has registers for all tiles */
            asm volatile("" : "+r"(n0));
#pragma unroll
        for (int q = 0; q < BN; q += PANEL)
            if (n0 + q < w.n)
                scatter_panel(w, to, row, n0 + q, panels, [&](u32 first) {
#pragma unroll
                    for (int p = 0; p < PANEL / 8; p += 2)
                        leave(w, c, m, q / 8 + p, S::matrices_at(first, WARP_ROWS, 0, p));
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
            const int r = i / (BN / VEC<D>), within = i % (BN / VEC<D>)*VEC<D>;
            const int row = t.m0 + r, column = t.n0 + within;
            if (row >= w.a.tokens || column >= w.n)
                continue;
            const auto token = w.end.store.token_of(row);
            elem<D> *to =
                w.end.store.out + w.end.store.of_row(token) + w.end.store.of_column(column);
            if (turned(w, column))
                store_turned(w, to, out, token, r, within);
            else
                store_16(to, load_chunk(out + S::offset(BM, r, within)));
        }
    }

    static FP_DEVICE bool turned(const W &w, int column)
    {
        if constexpr (TURNED > 0)
            return w.end.store.turns().of_column(column);
        else
            return false;
    }

    /* A chunk of a tile, which has the other halves of its pairs, too. */
    template <class Token>
    static FP_DEVICE void store_turned(const W &w, elem<D> *to, u32 out, const Token &token,
                                       int row, int within)
    {
        if constexpr (TURNED > 0) {
            const auto turns = w.end.store.turns();
            const int other =
                within % TURNED < TURNED / 2 ? within + TURNED / 2 : within - TURNED / 2;
            float v[VEC<D>], y[VEC<D>];
            unpack_vec<D>(load_chunk(out + S::offset(BM, row, within)), v);
            unpack_vec<D>(load_chunk(out + S::offset(BM, row, other)), y);
            turns.turn(v, y, within, turns.of_place(token.place));
            store_16(to, pack_vec<D>(v));
        }
    }
};

} // namespace fp::hopper_gemm

#endif
