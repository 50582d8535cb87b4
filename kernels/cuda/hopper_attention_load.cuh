/* Load: what the warps of hopper_attention.cuh do that do not compute.  They fill the ring with key
 * blocks and fetch q of the next tile, by cp.async or TMA in the 128-byte swizzle. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_LOAD_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_LOAD_CUH

#include "hopper_attention_copy.cuh"

namespace fp::hopper_attention
{

template <class S> struct load {
    using D = typename S::D;
    using copy = block_copy<S>;
    static constexpr int W = S::W, C = S::C, G = S::G, STAGES = S::STAGES, P = S::P,
                         CLUSTER = S::CLUSTER, PANELS = S::PANELS, PANEL = S::PANEL;
    static constexpr bool DRAWS = S::DRAWS, ORDERED = S::ORDERED;

    const fp_args &a;
    const fp_attention &io;
    typename S::smem &s;
    const fp_maps *maps; /* null without TMA */
    u32 issued = 0;      /* LANDS: the mbarrier of the copies that were issued last; 0: none */

    /* A slot of the ring, and the parity of the mbarriers' phase to wait for. */
    struct position {
        u32 slot, phase;
    };

    /* A thread that loads: its number among them, in its warp, its warp. */
    struct loader {
        int tid, lane, warp;
    };

    /* TMA: k or v of an entry: its key block, -1 for none, its place in the ring, and whether all
     * of its rows exist. */
    struct values {
        int block;
        position at;
        bool whole;
    };

    /* Where a tile goes in shared memory: its place in the arrays, its mbarrier, its item. */
    struct tile_buffer {
        int index;
        u32 full;
        tile_item *item;
    };

    FP_DEVICE tile_order<S> order() const
    {
        return {a};
    }

    /* The biases of a tile's head are on their way to L2 while the kernel waits. */
    FP_DEVICE void fetch_bias(const tile &t) const
    {
        const int lane = static_cast<int>(threadIdx.x % 32);
        if (S::BIAS && lane < 2)
            fetch_line(elements<D>(*io.bias) + lane * 2 * a.heads * W + t.head * W);
    }

    FP_DEVICE tokens load_tokens(const int *of, const tile &t, int block) const
    {
        const int *from = of + (t.part * a.mask.blocks + block) * BLOCK + threadIdx.x % 32;
        return {from[0], from[32]};
    }

    FP_DEVICE tokens load_first_keys(const tile &t, const entry &e) const
    {
        const int block = __shfl_sync(0xffffffffu, e.key_block, 0);
        return t.entries > 0 ? load_tokens(a.tiles.key_token, t, block) : tokens{-1, -1};
    }

    /* Collects the bits of 32 entries, of which each lane holds one. */
    static FP_DEVICE void write_marks(u32 (&to)[2][G], const entry &e, bool valid, bool writes)
    {
#pragma unroll
        for (int g = 0; g < G; g++) {
            u32 skip = __ballot_sync(0xffffffffu, valid && e.word[g] == WORD_SKIP);
            u32 partial = __ballot_sync(0xffffffffu, valid && e.word[g] >= 0);
            if (writes)
                to[0][g] = skip, to[1][g] = partial;
        }
    }

    /* Gives the tile that the first loading thread drew to all loading threads. */
    FP_DEVICE int share_drawn(int drawn, int n, int tid) const
    {
        if constexpr (P == 1)
            return __shfl_sync(0xffffffffu, drawn, 0);
        if (tid == 0)
            s.drawn[n & 1] = drawn;
        asm volatile("bar.sync 15, %0;" ::"n"(32 * P) : "memory");
        return s.drawn[n & 1];
    }

    /* Announces the copies of `issued`, once they have landed.  PENDING groups came behind them. */
    template <int PENDING> FP_DEVICE void land()
    {
        if (issued == 0)
            return;
        copy_wait<PENDING>();
        proxy_fence();
        mbarrier_arrive(issued);
        issued = 0;
    }

    /* The copies that were issued since the last call are what an mbarrier waits for. */
    FP_DEVICE void announce(u32 full)
    {
        if constexpr (S::LANDS) {
            copy_commit();
            land<1>();
            issued = full;
        } else {
            mbarrier_arrive_copies(full);
        }
    }

    /* From the thread block's first tile, which is at hand, to its last one. */
    FP_DEVICE void run(tile t, entry e)
    {
        const int tid = static_cast<int>(threadIdx.x) - C * FOUR_WARPS;
        const loader me = {tid, tid % 32, tid / 32};
        const int end = order().count();
        position ring = {0, 1};
        int number = order().first();
#pragma unroll 1
        for (int n = 0;; n++) {
            if (!DRAWS && n == 1)
                return;
            const int at = n % S::TILES;
            const u32 full_q = shared_address(&s.full_q[at]);
            if constexpr (DRAWS)
                mbarrier_wait(shared_address(&s.empty_q[at]), (n / 2 & 1) ^ 1);
            const tile_buffer to = {at, full_q, &s.item[at]};
            if (number >= end) {
                announce_end(to, me);
                return;
            }
            const head_rows from = find_rows(t);
            tokens keys = {-1, -1};
            if constexpr (ORDERED)
                keys = load_first_keys(t, e);
            load_tile(t, e, from, to, me);

            /* A tile is drawn late, so that long ones go to the thread block that is free first. */
            const int entries = t.entries;
            values before = {-1, {}, false};
            int next = end;
            if constexpr (DRAWS)
                if (me.tid == 0 && entries == 0)
                    next = order().draw();
#pragma unroll 1
            for (int i = cluster_rank<CLUSTER>(); i < entries; i += CLUSTER) {
                load_key_block(t, e, keys, from, entries, i, ring, me, before);
                if constexpr (DRAWS)
                    if (me.tid == 0 && i == max(entries - 2, 0))
                        next = order().draw();
                if (++ring.slot == STAGES)
                    ring.slot = 0, ring.phase ^= 1;
            }
            if constexpr (S::TMA)
                load_boxes(t, from, {-1, {}, false}, before, shared_address(&s.full_v[at]), me);
            else if constexpr (S::OVERLAP)
                announce(shared_address(&s.full_v[at]));
            land<0>();
            if constexpr (DRAWS) {
                number = share_drawn(next, n, me.tid);
                if (number < end)
                    order().find(number, t, e);
            }
        }
    }

    /* Tells the warpgroups that compute that no tile is left. */
    FP_DEVICE void announce_end(const tile_buffer &to, const loader &me) const
    {
        if (me.tid == 0)
            to.item->entries = -1;
        if (me.tid == 0)
            mbarrier_arrive(to.full);
        mbarrier_arrive_copies(to.full);
    }

    FP_DEVICE head_rows find_rows(const tile &t) const
    {
        const int hidden = a.heads * W, col = static_cast<int>(threadIdx.x) % 8 * 8;
        head_rows r;
        r.length = S::JOINED ? live_tokens(a) : a.lengths ? a.lengths[t.batch] : a.seq_len;
        if constexpr (S::SPLIT) {
            r.pitch = 6 * hidden;
            r.q = reinterpret_cast<const unsigned char *>(
                elements<D>(*io.in) + first_row(a, t.batch) * 3 * hidden + t.head * W + col);
            r.k = r.q + 2 * hidden;
            r.v = r.k + 2 * hidden;
        } else {
            const i64 all = static_cast<i64>(a.batch) * hidden * a.seq_len;
            r.pitch = 2 * W;
            r.q = reinterpret_cast<const unsigned char *>(
                elements<D>(*io.in) +
                (static_cast<i64>(t.batch) * a.heads + t.head) * a.seq_len * W + col);
            r.k = r.q + 2 * all;
            r.v = r.k + 2 * all;
        }
        return r;
    }

    /* q of a thread block's only tile, by the warps that compute, which have nothing else to do
     * yet.  They wait for it.  Where one warpgroup has a block's rows, each warp copies its own. */
    FP_DEVICE void load_own_q(const tile &t) const
    {
        constexpr int SHARES = S::SHARES;
        const head_rows from = find_rows(t);
        const int tid = static_cast<int>(threadIdx.x), c = tid % 8, group = tid / FOUR_WARPS % G,
                  share = tid / FOUR_WARPS / G,
                  first = tid % FOUR_WARPS / 32 * WARP_ROWS + tid % 32 / 8;
        const u32 to = shared_address(s.q[0][group]);
#pragma unroll
        for (int i = 0; i < WARP_ROWS / 4 / SHARES; i++) {
            const int r = first + (i * SHARES + share) * 4, token = (t.block + group) * BLOCK + r;
            const bool valid = token < from.length;
            const unsigned char *row = from.q + (valid ? token : 0) * from.pitch;
#pragma unroll
            for (int j = 0; j < PANELS; j++)
                if (S::reads(j, c))
                    copy_16(to + j * PANEL + r * 128 + (c ^ (r % 8)) * 16, row + j * 128,
                            valid && S::has(j, c));
        }
        copy_commit();
        copy_wait<0>();
        __syncwarp();
    }

    /* Rows of q and their tokens.  Of a tile's query blocks some may lie past the last one. */
    FP_DEVICE void load_ordered_q(const tile &t, const head_rows &from, const tile_buffer &to,
                                  const loader &me) const
    {
#pragma unroll
        for (int g = 0; g < G; g++) {
            const int block = t.block + g;
            tokens of = {-1, -1};
            if (block < a.mask.blocks)
                of = load_tokens(a.tiles.query_token, t, block);
            copy::template by_tokens<false>(shared_address(s.q[to.index][g]), from.q, from.pitch,
                                            of, from.length);
            if (block < a.mask.blocks && me.tid < BLOCK / 4)
                copy_16(shared_address(&s.token[to.index][g * BLOCK + me.tid * 4]),
                        a.tiles.query_token + (t.part * a.mask.blocks + block) * BLOCK +
                            me.tid * 4);
        }
    }

    /* q, unless the warps that compute load it, the biases, and what the warpgroups that compute
     * must know of the tile. */
    FP_DEVICE void load_tile(const tile &t, const entry &e, const head_rows &from,
                             const tile_buffer &to, const loader &me) const
    {
        if constexpr (ORDERED)
            load_ordered_q(t, from, to, me);
        else if constexpr (DRAWS)
#pragma unroll
            for (int g = 0; g < G; g++)
                copy::template in_order<false>(shared_address(s.q[to.index][g]), from.q, from.pitch,
                                               (t.block + g) * BLOCK, from.length);
        if (S::BIAS && me.tid < W / 4) {
            int which = me.tid / (W / 8), col = me.tid % (W / 8) * 8;
            copy_16(shared_address(&s.bias[to.index][which][col]),
                    elements<D>(*io.bias) + which * 2 * a.heads * W + t.head * W + col);
        }
        write_marks(s.marks[to.index], e, me.lane < t.entries, me.tid == 0);
        if (me.tid == 0) {
            tile_item &item = *to.item;
            item.entries = t.entries, item.batch = t.batch, item.head = t.head;
            item.block = t.block, item.length = from.length, item.part = t.part;
            if (ORDERED && t.part > 0)
                item.stored = part_counter<S>{a}.first_stored(item);
            mbarrier_arrive(to.full);
        }
        mbarrier_arrive_copies(to.full);
    }

    /* Whether a block has all of its rows. */
    static FP_DEVICE bool whole(int block, const head_rows &of)
    {
        return (block + 1) * BLOCK <= of.length;
    }

    /* 64 rows of k or v. */
    FP_DEVICE void load_keys(u32 to, const unsigned char *from, const head_rows &r, int block,
                             const tokens &of) const
    {
        if constexpr (ORDERED)
            copy::template by_tokens<true>(to, from, r.pitch, of, r.length);
        else
            copy::template in_order<true>(to, from, r.pitch, block * BLOCK, r.length);
    }

    /* The score bias of all distances of a key block from the tile.  What has no entry in the table
     * is 0: no such query or key exists. */
    FP_DEVICE void load_score_bias(const tile &t, int block, u32 slot, const loader &me) const
    {
        const int count = 2 * a.seq_len - 1;
        const int first = (block - t.block - G) * BLOCK + a.seq_len;
        const float *table = static_cast<const float *>(*io.score_bias) + t.head * count;
        const u32 to = shared_address(s.token[slot]);
#pragma unroll
        for (int i = me.tid; i < S::DISTANCES; i += 32 * P) {
            const bool valid = static_cast<u32>(first + i) < static_cast<u32>(count);
            copy_4(to + 4 * i, table + (valid ? first + i : 0), valid);
        }
    }

    /* TMA: k of an entry, and v of the entry in front of it, for an mbarrier.  A tile's last entry
     * may have rows behind the sequence's end: then all lanes copy its k and v, and wait. */
    FP_DEVICE void load_boxes(const tile &t, const head_rows &from, const values &k, values &v,
                              u32 full, const loader &me) const
    {
        if (v.block >= 0)
            mbarrier_wait(shared_address(&s.empty_v[v.at.slot]), v.at.phase);
        if (me.tid == 0) {
            mbarrier_expect(full, (k.whole + (v.block >= 0)) * S::TILE);
            if (v.block >= 0)
                copy::box(a, *maps, shared_address(s.v[v.at.slot]), t, 2, v.block, full);
            if (k.whole)
                copy::box(a, *maps, shared_address(s.k[k.at.slot]), t, 1, k.block, full);
        }
        v = k;
        if (k.block >= 0 && !k.whole) {
            load_keys(shared_address(s.k[k.at.slot]), from.k, from, k.block, {});
            mbarrier_wait(shared_address(&s.empty_v[k.at.slot]), k.at.phase);
            load_keys(shared_address(s.v[k.at.slot]), from.v, from, k.block, {});
            copy_commit();
            copy_wait<0>();
            proxy_fence();
            v.block = -1;
        }
        mbarrier_arrive_copies(full);
    }

    /* Loads k, v and row words of entry i.  keys: the tokens of its keys where they are ordered; in
     * the end those of the next entry, which are on their way meanwhile. */
    FP_DEVICE void load_key_block(const tile &t, entry &e, tokens &keys, const head_rows &from,
                                  int entries, int i, position at, const loader &me, values &before)
    {
        const bool fetches = i % 32 < CLUSTER && i >= 32;
        if (fetches) {
            const int mine = i / 32 * 32 + me.lane;
            e = tile_order<S>::load_entry(a.tiles.rest, t.rest + mine - 32);
            write_marks(s.later[i / 32 & 1], e, mine < entries, me.tid == 0);
        }
        int word[G];
        const int block = __shfl_sync(0xffffffffu, e.key_block, i);
        const int next = __shfl_sync(0xffffffffu, e.key_block, i + 1);
        if (ORDERED && fetches)
            keys = load_tokens(a.tiles.key_token, t, block);
        const tokens of = keys;
        if (ORDERED && i % 32 < 31 && i + 1 < entries)
            keys = load_tokens(a.tiles.key_token, t, next);
#pragma unroll
        for (int g = 0; g < G; g++)
            word[g] = __shfl_sync(0xffffffffu, e.word[g], i);
        const u32 full_k = shared_address(&s.full_k[at.slot]);
        mbarrier_wait(shared_address(&s.empty_k[at.slot]), at.phase);
        if constexpr (!S::TMA)
            load_keys(shared_address(s.k[at.slot]), from.k, from, block, of);
        if constexpr (S::SCORE_BIAS)
            load_score_bias(t, block, at.slot, me);
#pragma unroll
        for (int g = 0; g < G; g++)
            if (word[g] >= 0 && me.warp == g % P)
                copy_16(shared_address(s.words[at.slot][g]) + me.lane * 16,
                        a.tiles.words + static_cast<i64>(word[g]) * BLOCK + me.lane * 2);
        if constexpr (S::TMA) {
            const values now = {block, at, whole(block, from)};
            load_boxes(t, from, now, before, full_k, me);
            return;
        }
        if (me.tid == 0)
            mbarrier_arrive(full_k);
        announce(full_k);
        mbarrier_wait(shared_address(&s.empty_v[at.slot]), at.phase);
        load_keys(shared_address(s.v[at.slot]), from.v, from, block, of);
        if constexpr (!S::OVERLAP)
            announce(shared_address(&s.full_v[at.slot]));
    }
};

} // namespace fp::hopper_attention

#endif
