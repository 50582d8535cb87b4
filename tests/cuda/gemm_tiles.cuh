/* Where GEMMs on Hopper load and store, by the threads of all thread blocks of a launch.
 *
 * Each box of 16 rows of a result is stored once, as a part of the tile whose sums the thread has.
 * Each box of the input, the weight and the residual is loaded once for a tile that it belongs to,
 * tiles are loaded in the order in which they are multiplied, and gamma and beta are those of a
 * tile's columns.  Each word of a mailbox has one sender and one reader, of its ranks and of the
 * same row.  A warp writes to a place in shared memory once all stores from there have read it.
 *
 * Not modelled: ordinary loads and stores, and so rows that are gathered or scattered, rotary
 * embeddings and sums that are split; shared memory, by which thread blocks of a cluster load for
 * each other. */
#pragma once

#include "on_host.cuh"

#include "hopper_gemm.cuh"

namespace fp::hopper_gemm
{

static fp_maps maps;
static u32 sync_words[1 << 20];
static u16 numbers[1 << 11]; /* gamma and beta: of each column its number */

/* Of a launch: map, row and column of the boxes that are stored; for each word of the mailboxes the
 * row for which it was sent and received, negative before. */
static std::set<std::tuple<const void *, int, int>> stored;
static std::vector<int> sent, received;

/* The work of a thread block, of which also the order of tiles is known. */
template <class S, class End> struct thread_block : work<S, token_view<fp16>, End> {
    using base = work<S, token_view<fp16>, End>;
    static constexpr int BM = S::BM, BN = S::BN;

    std::vector<tile> order;                                       /* its tiles */
    std::set<std::tuple<int, int, const void *, int, int>> loaded; /* boxes of maps, by tile */

    thread_block(const fp_args &args, const End &after)
        : base(args, maps, {nullptr, args.gemm.inner}, after, shared)
    {
        for (int i = this->first_tile(); i < this->tiles(); i = this->next_tile(i))
            order.push_back(base::locate(i));
    }

    /* A thread calls one of these before it loads, multiplies or stores a tile. */
    tile locate(int number) const
    {
        const tile t = base::locate(number);
        if (number < this->tiles())
            events.push_back({TILE, nullptr, t.n0, t.m0});
        return t;
    }

    item item_at(int number, u32 nth, int team, int member) const
    {
        locate(number);
        return base::item_at(number, nth, team, member);
    }

    /* Whether the tile has a sum; a gate makes one column of two. */
    static bool has(const tile &t, int row, int column)
    {
        return row >= t.m0 && row < t.m0 + BM && column >= t.n0 && column < t.n0 + BN;
    }

    void check_load(const tile &t, const event &e)
    {
        const bool input = e.what == &maps.in, weight = e.what == &maps.weight;
        const int step = (input || S::E4M3 ? e.column : e.row) / S::BK;
        check(input    ? e.row == t.m0
              : weight ? has(t, t.m0, S::E4M3 ? e.row : e.column)
                       : has(t, e.row, e.column),
              "a load is of its tile");
        check(step < this->steps() || !(input || weight), "a load is of a step");
        check(loaded.insert({t.m0, t.n0, e.what, e.row, e.column}).second, "a box is loaded once");
    }

    void check_store(const tile &t, const event &e, int rows)
    {
        const int column = e.column * (S::GATE ? 2 : 1);
        check(has(t, e.row, column) && e.row + rows <= t.m0 + BM, "a store is of its tile");
        check(e.row % WARP_ROWS == 0 && column % S::PANEL == 0, "a store is of boxes");
        for (int row = e.row; row < e.row + rows; row += WARP_ROWS)
            check(stored.insert({e.what, row, e.column}).second, "a box is stored once");
    }

    void check_mail(const tile &t, const event &e)
    {
        const int at = static_cast<int>(static_cast<const u64 *>(e.what) - this->mailbox(0, 0, 0)),
                  rank = e.kind == SEND ? at / BM : at / BM / this->ranks();
        check(t.n0 / BN == rank % this->ranks(), "a word is of its sender's and its reader's rank");
        int &row = (e.kind == SEND ? sent : received).at(at);
        check(row < 0, "a word is sent once and received once");
        row = t.m0 + at % BM;
    }

    /* A thread that multiplies, the first one of a warp also stores for it; or one that copies. */
    void run(int thread)
    {
        const int group = thread / FOUR_WARPS;
        const bool copies = group == S::CONSUMERS;
        size_t next = copies ? 0 : group / S::GROUPS; /* of the order */
        tile t = {-1, -1};
        events.clear();
        groups.assign(1, {});
        threadIdx.x = thread;
        if (copies)
            copy(*this, thread % FOUR_WARPS / 32, thread % 32);
        else
            multiply(*this, group);
        for (const event &e : events)
            if (e.kind == LOAD) {
                check_load(t, e);
            } else if (e.kind == STORE) {
                check_store(t, e, copies ? BM : WARP_ROWS);
            } else if (e.kind != TILE) {
                check_mail(t, e);
            } else if (e.row != t.m0 || e.column != t.n0) {
                t = order.at(S::SHARES ? min(next, order.size() - 1) : next);
                check(e.row == t.m0 && e.column == t.n0, "a thread takes tiles in their order");
                next += copies ? 1 : S::TEAMS;
            }
    }

    void check_loads() const
    {
        const int inputs = this->steps() * (S::BK / S::A_PANEL),
                  weights = S::E4M3 ? inputs : this->steps() * S::PANELS,
                  residuals = S::PANELS * (S::BETWEEN ? 1 : S::RESIDUAL_STEPS);
        const size_t kept = S::STAYS && !order.empty() ? 1 : order.size();
        check(loaded.size() == order.size() * (inputs + residuals) + kept * weights,
              "all is loaded");
        if constexpr (S::STRIPS)
            for (const tile &t : order)
                for (u32 pair : this->s.weights)
                    check(has(t, t.m0, pair & 0xffff) && has(t, t.m0, pair >> 16),
                          "gamma and beta are of the tile's columns");
    }
};

/* live: tokens that are no padding.  ranks: tiles side by side.  grid: thread blocks. */
template <const fp_hopper_gemm &G>
void run_gemm(int tokens, int live, int ranks, int grid, int backwards)
{
    using S = shape<fp16, G>;
    using End = ending<fp16, apply_gelu<fp16, keep>, store_tokens<fp16>>;
    constexpr bool MAILS = G.norm == FP_NORM_MEMORY;
    const int high = G.rows * G.cluster, strips = (live + high - 1) / high * G.cluster;
    fp_args a = {};
    a.tokens = tokens, a.live = &live, a.backwards = backwards, a.sync = sync_words;
    a.gemm.columns = ranks * S::BN - (G.norm == FP_NORM_NONE ? 32 : 0); /* norms: whole tiles */
    a.gemm.inner = G.kept > 0 ? G.kept * G.step : 3 * G.step - 16;
    stored.clear();
    sent.assign(MAILS ? strips * ranks * ranks * S::BM : 0, -1);
    received.assign(sent.size(), -2);
    for (blockIdx.x = 0, gridDim.x = grid; blockIdx.x < gridDim.x; blockIdx.x++) {
        thread_block<S, End> block(
            a, {nullptr, nullptr, {}, {nullptr, a.gemm.columns}, numbers, numbers, 0, nullptr});
        for (int i = 0; i < (S::CONSUMERS + 1) * FOUR_WARPS; i++)
            if (MAILS || i % 32 == 0 || i >= S::CONSUMERS * FOUR_WARPS)
                block.run(i);
        block.check_loads();
    }
    const int boxes = (live + WARP_ROWS - 1) / WARP_ROWS *
                      ((a.gemm.columns + S::PANEL - 1) / S::PANEL) * (1 + G.out_both + G.keeps);
    check(std::count_if(stored.begin(), stored.end(),
                        [&](const auto &box) { return std::get<1>(box) < live; }) == boxes,
          "all is stored");
    check(sent == received, "a word is received for the row for which it was sent");
}

/* Rows that are whole tiles, that are not, and of which few are live; grids that do not divide the
 * tiles, and of which thread blocks have none. */
template <const fp_hopper_gemm &G> void check_hopper_gemm(const char *kernel)
{
    const int high = G.rows * G.cluster,
              whole = (G.norm != FP_NORM_NONE ? 5 : 11) * high; /* 11: > work::RASTER */
    checked = kernel;
    std::iota(std::begin(numbers), std::end(numbers), 0);
    for (int ranks : {1, 2, 3, 8})
        for (int backwards = 0; backwards < 2; backwards++) {
            const int group = ranks * G.cluster,
                      rest = G.norm == FP_NORM_CLUSTER ? 0 : group - G.cluster;
            run_gemm<G>(whole, whole, ranks, 3 * group + rest, backwards);
            run_gemm<G>(whole - 7, whole - 7, ranks, 2 * group, backwards);
            run_gemm<G>(whole, high + 1, ranks, 3 * group, backwards);
        }
}

} // namespace fp::hopper_gemm

using fp::hopper_gemm::check_hopper_gemm;
