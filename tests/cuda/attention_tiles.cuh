/* In which order attention on Hopper takes its tiles: each once, and of a mask in two parts a
 * head's first part before its second one.
 *
 * Not modelled: what becomes of a tile, which is loaded and stored by ordinary instructions. */
#pragma once

#include "on_host.cuh"

#include "hopper_attention_tiles.cuh"

namespace fp::hopper_attention
{

/* All rows of fp_tiles.tile have so many entries. */
template <const fp_hopper_attention &A> void run_attention(fp_args a, int parts, int entries)
{
    using S = shape<fp16, FP_SPLIT | FP_MERGE, A>;
    const int blocks = ((S::JOINED ? a.tokens : a.seq_len) + BLOCK - 1) / BLOCK,
              high = (blocks + S::G - 1) / S::G, pairs = S::JOINED ? a.heads : a.batch * a.heads,
              live = S::JOINED ? (*a.live + BLOCK - 1) / BLOCK : high;
    std::vector<int4> rows;
    for (int part = 0; part < parts; part++)
        for (int list = 0; list < a.mask.lists; list++)
            for (int row = 0; row < high; row++)
                rows.push_back({list, part * blocks + row * S::G, entries, 0});
    const std::vector<int4> first_entries(rows.size() * 32);
    a.mask.blocks = blocks;
    a.tiles.count = static_cast<int>(rows.size()), a.tiles.parts = parts;
    a.tiles.tile = &rows[0].x, a.tiles.head = &first_entries[0].x;

    const tile_order<S> order = {a};
    std::set<std::tuple<int, int, int>> taken;
    std::vector<int> first_part(pairs); /* tiles that were taken of it */
    for (int i = 0; i < order.count(); i++) {
        tile t;
        entry e;
        order.find(i, t, e);
        const int pair = t.batch * a.heads + t.head;
        check(t.head >= 0 && t.head < a.heads && pair >= 0 && pair < pairs,
              "the head is one of the layer");
        check(taken.insert({t.part, pair, t.block}).second, "a tile is taken once");
        if (t.part == 0)
            first_part[pair]++;
        check(t.part == 0 || first_part[pair] == high, "the first part comes first");
    }
    check(taken.size() == static_cast<size_t>(parts * pairs * live), "all tiles are taken");
}

/* Keys and values that L2 holds and that it does not; lists that are long and short. */
template <const fp_hopper_attention &A> void check_hopper_attention(const char *kernel)
{
    static const int layers[][3] = {{1, 1, 64}, {1, 12, 4096}, {5, 3, 333}, {13, 17, 1000}};
    checked = kernel;
    gridDim.x = 132;
    for (const auto &[batch, heads, seq_len] : layers)
        for (int i = 0; i < 8; i++) {
            const bool backwards = i & 1, one_list = A.joined || i & 2, few = i & 4;
            const int live = batch * seq_len / (few ? 2 : 1);
            fp_args a = {};
            a.batch = batch, a.heads = heads, a.seq_len = seq_len, a.tokens = batch * seq_len;
            a.live = &live, a.backwards = backwards, a.mask.lists = one_list ? 1 : batch;
            for (int parts = 1; parts <= (A.ordered ? 2 : 1); parts++)
                run_attention<A>(a, parts, few ? 2 : 40);
        }
}

} // namespace fp::hopper_attention

using fp::hopper_attention::check_hopper_attention;
