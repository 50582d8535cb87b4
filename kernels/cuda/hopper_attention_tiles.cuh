/* Which tiles of query blocks a thread block of hopper_attention.cuh takes. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_TILES_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_TILES_CUH

#include "hopper_attention_work.cuh"

namespace fp::hopper_attention
{

/* One key block and what each query block of the tile does with it: the index of its row words, -1
 * where it takes all of the block, or WORD_SKIP. */
struct entry {
    int key_block, word[3];
};

/* A row of fp_tiles.tile: its first query block, its entries, where those behind the 32nd lie in
 * fp_tiles.rest. */
struct tile {
    int part, block, entries, rest, batch, head;
};

/* x / y; both and the quotient are exact as floats. */
FP_DEVICE int divide(int x, int y)
{
    int q = static_cast<int>(__fdividef(static_cast<float>(x), static_cast<float>(y)));
    int r = x - q * y;
    return r < 0 ? q - 1 : r >= y ? q + 1 : q;
}

template <class S> struct tile_order {
    const fp_args &a;

    static FP_DEVICE entry load_entry(const int *from, int i)
    {
        if constexpr (S::ENTRY == 2) {
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
        return a.mask.lists == 1 && !S::JOINED ? a.batch * a.heads : a.heads;
    }

    /* The first tile of this thread block.  The thread blocks of a cluster have the same tile. */
    static FP_DEVICE int first()
    {
        return static_cast<int>(blockIdx.x) / S::CLUSTER;
    }

    FP_DEVICE int count() const
    {
        const int rows = S::JOINED ? (live_tokens(a) + BLOCK - 1) / BLOCK : a.tiles.count;
        return rows * tiles_of_row();
    }

    FP_DEVICE int draw() const
    {
        return static_cast<int>(gridDim.x + atomicInc(a.sync + FP_SYNC_DRAWN, count() - 1));
    }

    /* Groups of heads whose keys and values L2 holds, so that tiles that read the same ones follow
     * each other: how many of tiles_of_row() a group has. */
    FP_DEVICE int heads_at_once(int each) const
    {
        constexpr int L2_BITS = 24;                              /* 16 MB */
        const i64 heads = S::ORDERED ? a.batch * a.heads : each, /* whose rows are in turn */
            bytes = heads * a.seq_len * (4 * S::W);
        const int groups = static_cast<int>((bytes - 1) >> L2_BITS) + 1;
        const bool gains = S::ORDERED ? a.tiles.parts > 1 : !S::JOINED && groups > 1 && pays(each);
        return gains ? divide(each + groups - 1, groups) : each;
    }

    /* Short lists, as of a window, read keys too seldom to gain from groups.  A list that takes a
     * third of a thread block's time must not come late. */
    FP_DEVICE bool pays(int heads) const
    {
        constexpr int SHORT = 8; /* entries */
        const int rows = a.tiles.count, longest = a.tiles.tile[2],
                  median = a.tiles.tile[rows / 2 * 4 + 2];
        return median >= SHORT &&
               3ll * longest * gridDim.x <= static_cast<i64>(median) * rows * heads;
    }

    /* The row of fp_tiles.tile for tile number n, and which of the row's tiles it is.  Tiles of a
     * group of heads come row by row, because the longest rows come first.  Of two parts a group's
     * first one comes in front of its second one, each head by head: so a head's first part is
     * stored long before its second one begins. */
    FP_DEVICE int2 locate(int n) const
    {
        const int each = tiles_of_row(), group = heads_at_once(each);
        const int before = divide(n, a.tiles.count * group) * group;
        const int m = n - before * a.tiles.count, heads = min(group, each - before);
        if (S::ORDERED && a.tiles.parts > 1) {
            const int rows = a.tiles.count / 2, part = m >= rows * heads ? 1 : 0;
            const int k = m - part * rows * heads, which = divide(k, rows);
            return {part * rows + k - which * rows, before + which};
        }
        const int row = divide(m, heads);
        return {row, before + m - row * heads};
    }

    /* Tile number n, and this lane's entry of its first 32. */
    FP_DEVICE void find(int n, tile &t, entry &e) const
    {
        const bool shared_list = a.mask.lists == 1 && !S::JOINED;
        const int2 at = locate(n);
        /* Small layers run by other shapes, which need not ask whether to go backwards. */
        const bool turned = S::DRAWS && (S::C > 1 || S::ORDERED) && a.backwards;
        const int row = at.x, pair = turned ? tiles_of_row() - 1 - at.y : at.y;
        int4 x = reinterpret_cast<const int4 *>(a.tiles.tile)[row];
        e = load_entry(a.tiles.head, row * 32 + static_cast<int>(threadIdx.x % 32));
        t.batch = shared_list ? divide(pair, a.heads) : x.x;
        t.head = shared_list ? pair - t.batch * a.heads : pair;
        t.part = S::ORDERED && x.y >= a.mask.blocks ? 1 : 0;
        t.block = x.y - t.part * a.mask.blocks;
        t.entries = x.z;
        t.rest = x.w;
    }
};

} // namespace fp::hopper_attention

#endif
