/* What the warps of hopper_gemm.cuh do that load: the weight, the input and residuals, and what a
 * layernorm needs. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_LOAD_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_LOAD_CUH

#include "hopper_gemm_shape.cuh"

namespace fp
{

/* W: gemm_shares */
template <class W> struct gemm_loads : W {
    using D = typename W::D;
    using T = elem<D>;
    using S = typename W::S;
    using tile = typename W::tile;
    using position = typename W::position;
    using W::a, W::maps, W::k, W::in, W::end, W::s;
    using W::BM, W::BN, W::BK, W::STAGES, W::CLUSTER, W::PANEL, W::LINE;
    using W::first_tile, W::next_tile, W::tiles, W::locate, W::first_step, W::steps, W::ring_at,
        W::GATHERS, W::part, W::ranks, W::strip_of;
    using W::W;

    static constexpr u16 ALL = (1 << CLUSTER) - 1; /* thread blocks of the cluster */

    /* A step of the weight.  Thread blocks that share it load some of its rows each, for all. */
    FP_DEVICE void load_weight(u32 to, int n0, int k0, u32 full) const
    {
        const int row = cluster_rank<CLUSTER>() * (BK / CLUSTER);
#pragma unroll
        for (int p = 0; p < S::PANELS; p++) {
            const u32 panel = to + p * (BK * LINE) + row * LINE;
            if constexpr (CLUSTER > 1)
                box_multicast(panel, &maps.weight, n0 + p * PANEL, k0 + row, full, ALL);
            else
                box_load(panel, &maps.weight, n0 + p * PANEL, k0 + row, full);
        }
    }

    /* Says of each step how many bytes come, those of the other warp included. */
    FP_DEVICE void load_weights()
    {
        const int count = steps(), k0 = first_step() * BK;
        position at = {0, 1};
        for (int number = first_tile(); number < tiles(); number = next_tile(number)) {
            const tile t = locate(number);
#pragma unroll 1
            for (int i = 0; i < count + S::RESIDUAL_STEPS; i++, at.advance()) {
                const u32 full = shared_address(&s.full[at.slot]);
                mbarrier_wait(shared_address(&s.empty[at.slot]), at.phase);
                if (i < count) {
                    mbarrier_expect(full, GATHERS ? S::B_BYTES : S::A_BYTES + S::B_BYTES);
                    load_weight(shared_address(s.b[at.slot]), t.n0, k0 + i * BK, full);
                } else {
                    mbarrier_expect(full, S::PIECE_BYTES);
                }
            }
        }
        if constexpr (CLUSTER > 1) /* others arrive at the mbarriers here until their last step */
            for (int i = 0; i < STAGES; i++, at.advance())
                mbarrier_wait(shared_address(&s.empty[at.slot]), at.phase);
    }

    /* Whether L2 should drop the input and the residual first.  Nothing in the chain reads either
     * of them after a GEMM that adds a residual.  Where L2 has no room for all tensors of a layer,
     * what the next kernels read stays there instead.  Small layers run by smaller tiles, and would
     * take longer by the time of this test. */
    FP_DEVICE bool drops_reads() const
    {
        constexpr i64 ROOM = 24 << 20;                         /* bytes: half of an H100's L2 */
        const int columns = 6 * a.heads * a.head_size + a.ffn; /* input, q, k, v, context, norm */
        return S::LARGE && S::ADDS &&
               static_cast<i64>(a.tokens) * columns * static_cast<int>(sizeof(T)) > ROOM;
    }

    /* A step of the input. */
    FP_DEVICE void load_input(u32 to, int m0, int k0, u32 full, bool drops) const
    {
#pragma unroll
        for (int p = 0; p < BK / S::A_PANEL; p++) {
            const int column = k0 + p * S::A_PANEL;
            const u32 panel = to + p * S::A_PANEL_BYTES;
            if (drops)
                box_load_dropped(panel, &maps.in, column, m0, full);
            else
                box_load(panel, &maps.in, column, m0, full);
        }
    }

    /* Where the tile's rows begin; the rows past the last token get the last one's place. */
    FP_DEVICE void find_rows(int m0, int lane) const
    {
        __syncwarp();
        for (int i = lane; i < BM; i += 32) {
            const T *row = in.row(min(m0 + i, a.tokens - 1));
            s.row[i] = static_cast<u32>((row - in.x) / VEC<D>);
        }
        __syncwarp();
    }

    FP_DEVICE void gather_rows(u32 slot, int m0, int k0, int lane) const
    {
        const int chunk = lane % 8;
#pragma unroll 1
        for (int p = 0; p < BK / S::A_PANEL; p++) {
            const int column = k0 + p * S::A_PANEL + chunk * VEC<D>;
            const bool inside = column < k;
            const T *from = in.x + (inside ? in.col(column) : 0);
            const u32 to = shared_address(s.a[slot]) + p * S::A_PANEL_BYTES;
#pragma unroll 1
            for (int r = lane / 8; r < BM; r += 4)
                copy_16(to + r * 128 + (chunk ^ r % 8) * 16,
                        from + static_cast<i64>(s.row[r]) * VEC<D>, inside && m0 + r < a.tokens);
        }
        mbarrier_arrive_copies(shared_address(&s.full[slot]));
    }

    /* Steps of the first tile that are asked for one right after the other.  By turns of the loop
     * below they would take as long to ask for as small tiles take to multiply. */
    FP_DEVICE int steps_at_once() const
    {
        constexpr bool GAINS = W::SPLIT == 1 && !GATHERS;
        return GAINS && first_tile() < tiles() ? min(steps(), STAGES) : 0;
    }

    /* Where a layernorm's moments of a strip go through memory: see hopper_gemm_norm.cuh. */
    FP_DEVICE u64 *mailbox(int strip, int reader, int sender) const
    {
        const int number = (strip * ranks() + reader) * ranks() + sender;
        return reinterpret_cast<u64 *>(a.sync + FP_SYNC_TILES) + static_cast<i64>(number) * BM;
    }

    /* Of a layernorm: the strip of a tile, and which of the tiles that make up its rows it is. */
    struct place {
        int strip, rank;
    };

    FP_DEVICE place place_of(int number) const
    {
        if constexpr (W::STRIPS)
            return {strip_of(number), part()};
        const tile t = locate(number);
        return {t.m0 / BM, t.n0 / BN};
    }

    /* Since the last launch L2 may have dropped the lines of a tile's mailboxes. */
    FP_DEVICE void fetch_mailboxes(int number) const
    {
        const place at = place_of(number);
        fetch_into_l2(mailbox(at.strip, at.rank, 0), ranks() * BM * static_cast<int>(sizeof(u64)));
    }

    /* Some rows of the tile's residual, in the place of a step of the weight.  full: also counts
     * the lanes, if they gather the input's rows. */
    FP_DEVICE void load_residual(const tile &t, int piece, u32 to, u32 full, bool drops,
                                 int lane) const
    {
        if constexpr (GATHERS)
            mbarrier_arrive(full);
        if (lane != 0)
            return;
#pragma unroll
        for (int p = 0; p < S::PANELS; p++) {
            const u32 panel = to + p * (S::PIECE * LINE);
            const int column = t.n0 + p * PANEL, row = t.m0 + piece * S::PIECE;
            if (drops)
                box_load_dropped(panel, &maps.residual, column, row, full);
            else
                box_load(panel, &maps.residual, column, row, full);
        }
    }

    /* The residuals of all tiles, a panel after the other.  The first team gives the places free
     * once the thread block's first step is here: the copies of that step come first. */
    FP_DEVICE void load_panels() const
    {
        const bool drops = drops_reads();
        u32 count = 0;
        fetch_map(&maps.residual);
        await_dependencies();
        for (int number = first_tile(); number < tiles(); number = next_tile(number)) {
            const tile t = locate(number);
#pragma unroll 1
            for (int column = t.n0; column < t.n0 + BN; column += PANEL, count++) {
                const u32 place = count % S::PLACES, to = shared_address(s.residual[place]),
                          full = shared_address(&s.residual_full[place]);
                mbarrier_wait(shared_address(&s.residual_empty[place]), count / S::PLACES & 1);
                mbarrier_expect(full, S::PLACE_BYTES);
                if (drops)
                    box_load_dropped(to, &maps.residual, column, t.m0, full);
                else
                    box_load(to, &maps.residual, column, t.m0, full);
            }
        }
    }

    /* gamma and beta of this thread block's columns, which are the same for all of its tiles.  By a
     * warp: one load then gives a lane all that it needs for 16 columns, gamma and beta of its
     * pairs in the first 8 and in the others.  Loads of single pairs took as much of shared
     * memory's time as writing the result.  If SWAP gamma comes first, then beta. */
    FP_DEVICE void load_columns(int lane) const
    {
        const u32 columns = shared_address(&s.columns);
        if (first_tile() >= tiles())
            return;
        const int n0 = locate(first_tile()).n0;
        if constexpr (W::SWAP) {
            if (lane != 0)
                return;
            mbarrier_expect(columns, 2 * BN * 2);
            bulk_load(shared_address(s.weights), end.gamma + n0, BN * 2, columns);
            bulk_load(shared_address(s.weights + BN / 2), end.beta + n0, BN * 2, columns);
        } else {
            const u32 *gamma = reinterpret_cast<const u32 *>(end.gamma + n0),
                      *beta = reinterpret_cast<const u32 *>(end.beta + n0);
            for (int i = lane; i < BN / 4; i += 32) {
                const int pair = i / 4 * 8 + i % 4;
                reinterpret_cast<uint4 *>(s.weights)[i] =
                    make_uint4(gamma[pair], beta[pair], gamma[pair + 4], beta[pair + 4]);
            }
            mbarrier_arrive(columns);
        }
    }

    FP_DEVICE void load_rows(int lane)
    {
        const int count = steps(), at_once = steps_at_once(), k0 = first_step() * BK,
                  m0 = locate(first_tile()).m0;
        const bool drops = drops_reads();
        if constexpr (!GATHERS)
            fetch_map(&maps.in);
        if constexpr (S::RESIDUAL_STEPS > 0)
            fetch_map(&maps.residual);
        await_dependencies();
#pragma unroll 4
        for (int i = 0; i < at_once; i++)
            load_input(shared_address(s.a[i]), m0, k0 + i * BK, shared_address(&s.full[i]), drops);
        position at = ring_at(at_once);
        int first = at_once;
        for (int number = first_tile(); number < tiles(); number = next_tile(number), first = 0) {
            const tile t = locate(number);
            if constexpr (GATHERS)
                find_rows(t.m0, lane);
#pragma unroll 1
            for (int i = first; i < count + S::RESIDUAL_STEPS; i++, at.advance()) {
                const u32 full = shared_address(&s.full[at.slot]);
                mbarrier_wait(shared_address(&s.empty[at.slot]), at.phase ^ 1);
                if (i >= count)
                    load_residual(t, i - count, shared_address(s.b[at.slot]), full, drops, lane);
                else if constexpr (GATHERS)
                    gather_rows(at.slot, t.m0, k0 + i * BK, lane);
                else
                    load_input(shared_address(s.a[at.slot]), t.m0, k0 + i * BK, full, drops);
            }
            if constexpr (W::NORM == NORM_MEMORY) /* after a split a cluster has one tile */
                if (lane == 0 && (W::SPLIT == 1 || part() == 0))
                    fetch_mailboxes(number);
        }
    }
};

} // namespace fp

#endif
