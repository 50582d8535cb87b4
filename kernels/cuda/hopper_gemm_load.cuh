/* Load: what the warps do that do not multiply.  One brings the weight and one the input for one
 * tile after another; others bring what a layernorm or a residual between products needs. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_LOAD_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_LOAD_CUH

#include "hopper_gemm_work.cuh"

namespace fp::hopper_gemm
{

template <class W> struct load {
    FP_GEMM_STEP;
    using T = elem<D>;
    static constexpr int CLUSTER = S::CLUSTER;
    static constexpr bool GATHERS = W::GATHERS;
    static constexpr u16 ALL = (1 << CLUSTER) - 1; /* thread blocks of the cluster */

    static_assert(!(S::E4M3 && GATHERS), "rows that are gathered are of a half type");

    static FP_DEVICE void weight_box(const W &w, u32 to, int column, int row, u32 full)
    {
        if constexpr (CLUSTER > 1)
            box_multicast(to, &w.maps.weight, column, row, full, ALL);
        else
            box_load(to, &w.maps.weight, column, row, full);
    }

    /* A step of the weight.  Thread blocks that share it load some of its rows each, for all. */
    static FP_DEVICE void weight(const W &w, u32 to, int n0, int k0, u32 full)
    {
        constexpr int ROWS = S::E4M3 ? BN : BK;
        const int row = cluster_rank<CLUSTER>() * (ROWS / CLUSTER);
        if constexpr (S::E4M3)
#pragma unroll
            for (int p = 0; p < BK / S::A_PANEL; p++)
                weight_box(w, to + (p * ROWS + row) * FP_GEMM_LINE, k0 + p * S::A_PANEL, n0 + row,
                           full);
        else
#pragma unroll
            for (int p = 0; p < S::PANELS; p++)
                weight_box(w, to + p * (ROWS * LINE) + row * LINE, n0 + p * PANEL, k0 + row, full);
    }

    /* Says of each step how many bytes come, those of the other warp included. */
    static FP_DEVICE void weights(const W &w)
    {
        const int count = w.steps(), k0 = w.first_step() * BK;
        position at = {0, 1};
        for (int number = w.first_tile(); number < w.tiles(); number = w.next_tile(number)) {
            const tile t = w.locate(number);
#pragma unroll 1
            for (int i = 0; i < count + S::RESIDUAL_STEPS; i++, at.advance()) {
                const u32 full = address(w.s.full[at.slot]);
                mbarrier_wait(address(w.s.empty[at.slot]), at.phase);
                if (i < count) {
                    mbarrier_expect(full, GATHERS ? S::B_BYTES : S::A_BYTES + S::B_BYTES);
                    weight(w, address(w.s.weight[at.slot]), t.n0, k0 + i * BK, full);
                } else {
                    mbarrier_expect(full, S::PIECE_BYTES);
                }
            }
        }
        if constexpr (CLUSTER > 1) /* others arrive at the mbarriers here until their last step */
            for (int i = 0; i < S::STAGES; i++, at.advance())
                mbarrier_wait(address(w.s.empty[at.slot]), at.phase);
    }

    /* The weight of the columns of all of the thread block's tiles: three steps under way at most,
     * so that the input's first steps do not queue up behind all of it. */
    static FP_DEVICE void kept(const W &w)
    {
        constexpr int AHEAD = 3;
        if (w.first_tile() >= w.tiles())
            return;
        const int count = w.steps(), n0 = w.locate(w.first_tile()).n0;
#pragma unroll 1
        for (int i = 0; i < count; i++) {
            const u32 full = address(w.s.full[S::STAGES + i]);
            if (i >= AHEAD)
                mbarrier_wait(address(w.s.full[S::STAGES + i - AHEAD]), 0);
            mbarrier_expect(full, S::B_BYTES);
            weight(w, address(w.s.weight[i]), n0, i * BK, full);
        }
    }

    /* Whether L2 should drop the input and the residual first.  Nothing in the chain reads either
     * of them after a GEMM that adds a residual.  Where L2 has no room for all tensors of a layer,
     * what the next kernels read stays there instead.  Small layers run by smaller tiles, and would
     * take longer by the time of this test. */
    static FP_DEVICE bool drops_reads(const W &w)
    {
        constexpr i64 ROOM = 24 << 20; /* bytes: half of an H100's L2 */
        const fp_args &a = w.a;
        const int columns = 6 * a.heads * a.head_size + a.ffn; /* input, q, k, v, context, norm */
        return S::LARGE && S::ADDS &&
               static_cast<i64>(a.tokens) * columns * static_cast<int>(sizeof(T)) > ROOM;
    }

    static FP_DEVICE void box(u32 to, const fp_map *map, int column, int row, u32 full, bool drops)
    {
        if (drops)
            box_load_dropped(to, map, column, row, full);
        else
            box_load(to, map, column, row, full);
    }

    /* A step of the input.  Beside a weight that stays nothing else comes with it. */
    static FP_DEVICE void input(const W &w, u32 to, int m0, int k0, u32 full, bool drops)
    {
        if constexpr (S::STAYS)
            mbarrier_expect(full, S::A_BYTES);
#pragma unroll
        for (int p = 0; p < BK / S::A_PANEL; p++) {
            const int column = k0 + p * S::A_PANEL;
            box(to + p * S::A_PANEL_BYTES, &w.maps.in, column, m0, full, drops);
        }
    }

    /* Where the tile's rows begin; the rows past the last token get the last one's place. */
    static FP_DEVICE void find_rows(const W &w, int m0, int lane)
    {
        __syncwarp();
        for (int i = lane; i < BM; i += 32) {
            const T *row = w.in.row(min(m0 + i, w.a.tokens - 1));
            w.s.row[i] = static_cast<u32>((row - w.in.x) / VEC<D>);
        }
        __syncwarp();
    }

    static FP_DEVICE void gather_rows(const W &w, u32 slot, int m0, int k0, int lane)
    {
        const int chunk = lane % 8;
#pragma unroll 1
        for (int p = 0; p < BK / S::A_PANEL; p++) {
            const int column = k0 + p * S::A_PANEL + chunk * VEC<D>;
            const bool inside = column < w.k;
            const T *from = w.in.x + (inside ? w.in.col(column) : 0);
            const u32 to = address(w.s.input[slot]) + p * S::A_PANEL_BYTES;
#pragma unroll 1
            for (int r = lane / 8; r < BM; r += 4)
                copy_16(to + r * 128 + (chunk ^ r % 8) * 16,
                        from + static_cast<i64>(w.s.row[r]) * VEC<D>,
                        inside && m0 + r < w.a.tokens);
        }
        mbarrier_arrive_copies(address(w.s.full[slot]));
    }

    /* Steps of the first tile that are asked for one right after the other.  By turns of the loop
     * below they would take as long to ask for as small tiles take to multiply. */
    static FP_DEVICE int steps_at_once(const W &w)
    {
        constexpr bool GAINS = S::SPLIT == 1 && !GATHERS;
        return GAINS && w.first_tile() < w.tiles() ? min(w.steps(), S::STAGES) : 0;
    }

    /* Since the last launch L2 may have dropped the lines of a tile's mailboxes. */
    static FP_DEVICE void fetch_mailboxes(const W &w, int number)
    {
        const auto at = w.place_of(number);
        fetch_into_l2(w.mailbox(at.strip, at.rank, 0),
                      w.ranks() * BM * static_cast<int>(sizeof(u64)));
    }

    /* Some rows of the tile's residual, in the place of a step of the weight.  full: also counts
     * the lanes, if they gather the input's rows. */
    static FP_DEVICE void residual(const W &w, const tile &t, int piece, u32 to, u32 full,
                                   bool drops, int lane)
    {
        if constexpr (GATHERS)
            mbarrier_arrive(full);
        if (lane != 0)
            return;
#pragma unroll
        for (int p = 0; p < S::PANELS; p++)
            box(to + p * (S::PIECE * LINE), &w.maps.residual, t.n0 + p * PANEL,
                t.m0 + piece * S::PIECE, full, drops);
    }

    /* The residuals of all tiles, a panel after the other.  The first team gives the places free
     * once the thread block's first step is here: the copies of that step come first. */
    static FP_DEVICE void residual_panels(const W &w)
    {
        const bool drops = drops_reads(w);
        u32 count = 0;
        fetch_map(&w.maps.residual);
        await_dependencies();
        for (int number = w.first_tile(); number < w.tiles(); number = w.next_tile(number)) {
            const tile t = w.locate(number);
#pragma unroll 1
            for (int column = t.n0; column < t.n0 + BN; column += PANEL, count++) {
                const u32 place = count % S::PLACES, to = address(w.s.residual[place]),
                          full = address(w.s.residual_full[place]);
                mbarrier_wait(address(w.s.residual_empty[place]), count / S::PLACES & 1);
                mbarrier_expect(full, S::PLACE_BYTES);
                box(to, &w.maps.residual, column, t.m0, full, drops);
            }
        }
    }

    /* gamma and beta of this thread block's columns, which are the same for all of its tiles.  By a
     * warp: one load then gives a lane all that it needs for 16 columns, gamma and beta of its
     * pairs in the first 8 and in the others.  Loads of single pairs took as much of shared
     * memory's time as writing the result.  If SWAP gamma comes first, then beta. */
    static FP_DEVICE void columns(const W &w, int lane)
    {
        const u32 complete = address(w.s.columns);
        if (w.first_tile() >= w.tiles())
            return;
        const int n0 = w.locate(w.first_tile()).n0;
        u32 *const weights = w.s.weights;
        if (S::KEEPS && lane == 0)
            fetch_map(&w.maps.sum);
        if constexpr (S::SWAP) {
            if (lane != 0)
                return;
            mbarrier_expect(complete, (S::RMS ? 1 : 2) * BN * 2);
            bulk_load(shared_address(weights), w.end.gamma + n0, BN * 2, complete);
            if constexpr (!S::RMS)
                bulk_load(shared_address(weights + BN / 2), w.end.beta + n0, BN * 2, complete);
        } else {
            const u32 *gamma = reinterpret_cast<const u32 *>(w.end.gamma + n0),
                      *beta = reinterpret_cast<const u32 *>(w.end.beta + n0);
            for (int i = lane; i < BN / 4; i += 32) {
                const int pair = i / 4 * 8 + i % 4;
                reinterpret_cast<uint4 *>(weights)[i] =
                    S::RMS ? make_uint4(gamma[pair], 0, gamma[pair + 4], 0)
                           : make_uint4(gamma[pair], beta[pair], gamma[pair + 4], beta[pair + 4]);
            }
            mbarrier_arrive(complete);
        }
    }

    /* The input, with residuals that come by the ring. */
    static FP_DEVICE void rows(const W &w, int lane)
    {
        const int count = w.steps(), at_once = steps_at_once(w), k0 = w.first_step() * BK,
                  m0 = w.locate(w.first_tile()).m0;
        const bool drops = drops_reads(w);
        if constexpr (!GATHERS)
            fetch_map(&w.maps.in);
        if constexpr (S::RESIDUAL_STEPS > 0)
            fetch_map(&w.maps.residual);
        await_dependencies();
#pragma unroll 4
        for (int i = 0; i < at_once; i++)
            input(w, address(w.s.input[i]), m0, k0 + i * BK, address(w.s.full[i]), drops);
        position at = w.ring_at(at_once);
        int first = at_once;
        for (int number = w.first_tile(); number < w.tiles();
             number = w.next_tile(number), first = 0) {
            const tile t = w.locate(number);
            if constexpr (GATHERS)
                find_rows(w, t.m0, lane);
#pragma unroll 1
            for (int i = first; i < count + S::RESIDUAL_STEPS; i++, at.advance()) {
                const u32 full = address(w.s.full[at.slot]);
                mbarrier_wait(address(w.s.empty[at.slot]), at.phase ^ 1);
                if (i >= count)
                    residual(w, t, i - count, address(w.s.weight[at.slot]), full, drops, lane);
                else if constexpr (GATHERS)
                    gather_rows(w, at.slot, t.m0, k0 + i * BK, lane);
                else
                    input(w, address(w.s.input[at.slot]), t.m0, k0 + i * BK, full, drops);
            }
            if constexpr (S::NORM == FP_NORM_MEMORY) /* after a split a cluster has one tile */
                if (lane == 0 && (S::SPLIT == 1 || w.part() == 0))
                    fetch_mailboxes(w, number);
        }
    }
};

} // namespace fp::hopper_gemm

#endif
