/* What the warps of gemm_tma.cuh do that load steps and store tiles. */
#ifndef FUSEPLAN_CUDA_GEMM_TMA_COPY_CUH
#define FUSEPLAN_CUDA_GEMM_TMA_COPY_CUH

#include "gemm_tma_shape.cuh"

namespace fp
{

/* W: gemm_work */
template <class W> struct gemm_copies : W {
    using D = typename W::D;
    using T = elem<D>;
    using S = typename W::S;
    using tile = typename W::tile;
    using position = typename W::position;
    using W::a, W::maps, W::n, W::k, W::in, W::end, W::s;
    using W::BM, W::BN, W::BK, W::STAGES, W::CLUSTER, W::CLUSTER_M, W::CLUSTER_N, W::PANEL, W::LINE,
        W::STORERS;
    using W::first_tile, W::next_tile, W::tiles, W::locate, W::first_step, W::steps, W::ring_at,
        W::GATHERS, W::SCATTERS, W::out_offset, W::part, W::ranks, W::strip_of;
    using W::W;

    static constexpr u16 ALL = (1 << CLUSTER) - 1; /* thread blocks of the cluster */

    /* ---- the warps that load ----------------------------------------------------------------- */

    /* A step of the weight.  Thread blocks that share it load some of its rows each, for all. */
    FP_DEVICE void load_weight(u32 to, int n0, int k0, u32 full) const
    {
        const int row = cluster_rank<CLUSTER_M>() * (BK / CLUSTER_M);
#pragma unroll
        for (int p = 0; p < S::PANELS; p++) {
            const u32 panel = to + p * (BK * LINE) + row * LINE;
            if constexpr (CLUSTER_M > 1)
                box_multicast(panel, &maps.weight, n0 + p * PANEL, k0 + row, full, ALL);
            else
                box_load(panel, &maps.weight, n0 + p * PANEL, k0 + row, full);
        }
    }

    /* Says of each step how many bytes come, the input's included. */
    FP_DEVICE void load_weights()
    {
        const int count = steps(), k0 = first_step() * BK;
        position at = {0, 1};
        for (int number = first_tile(); number < tiles(); number = next_tile(number)) {
            const tile t = locate(number);
#pragma unroll 1
            for (int i = 0; i < count; i++) {
                const u32 full = shared_address(&s.full[at.slot]);
                mbarrier_wait(shared_address(&s.empty[at.slot]), at.phase);
                mbarrier_expect(full, GATHERS ? S::B_BYTES : S::A_BYTES + S::B_BYTES);
                load_weight(shared_address(s.b[at.slot]), t.n0, k0 + i * BK, full);
                at.advance();
            }
        }
        if constexpr (CLUSTER > 1) /* others arrive at the mbarriers here until their last step */
            for (int i = 0; i < STAGES; i++, at.advance())
                mbarrier_wait(shared_address(&s.empty[at.slot]), at.phase);
    }

    /* Whether L2 should drop the input and the residual first.  Nothing in the chain reads either
     * of them after a GEMM that adds a residual.  Where L2 has no room for all tensors of a layer,
     * what the next kernels read stays there instead.  An input that TMA copies to several thread
     * blocks is left as it is.  Small layers run by smaller tiles, and would take longer by the
     * time of this test. */
    FP_DEVICE bool drops_reads() const
    {
        constexpr i64 ROOM = 24 << 20;                         /* bytes: half of an H100's L2 */
        const int columns = 6 * a.heads * a.head_size + a.ffn; /* input, q, k, v, context, norm */
        return S::LARGE && end.residual != nullptr &&
               static_cast<i64>(a.tokens) * columns * static_cast<int>(sizeof(T)) > ROOM;
    }

    /* A step of the input, like one of the weight. */
    FP_DEVICE void load_input(u32 to, int m0, int k0, u32 full, bool drops) const
    {
        const int row = cluster_rank<CLUSTER_N>() * (BM / CLUSTER_N);
#pragma unroll
        for (int p = 0; p < BK / S::A_PANEL; p++) {
            const int column = k0 + p * S::A_PANEL;
            const u32 panel = to + p * S::A_PANEL_BYTES;
            if constexpr (CLUSTER_N > 1)
                box_multicast(panel + row * 128, &maps.in, column, m0 + row, full, ALL);
            else if (drops)
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

    /* Where a layernorm's moments of a strip go through memory: see gemm_tma_norm.cuh. */
    FP_DEVICE u64 *mailbox(int strip, int reader, int sender) const
    {
        const i64 number = (static_cast<i64>(strip) * ranks() + reader) * ranks() + sender;
        return reinterpret_cast<u64 *>(a.sync + FP_SYNC_TILES) + number * BM;
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

    /* Whether the panels of a residual come one by one, each after one of the tile's steps that the
     * ring has no room for at first.  All at once they would delay the first steps, for which
     * nothing multiplies yet.  Of two teams one multiplies meanwhile, but for the first tile. */
    FP_DEVICE bool residual_follows(bool of_first_tile) const
    {
        return (of_first_tile || S::TEAMS == 1) && !SCATTERS && W::SPLIT == 1 &&
               end.residual != nullptr && steps() > STAGES;
    }

    FP_DEVICE void load_residual(const tile &t, int p, u32 ready) const
    {
        const u32 to = shared_address(s.out) + p * (BM * LINE);
        if (drops_reads())
            box_load_dropped(to, &maps.residual, t.n0 + p * PANEL, t.m0, ready);
        else
            box_load(to, &maps.residual, t.n0 + p * PANEL, t.m0, ready);
    }

    FP_DEVICE void load_rows(int lane)
    {
        const int count = steps(), at_once = steps_at_once(), k0 = first_step() * BK,
                  m0 = locate(first_tile()).m0;
        const bool drops = drops_reads();
        if constexpr (!GATHERS)
            fetch_map(&maps.in);
        await_dependencies();
#pragma unroll 4
        for (int i = 0; i < at_once; i++)
            load_input(shared_address(s.a[i]), m0, k0 + i * BK, shared_address(&s.full[i]), drops);
        position at = ring_at(at_once);
        int first = at_once;
        u32 tile_index = 0;
        for (int number = first_tile(); number < tiles();
             number = next_tile(number), first = 0, tile_index++) {
            const tile t = locate(number);
            int panel = residual_follows(tile_index == 0) ? 0 : S::PANELS;
            if constexpr (GATHERS)
                find_rows(t.m0, lane);
#pragma unroll 1
            for (int i = first; i < count; i++) {
                mbarrier_wait(shared_address(&s.empty[at.slot]), at.phase ^ 1);
                if constexpr (GATHERS) {
                    gather_rows(at.slot, t.m0, k0 + i * BK, lane);
                } else {
                    load_input(shared_address(s.a[at.slot]), t.m0, k0 + i * BK,
                               shared_address(&s.full[at.slot]), drops);
                }
                at.advance();
                if (lane == 0 && panel < S::PANELS && i >= STAGES) {
                    if (panel == 0 && tile_index > 0)
                        mbarrier_wait(shared_address(&s.drained), (tile_index - 1) & 1);
                    load_residual(t, panel++, shared_address(&s.ready[0]));
                }
            }
#pragma unroll 1
            while (lane == 0 && panel < S::PANELS)
                load_residual(t, panel++, shared_address(&s.ready[0]));
            if constexpr (W::NORM == NORM_MEMORY) /* after a split a cluster has one tile */
                if (lane == 0 && (W::SPLIT == 1 || part() == 0))
                    fetch_mailboxes(number);
        }
    }

    /* ---- the warps that store ---------------------------------------------------------------- */

    FP_DEVICE void store_tiles(int tid)
    {
        const u32 out = shared_address(s.out);
        if constexpr (!SCATTERS) {
            fetch_map(&maps.out);
            if (end.residual != nullptr)
                fetch_map(&maps.residual);
        }
        int number = first_tile();
        if constexpr (W::STRIPS)
            if (number < tiles())
                load_columns(locate(number).n0);
        await_dependencies();
#pragma unroll 1
        for (u32 i = 0; number < tiles(); i++, number = next_tile(number)) {
            const tile t = locate(number);
            const u32 ready = shared_address(&s.ready[i % S::TEAMS]);
            const u32 done = shared_address(s.done[i % S::TEAMS]), phase = i / S::TEAMS & 1;
            if constexpr (SCATTERS)
                scatter_tile(t, out, ready, done, phase, tid);
            else
                store_tile(t, out, ready, done, phase, i == 0);
        }
    }

    /* A thread block keeps gamma and beta of its columns.  They may come before the first tile says
     * how many bytes it waits for. */
    FP_DEVICE void load_columns(int n0) const
    {
        static_assert(!SCATTERS, "by one thread");
        const u32 ready = shared_address(&s.ready[0]);
        bulk_load(shared_address(s.gamma), end.gamma + n0, BN * 2, ready);
        bulk_load(shared_address(s.beta), end.beta + n0, BN * 2, ready);
    }

    /* What a tile waits for: its residual, and the first one gamma and beta, too. */
    FP_DEVICE void load_ending(const tile &t, u32 ready, bool first) const
    {
        mbarrier_expect(ready, (end.residual != nullptr ? BM * BN * 2 : 0) +
                                   (W::STRIPS && first ? 2 * BN * 2 : 0));
        if (end.residual != nullptr && !residual_follows(first))
#pragma unroll
            for (int p = 0; p < S::PANELS; p++)
                load_residual(t, p, ready);
    }

    FP_DEVICE void store_tile(const tile &t, u32 out, u32 ready, u32 done, u32 phase,
                              bool first) const
    {
        load_ending(t, ready, first);
#pragma unroll
        for (int p = 0; p < S::PANELS; p++) {
            if (p % (S::PANELS / S::PARTS) == 0)
                mbarrier_wait(done + p / (S::PANELS / S::PARTS) * 8, phase);
            box_store(&maps.out, t.n0 + p * PANEL, t.m0, out + p * (BM * LINE));
        }
        box_stores_read();
        if (residual_follows(false)) /* load_rows() waits before it loads the next one */
            mbarrier_arrive(shared_address(&s.drained));
    }

    /* Calls what(address in shared memory, row, column) for this thread's 16 bytes. */
    template <class What>
    FP_DEVICE void each_chunk(const tile &t, u32 out, int tid, const What &what) const
    {
#pragma unroll 2
        for (int i = tid; i < BM * BN / VEC<D>; i += STORERS) {
            const int r = i / (BN / VEC<D>), column = i % (BN / VEC<D>)*VEC<D>;
            if (t.m0 + r < a.tokens && t.n0 + column < n)
                what(out + out_offset(r, column), t.m0 + r, t.n0 + column);
        }
    }

    FP_DEVICE void scatter_tile(const tile &t, u32 out, u32 ready, u32 done, u32 phase,
                                int tid) const
    {
        if (end.residual != nullptr) {
            each_chunk(t, out, tid, [&](u32 at, int row, int column) {
                copy_16(at, end.residual + static_cast<i64>(row) * n + column);
            });
            mbarrier_arrive_copies(ready);
        } else {
            mbarrier_arrive(ready);
        }
        for (int i = 0; i < S::PARTS; i++)
            mbarrier_wait(done + i * 8, phase);
        each_chunk(t, out, tid, [&](u32 at, int row, int column) {
            uint4 x;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                         : "r"(at)
                         : "memory");
            *reinterpret_cast<uint4 *>(end.store.place(row, column)) = x;
        });
    }
};

} // namespace fp

#endif
