/* What the loading warps of attention_wgmma.cuh do: they find tiles, fill the ring with key blocks
 * and fetch q of the next tile. */
#ifndef FUSEPLAN_CUDA_ATTENTION_WGMMA_LOAD_CUH
#define FUSEPLAN_CUDA_ATTENTION_WGMMA_LOAD_CUH

#include "attention_wgmma_copy.cuh"

namespace fp
{

template <class S> struct attention_loader {
    using D = typename S::D;
    static constexpr int W = S::W, C = S::C, G = S::G, STAGES = S::STAGES, P = S::P,
                         CLUSTER = S::CLUSTER, PANELS = S::PANELS, PANEL = S::PANEL,
                         ENTRY = S::ENTRY, TILES = S::TILES;
    static constexpr bool DRAWS = S::DRAWS, ORDERED = S::ORDERED;
    using copies = attention_copies<S>;
    using tokens = typename copies::tokens;

    const fp_args &a;
    const fp_attention &io;
    typename S::smem &s;

    /* A slot of the ring, and the parity of the mbarriers' phase to wait for. */
    struct position {
        u32 slot, phase;
    };

    /* One key block and what each query block of the tile does with it: the index of its row words,
     * -1 where it takes all of the block, or WORD_SKIP. */
    struct entry {
        int key_block, word[3];
    };

    /* A row of fp_tiles.tile: its first query block, its entries, where those behind the 32nd lie
     * in fp_tiles.rest. */
    struct tile {
        int part, block, entries, rest, batch, head;
    };

    /* A thread that loads: its number among them, in its warp, its warp. */
    struct loader {
        int tid, lane, warp;
    };

    /* Where a tile goes in shared memory: its place in the arrays, its mbarrier, its item. */
    struct tile_buffer {
        int index;
        u32 full;
        int *item;
    };

    /* Where the rows of a tile's head begin, for one thread; bytes between rows; rows. */
    struct rows {
        const unsigned char *q, *k, *v;
        i64 pitch;
        int length;
    };

    /* x / y; both and the quotient are exact as floats. */
    static FP_DEVICE int divide(int x, int y)
    {
        int q = static_cast<int>(__fdividef(static_cast<float>(x), static_cast<float>(y)));
        int r = x - q * y;
        return r < 0 ? q - 1 : r >= y ? q + 1 : q;
    }

    static FP_DEVICE entry load_entry(const int *from, int i)
    {
        if constexpr (ENTRY == 2) {
            int2 x = reinterpret_cast<const int2 *>(from)[i];
            return {x.x, {x.y, 0, 0}};
        } else {
            int4 x = reinterpret_cast<const int4 *>(from)[i];
            return {x.x, {x.y, x.z, x.w}};
        }
    }

    /* How many tiles a row of fp_tiles.tile stands for: where the batch shares one list, those of
     * all batch rows and heads. */
    FP_DEVICE int tiles_of_row() const
    {
        return a.mask.lists == 1 ? a.batch * a.heads : a.heads;
    }

    /* The first tile of this thread block.  Those of a cluster have the same one. */
    static FP_DEVICE int first_tile()
    {
        return static_cast<int>(blockIdx.x) / CLUSTER;
    }

    FP_DEVICE int tiles() const
    {
        return a.tiles.count * tiles_of_row();
    }

    /* How many heads' tiles come together.  Where all keys and values are more than L2 holds, tiles
     * that read the same ones follow each other.  Short lists, as of a window, read them too seldom
     * to gain from it, and a list that takes a third of a thread block's time must not come late.
     * Loaders of covers have no registers for this. */
    FP_DEVICE int heads_at_once(int heads) const
    {
        constexpr int SHORT = 8, L2_BITS = 24; /* entries; 16 MB */
        const i64 bytes = static_cast<i64>(heads) * a.seq_len * (4 * W);
        const int groups = static_cast<int>((bytes - 1) >> L2_BITS) + 1, rows = a.tiles.count;
        if (ORDERED || groups == 1)
            return heads;
        const int longest = a.tiles.tile[2], median = a.tiles.tile[rows / 2 * 4 + 2];
        const bool late = 3ll * longest * gridDim.x > static_cast<i64>(median) * rows * heads;
        return median < SHORT || late ? heads : divide(heads + groups - 1, groups);
    }

    /* The row of fp_tiles.tile for tile number n, and which of the row's tiles it is.  Tiles of a
     * group of heads come row by row, because the longest rows come first.  Those of two parts come
     * head by head in each part: so a head's first part is stored long before its second one
     * begins. */
    FP_DEVICE int2 locate_tile(int n) const
    {
        const int each = tiles_of_row();
        if (ORDERED && a.tiles.parts > 1) {
            const int rows = a.tiles.count / 2, part = n >= rows * each ? 1 : 0;
            const int m = n - part * rows * each, which = divide(m, rows);
            return {part * rows + m - which * rows, which};
        }
        const int group = heads_at_once(each), before = divide(n, a.tiles.count * group) * group;
        const int m = n - before * a.tiles.count, heads = min(group, each - before);
        const int row = divide(m, heads);
        return {row, before + m - row * heads};
    }

    /* Tile number n, and this lane's entry of its first 32. */
    FP_DEVICE void find_tile(int n, tile &t, entry &e) const
    {
        const bool shared_list = a.mask.lists == 1;
        const int2 at = locate_tile(n);
        const int row = at.x, pair = at.y;
        int4 x = reinterpret_cast<const int4 *>(a.tiles.tile)[row];
        e = load_entry(a.tiles.head, row * 32 + static_cast<int>(threadIdx.x % 32));
        t.batch = shared_list ? divide(pair, a.heads) : x.x;
        t.head = shared_list ? pair - t.batch * a.heads : pair;
        t.part = ORDERED && x.y >= a.mask.blocks ? 1 : 0;
        t.block = x.y - t.part * a.mask.blocks;
        t.entries = x.z;
        t.rest = x.w;
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

    FP_DEVICE int draw_tile() const
    {
        return static_cast<int>(gridDim.x + atomicInc(a.sync + FP_SYNC_DRAWN, tiles() - 1));
    }

    /* Gives the tile that the first loading thread drew to all of them. */
    FP_DEVICE int share_drawn(int drawn, int n, int tid) const
    {
        if constexpr (P == 1)
            return __shfl_sync(0xffffffffu, drawn, 0);
        if (tid == 0)
            s.drawn[n & 1] = drawn;
        asm volatile("bar.sync 15, %0;" ::"n"(32 * P) : "memory");
        return s.drawn[n & 1];
    }

    FP_DEVICE void produce(tile t, entry e)
    {
        const int tid = static_cast<int>(threadIdx.x) - C * FOUR_WARPS;
        const loader me = {tid, tid % 32, tid / 32};
        const int end = tiles();
        position ring = {0, 1};
        int number = first_tile();
#pragma unroll 1
        for (int n = 0;; n++) {
            if (!DRAWS && n == 1)
                return;
            const int at = n % TILES;
            const u32 full_q = shared_address(&s.full_q[at]);
            if constexpr (DRAWS)
                mbarrier_wait(shared_address(&s.empty_q[at]), (n / 2 & 1) ^ 1);
            const tile_buffer to = {at, full_q, s.item[at]};
            if (number >= end) {
                announce_end(to, me);
                return;
            }
            const rows from = find_rows(t);
            tokens keys = {-1, -1};
            if constexpr (ORDERED)
                keys = load_first_keys(t, e);
            load_tile(t, e, from, to, me);

            /* A tile is drawn late, so that long ones go to the thread block that is free first. */
            const int entries = t.entries;
            int next = end;
            if constexpr (DRAWS)
                if (me.tid == 0 && entries == 0)
                    next = draw_tile();
#pragma unroll 1
            for (int i = cluster_rank<CLUSTER>(); i < entries; i += CLUSTER) {
                load_key_block(t, e, keys, from, entries, i, ring, me);
                if constexpr (DRAWS)
                    if (me.tid == 0 && i == max(entries - 2, 0))
                        next = draw_tile();
                if (++ring.slot == STAGES)
                    ring.slot = 0, ring.phase ^= 1;
            }
            if constexpr (DRAWS) {
                number = share_drawn(next, n, me.tid);
                if (number < end)
                    find_tile(number, t, e);
            }
        }
    }

    /* Tells the warpgroups that compute that no tile is left. */
    FP_DEVICE void announce_end(const tile_buffer &to, const loader &me) const
    {
        if (me.tid == 0)
            to.item[0] = -1;
        if (me.tid == 0)
            mbarrier_arrive(to.full);
        mbarrier_arrive_copies(to.full);
    }

    /* q, k and v are columns of the GEMM's (B,S,3D), or (B,H,S,W) each. */
    FP_DEVICE rows find_rows(const tile &t) const
    {
        const int hidden = a.heads * W, col = static_cast<int>(threadIdx.x) % 8 * 8;
        rows r;
        r.length = a.lengths ? a.lengths[t.batch] : a.seq_len;
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
        const rows from = find_rows(t);
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
                copy_16(to + j * PANEL + r * 128 + (c ^ (r % 8)) * 16, row + j * 128, valid);
        }
        copy_commit();
        copy_wait<0>();
        __syncwarp();
    }

    /* Rows of q and their tokens.  Of a tile's query blocks some may lie past the last one. */
    FP_DEVICE void load_ordered_q(const tile &t, const rows &from, const tile_buffer &to,
                                  const loader &me) const
    {
#pragma unroll
        for (int g = 0; g < G; g++) {
            const int block = t.block + g;
            tokens of = {-1, -1};
            if (block < a.mask.blocks)
                of = load_tokens(a.tiles.query_token, t, block);
            copies::template copy_rows<false>(shared_address(s.q[to.index][g]), from.q, from.pitch,
                                              of, from.length);
            if (block < a.mask.blocks && me.tid < BLOCK / 4)
                copy_16(shared_address(&s.token[to.index][g * BLOCK + me.tid * 4]),
                        a.tiles.query_token + (t.part * a.mask.blocks + block) * BLOCK +
                            me.tid * 4);
        }
    }

    /* q, unless who computes loads it, the biases, and what the warpgroups that compute must know
     * of the tile. */
    FP_DEVICE void load_tile(const tile &t, const entry &e, const rows &from, const tile_buffer &to,
                             const loader &me) const
    {
        if constexpr (ORDERED)
            load_ordered_q(t, from, to, me);
        else if constexpr (DRAWS)
#pragma unroll
            for (int g = 0; g < G; g++)
                copies::template copy_block<false>(shared_address(s.q[to.index][g]), from.q,
                                                   from.pitch, (t.block + g) * BLOCK, from.length);
        if (S::BIAS && me.tid < W / 4) {
            int which = me.tid / (W / 8), col = me.tid % (W / 8) * 8;
            copy_16(shared_address(&s.bias[to.index][which][col]),
                    elements<D>(*io.bias) + which * 2 * a.heads * W + t.head * W + col);
        }
        write_marks(s.marks[to.index], e, me.lane < t.entries, me.tid == 0);
        if (me.tid == 0) {
            to.item[0] = t.entries, to.item[1] = t.batch, to.item[2] = t.head;
            to.item[3] = t.block, to.item[4] = from.length, to.item[5] = t.part;
            if (ORDERED && t.part > 0)
                to.item[6] = part_counter<S>{a}.first_stored(to.item);
            mbarrier_arrive(to.full);
        }
        mbarrier_arrive_copies(to.full);
    }

    /* 64 rows of k or v. */
    FP_DEVICE void load_keys(u32 to, const unsigned char *from, const rows &r, int block,
                             const tokens &of) const
    {
        if constexpr (ORDERED)
            copies::template copy_rows<true>(to, from, r.pitch, of, r.length);
        else
            copies::template copy_block<true>(to, from, r.pitch, block * BLOCK, r.length);
    }

    /* Loads k, v and row words of entry i.  keys: the tokens of its keys where they are ordered; in
     * the end those of the next entry, which are on their way meanwhile. */
    FP_DEVICE void load_key_block(const tile &t, entry &e, tokens &keys, const rows &from,
                                  int entries, int i, position at, const loader &me) const
    {
        const bool fetches = i % 32 < CLUSTER && i >= 32;
        if (fetches) {
            const int mine = i / 32 * 32 + me.lane;
            e = load_entry(a.tiles.rest, t.rest + mine - 32);
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
        load_keys(shared_address(s.k[at.slot]), from.k, from, block, of);
#pragma unroll
        for (int g = 0; g < G; g++)
            if (word[g] >= 0 && me.warp == g % P)
                copy_16(shared_address(s.words[at.slot][g]) + me.lane * 16,
                        a.tiles.words + static_cast<i64>(word[g]) * BLOCK + me.lane * 2);
        if (me.tid == 0)
            mbarrier_arrive(full_k);
        mbarrier_arrive_copies(full_k);
        mbarrier_wait(shared_address(&s.empty_v[at.slot]), at.phase);
        load_keys(shared_address(s.v[at.slot]), from.v, from, block, of);
        mbarrier_arrive_copies(shared_address(&s.full_v[at.slot]));
    }
};

} // namespace fp

#endif
