/* Whole attention by Hopper's wgmma (sm_90a), fp16 and bf16, head size W = 64 or 128:
 *
 *   out (S,W) = softmax(mask(q k^T / sqrt(W))) v     for each batch row and head
 *
 * One launch fuses operators 2..5, with 1 (bias, split) before and 6 (merge_heads) after.  FIRST is
 * 1 or 2 and LAST is 5 or 6; shapes of tensors and the treatment of the biases are those of
 * attention.cuh.
 *
 * Source: FlashAttention-3 (Shah et al. 2024) for warp roles and overlap; FlashAttention-4 for the
 * lazy rescaling.  Softmax is online, with 2^x and the scale folded in.  A row's maximum is raised
 * only when it grew by more than LAZY in some row of the warp; sums and context shrink only then.
 * Until then 2^x reaches at most 2^LAZY, which fp16 holds.
 *
 * A tile is G neighbouring blocks of 64 query rows of one head.  A thread block has two roles:
 *
 *   C warpgroups compute.  Warpgroup w has the rows of block w % G and takes every (C/G)-th entry
 *   of the tile's list from w / G on.  With C/G = 2, two warpgroups share a block's rows and join
 *   their partial results in shared memory.
 *
 *   P warps load.  They fill a ring of STAGES key blocks (k, v, row words) for all warpgroups, and
 *   q of the next tile, by cp.async in the 128-byte swizzle.
 *
 * The mbarriers full_* complete when copies have landed, the mbarriers empty_* when every warp that
 * computes has read them.  Two bits of each entry (skip, partial) tell a warpgroup what to do with
 * the key block.  A warpgroup that skips an entry arrives all the same.
 *
 *   DRAWS    thread blocks draw their tiles from a counter; else each has one
 *   OVERLAP  the next entry's scores are issued before this one's context, so that softmax runs
 *            beside the context; else one after another
 *   QREG     q is an operand in registers, else in shared memory */
#ifndef FUSEPLAN_CUDA_ATTENTION_WGMMA_CUH
#define FUSEPLAN_CUDA_ATTENTION_WGMMA_CUH

#include "hopper.cuh"

namespace fp
{

/* x, which is equal in all lanes, in a form that the compiler knows to be uniform. */
FP_DEVICE int uniform(int x)
{
    return static_cast<int>(__reduce_or_sync(0xffffffffu, static_cast<u32>(x)));
}

FP_DEVICE uint2 load_shared_2(u32 at)
{
    uint2 x;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(at) : "memory");
    return x;
}

/* Sums of two pairs, rounded once. */
template <class D> struct pairs;
template <> struct pairs<fp16> {
    static FP_DEVICE u32 add(u32 x, u32 y)
    {
        u32 r;
        asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
        return r;
    }
};
template <> struct pairs<bf16> {
    static FP_DEVICE u32 add(u32 x, u32 y)
    {
        u32 r;
        asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
        return r;
    }
};

/* ---- the stage ------------------------------------------------------------------------------- */

enum attention_word { WORD_FULL = -1, WORD_SKIP = -2 };

template <int W, int C, int G, int STAGES, bool DRAWS> struct attention_wgmma_smem {
    static constexpr int LINE = 128, PANEL = BLOCK * LINE, TILE = PANEL * (W / 64);
    static constexpr int PARTS = C / G, TILES = DRAWS ? 2 : 1; /* tiles at hand */
    static constexpr int JOIN = W / 2 + 4; /* floats a thread: context, maxima, sums */
    unsigned char q[TILES][G][TILE];       /* the context in the end */
    unsigned char k[STAGES][TILE], v[STAGES][TILE];
    float join[PARTS > 1 ? (PARTS - 1) * G *JOIN *FOUR_WARPS : 4];
    u64 words[STAGES][G][BLOCK];
    alignas(16) u16 bias[TILES][2][W]; /* of q, of v */
    int item[TILES][8];     /* entries or -1 at the end, batch, head, query block, length */
    u32 marks[TILES][2][G]; /* of the first 32 entries: skip, partial */
    u32 later[2][2][G];     /* of the 32 entries after those, in two buffers */
    int drawn[2];
    u64 full_k[STAGES], full_v[STAGES], empty_k[STAGES], empty_v[STAGES];
    u64 full_q[TILES], empty_q[TILES];
};

template <class D, int W, int FIRST, int LAST, int C, int G, int STAGES, int P, bool DRAWS,
          bool OVERLAP, bool QREG>
struct attention_wgmma {
    static_assert(is_half<D> && (W == 64 || W == 128), "a row is one or two lines of 128 bytes");
    static_assert(C % G == 0 && C / G <= 2, "the rows of a block are of one or two warpgroups");
    static_assert(!QREG || OVERLAP, "ptxas 13.0.88 puts p over q, which the next step needs");
    static_assert(!OVERLAP || STAGES >= 3, "a block is announced while the next one is loaded");
    static_assert(STAGES >= 2 * (C / G) && STAGES % (C / G) == 0,
                  "a part has a slot twice in turn");
    static_assert(!DRAWS || C == G, "parts begin with a slot of their own");
    using T = elem<D>;
    using smem = attention_wgmma_smem<W, C, G, STAGES, DRAWS>;
    static constexpr int THREADS = C * FOUR_WARPS + P * 32, ALIGN = 1024;
    static constexpr int PARTS = C / G, PANELS = W / 64, PANEL = smem::PANEL, TILE = smem::TILE;
    static constexpr int ENTRY = G == 1 ? 2 : 4;
    static constexpr int LAZY = 8;

    const fp_args &a;
    smem &s;

    static FP_DEVICE smem &align(void *shared)
    {
        u32 gap = (ALIGN - shared_address(shared) % ALIGN) % ALIGN;
        return *reinterpret_cast<smem *>(static_cast<unsigned char *>(shared) + gap);
    }

    FP_DEVICE attention_wgmma(const fp_args &args, void *shared) : a(args), s(align(shared))
    {
    }

    FP_DEVICE void run()
    {
        const bool computes = threadIdx.x < C * FOUR_WARPS;
        if (computes && threadIdx.x < 32)
            touch_arguments();
        tile t = {};
        entry e = {};
        if (!computes && static_cast<int>(blockIdx.x) < tiles())
            find_tile(static_cast<int>(blockIdx.x), t, e);
        if (threadIdx.x == 0)
            init_mbarriers();
        __syncthreads();
        if (computes)
            consume();
        else
            produce(t, e);
    }

    /* Loads every line of the arguments at once, so that later reads of them hit the cache. */
    FP_DEVICE void touch_arguments() const
    {
        const int *words = reinterpret_cast<const int *>(&a);
        int x = words[threadIdx.x * 16 % (sizeof(fp_args) / 4)];
        asm volatile("" ::"r"(x));
    }

    FP_DEVICE void init_mbarriers() const
    {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(shared_address(&s.full_k[i]), 32 * P + 1);
            mbarrier_init(shared_address(&s.full_v[i]), 32 * P);
            mbarrier_init(shared_address(&s.empty_k[i]), 4 * G);
            mbarrier_init(shared_address(&s.empty_v[i]), 4 * G);
        }
        for (int i = 0; i < smem::TILES; i++) {
            mbarrier_init(shared_address(&s.full_q[i]), 32 * P + 1);
            mbarrier_init(shared_address(&s.empty_q[i]), 4 * C);
        }
    }

    /* ---- producing --------------------------------------------------------------------------- */

    /* A slot of the ring, and the parity of the mbarriers' phase to wait for. */
    struct position {
        u32 slot, phase;
    };

    /* One key block and what each query block of the tile does with it: the index of its row words,
     * or an enum attention_word. */
    struct entry {
        int key_block, word[3];
    };

    /* A row of fp_tiles.tile: its first query block, its entries, where those behind the 32nd lie
     * in fp_tiles.rest. */
    struct tile {
        int block, entries, rest, batch, head;
    };

    /* A thread that loads: its number among them, in its warp, its warp; elements of a token. */
    struct loader {
        int tid, lane, warp, hidden;
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

    /* How many tiles all batch rows and heads have. */
    FP_DEVICE int tiles() const
    {
        return (a.mask.blocks + G - 1) / G * a.batch * a.heads;
    }

    /* Tile number n, and this lane's entry of its first 32.  Where the batch shares one list, each
     * row of fp_tiles.tile stands for the tiles of all batch rows and heads. */
    FP_DEVICE void find_tile(int n, tile &t, entry &e) const
    {
        const bool shared_list = a.mask.lists == 1;
        const int each = shared_list ? a.batch * a.heads : a.heads;
        const int row = divide(n, each), pair = n - row * each;
        int4 x = reinterpret_cast<const int4 *>(a.tiles.tile)[row];
        e = load_entry(a.tiles.head, row * 32 + static_cast<int>(threadIdx.x % 32));
        t.batch = shared_list ? divide(pair, a.heads) : x.x;
        t.head = shared_list ? pair - t.batch * a.heads : pair;
        t.block = x.y;
        t.entries = x.z;
        t.rest = x.w;
    }

    /* Copies the block of 64 rows from row `first` on; `from` is this thread's place in row 0. Rows
     * past the length become zeros: a probability of 0 times v is then 0. */
    static FP_DEVICE void copy_block(u32 to, const unsigned char *from, i64 pitch, int first,
                                     int length)
    {
        const int tid = static_cast<int>(threadIdx.x) - C * FOUR_WARPS, r0 = tid / 8;
        const u32 at = to + r0 * 128 + ((tid % 8) ^ (r0 % 8)) * 16;
        const unsigned char *p = from + (first + r0) * pitch;
        const u32 hop = static_cast<u32>(4 * P * pitch);
        if (first + BLOCK <= length) {
#pragma unroll
            for (int i = 0; i < BLOCK / (4 * P); i++) {
                const unsigned char *row; /* computed apart, so that none waits */
                asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(row) : "r"(hop), "r"(i), "l"(p));
#pragma unroll
                for (int j = 0; j < PANELS; j++)
                    copy_16((P == 1 && i % 2 ? at ^ 64 : at) + i * 512 * P + j * PANEL,
                            row + j * 128);
            }
            return;
        }
        const int rows = length - first - r0;
#pragma unroll 1
        for (int i = 0; i < BLOCK / (4 * P); i++, p += hop) {
            const bool valid = 4 * P * i < rows;
#pragma unroll
            for (int j = 0; j < PANELS; j++)
                copy_16((P == 1 && i % 2 ? at ^ 64 : at) + i * 512 * P + j * PANEL,
                        valid ? p + j * 128 : from, valid);
        }
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
        const loader me = {tid, tid % 32, tid / 32, a.heads * W};
        const int end = tiles();
        position ring = {0, 1};
        int number = static_cast<int>(blockIdx.x);
#pragma unroll 1
        for (int n = 0;; n++) {
            if (!DRAWS && n == 1)
                return;
            const int at = n % smem::TILES;
            const u32 full_q = shared_address(&s.full_q[at]);
            if constexpr (DRAWS)
                mbarrier_wait(shared_address(&s.empty_q[at]), (n / 2 & 1) ^ 1);
            const tile_buffer to = {at, full_q, s.item[at]};
            if (number >= end) {
                announce_end(to, me);
                return;
            }
            const rows from = find_rows(t, me);
            load_tile(t, e, from, to, me);

            /* A tile is drawn late, so that long ones go to the thread block that is free first. */
            const int entries = t.entries;
            int next = end;
            if constexpr (DRAWS)
                if (me.tid == 0 && entries == 0)
                    next = draw_tile();
#pragma unroll 1
            for (int i = 0; i < entries; i++) {
                load_key_block(t, e, from, entries, i, ring, me);
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
    FP_DEVICE rows find_rows(const tile &t, const loader &me) const
    {
        rows r;
        r.length = a.lengths ? a.lengths[t.batch] : a.seq_len;
        if constexpr (FIRST == 1) {
            r.pitch = 6 * me.hidden;
            r.q = reinterpret_cast<const unsigned char *>(
                tensor<D>(a, 1) + static_cast<i64>(t.batch) * a.seq_len * 3 * me.hidden +
                t.head * W + me.tid % 8 * 8);
            r.k = r.q + 2 * me.hidden;
            r.v = r.k + 2 * me.hidden;
        } else {
            const i64 all = static_cast<i64>(a.batch) * me.hidden * a.seq_len;
            r.pitch = 2 * W;
            r.q = reinterpret_cast<const unsigned char *>(
                tensor<D>(a, 2) + (static_cast<i64>(t.batch) * a.heads + t.head) * a.seq_len * W +
                me.tid % 8 * 8);
            r.k = r.q + 2 * all;
            r.v = r.k + 2 * all;
        }
        return r;
    }

    /* q, the biases, and what the warpgroups that compute must know of the tile. */
    FP_DEVICE void load_tile(const tile &t, const entry &e, const rows &from, const tile_buffer &to,
                             const loader &me) const
    {
#pragma unroll
        for (int g = 0; g < G; g++)
            copy_block(shared_address(s.q[to.index][g]), from.q, from.pitch, (t.block + g) * BLOCK,
                       from.length);
        if (FIRST == 1 && me.tid < W / 4) {
            int which = me.tid / (W / 8), col = me.tid % (W / 8) * 8;
            copy_16(shared_address(&s.bias[to.index][which][col]),
                    weight<D>(a, 1) + which * 2 * me.hidden + t.head * W + col);
        }
        write_marks(s.marks[to.index], e, me.lane < t.entries, me.tid == 0);
        if (me.tid == 0) {
            to.item[0] = t.entries, to.item[1] = t.batch, to.item[2] = t.head;
            to.item[3] = t.block, to.item[4] = from.length;
            mbarrier_arrive(to.full);
        }
        mbarrier_arrive_copies(to.full);
    }

    /* Loads k, v and row words of entry i. */
    FP_DEVICE void load_key_block(const tile &t, entry &e, const rows &from, int entries, int i,
                                  position at, const loader &me) const
    {
        if (i % 32 == 0 && i > 0) {
            e = load_entry(a.tiles.rest, t.rest + i - 32 + me.lane);
            write_marks(s.later[i / 32 & 1], e, i + me.lane < entries, me.tid == 0);
        }
        int word[G];
        const int first = __shfl_sync(0xffffffffu, e.key_block, i);
#pragma unroll
        for (int g = 0; g < G; g++)
            word[g] = __shfl_sync(0xffffffffu, e.word[g], i);
        const u32 full_k = shared_address(&s.full_k[at.slot]);
        mbarrier_wait(shared_address(&s.empty_k[at.slot]), at.phase);
        copy_block(shared_address(s.k[at.slot]), from.k, from.pitch, first * BLOCK, from.length);
#pragma unroll
        for (int g = 0; g < G; g++)
            if (word[g] >= 0 && me.warp == g % P)
                copy_16(shared_address(s.words[at.slot][g]) + me.lane * 16,
                        a.mask.words + static_cast<i64>(word[g]) * BLOCK + me.lane * 2);
        if (me.tid == 0)
            mbarrier_arrive(full_k);
        mbarrier_arrive_copies(full_k);
        mbarrier_wait(shared_address(&s.empty_v[at.slot]), at.phase);
        copy_block(shared_address(s.v[at.slot]), from.v, from.pitch, first * BLOCK, from.length);
        mbarrier_arrive_copies(shared_address(&s.full_v[at.slot]));
    }

    /* ---- computing --------------------------------------------------------------------------- */

    /* Maxima and sums of rows so far; `top` is of the whole row, `sum` of a lane's columns. */
    struct row_state {
        float top[2], sum[2];
    };

    static constexpr float unit = inverse_root<W> * LOG2_E;

    static FP_DEVICE float shift(float top)
    {
        return top <= 0.5f * MASKED ? 0.0f : top * unit;
    }

    /* at: the group's row words */
    static FP_DEVICE void mask(fragment<D, BLOCK> &c, u32 at)
    {
        const u32 tid = threadIdx.x, by = tid % 4 * 2;
        at += tid % FOUR_WARPS / 32 * (WARP_ROWS * 8) + tid % 32 / 4 * 8;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            uint2 word = load_shared_2(at + 64 * r);
            u32 half[2] = {word.x >> by, word.y >> by};
#pragma unroll
            for (int p = 0; p < 8; p++) {
                c[p][r][0] = half[p / 4] & (1u << (p % 4 * 8)) ? c[p][r][0] : MASKED;
                c[p][r][1] = half[p / 4] & (2u << (p % 4 * 8)) ? c[p][r][1] : MASKED;
            }
        }
    }

    /* Whether the maximum of any of the warp's rows grew by more than LAZY; then rescale[r] is what
     * earlier sums shrink by. */
    static FP_DEVICE bool raise(const fragment<D, BLOCK> &c, row_state &state, float (&rescale)[2])
    {
        float top[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float m[8];
#pragma unroll
            for (int p = 0; p < 8; p++)
                m[p] = fmaxf(c[p][r][0], c[p][r][1]);
#pragma unroll
            for (int d = 4; d > 0; d /= 2)
#pragma unroll
                for (int p = 0; p < d; p++)
                    m[p] = fmaxf(m[p], m[p + d]);
            top[r] = m[0];
        }
        if (!__any_sync(0xffffffffu,
                        top[0] > state.top[0] + LAZY / unit || top[1] > state.top[1] + LAZY / unit))
            return false;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            top[r] = fmaxf(state.top[r], lanes_max<4>(top[r]));
            rescale[r] = exp2_fast(state.top[r] * unit - shift(top[r]));
            state.top[r] = top[r];
            state.sum[r] *= rescale[r];
        }
        return true;
    }

    /* Turns masked scores into 2^(unit*score - shift). */
    static FP_DEVICE void soften(fragment<D, BLOCK> &c, row_state &state)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float sum[2], down = shift(state.top[r]);
#pragma unroll
            for (int p = 0; p < 8; p++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    c[p][r][e] = exp2_fast(c[p][r][e] * unit - down);
                    sum[e] = p == 0 ? c[p][r][e] : sum[e] + c[p][r][e];
                }
            state.sum[r] += sum[0] + sum[1];
        }
    }

    static FP_DEVICE void scale_rows(fragment<D, W> &o, const float (&by)[2])
    {
#pragma unroll
        for (int p = 0; p < W / 8; p++)
#pragma unroll
            for (int r = 0; r < 2; r++)
                o[p][r][0] *= by[r], o[p][r][1] *= by[r];
    }

    static FP_DEVICE void pack(u32 (&to)[4][4], const fragment<D, BLOCK> &c)
    {
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                to[k][i] = D::pack(c[2 * k + i / 2][i % 2][0], c[2 * k + i / 2][i % 2][1]);
    }

    /* Matrices in shared memory by the low half of their descriptor, in units of 16 bytes; the high
     * half is the same for all: 1024 bytes between 8 rows, 128-byte swizzle. */
    static constexpr u32 UNIT = 16, BY_ROWS = 1u << 16, BY_COLUMNS = PANEL / UNIT << 16;

    static FP_DEVICE u64 matrix(u32 low)
    {
        u64 m;
        asm("mov.b64 %0, {%1, %2};" : "=l"(m) : "r"(low), "n"(0x40000000 | 1024 / 16));
        return m;
    }

    /* 16 columns of the i-th step. */
    static FP_DEVICE u64 columns(u32 low, int i)
    {
        return matrix(low + i / 4 * (PANEL / UNIT) + i % 4 * (32 / UNIT));
    }

    static FP_DEVICE void issue_scores(fragment<D, BLOCK> &c, const u32 (&q)[W / 16][4], u32 low_q,
                                       u32 low_k)
    {
        wgmma_fence();
        if constexpr (QREG) {
            wgmma<D, BLOCK>::nt_set(c, q[0], columns(low_k, 0));
#pragma unroll
            for (int i = 1; i < W / 16; i++)
                wgmma<D, BLOCK>::nt(c, q[i], columns(low_k, i));
        } else {
            wgmma<D, BLOCK>::nt_set(c, columns(low_q, 0), columns(low_k, 0));
#pragma unroll
            for (int i = 1; i < W / 16; i++)
                wgmma<D, BLOCK>::nt(c, columns(low_q, i), columns(low_k, i));
        }
        wgmma_commit();
    }

    static FP_DEVICE void issue_context(fragment<D, W> &o, const u32 (&p)[4][4], u32 low_v)
    {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++)
            wgmma<D, W>::nn(o, p[i], matrix(low_v + i * (2048 / UNIT)));
        wgmma_commit();
    }

    /* q of this warp's rows, with its bias. */
    FP_DEVICE void load_q(u32 (&q)[W / 16][4], const unsigned char *from, const u16 *bias)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) % FOUR_WARPS / 32;
        const unsigned char *rows = from + (warp * WARP_ROWS + lane % 16) * 128;
#pragma unroll
        for (int i = 0; i < W / 16; i++) {
            load_matrix(q[i], rows + i / 4 * PANEL + ((i % 4 * 2 + lane / 16) ^ (lane % 8)) * 16);
            if constexpr (FIRST == 1)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    q[i][j] = pairs<D>::add(q[i][j], *reinterpret_cast<const u32 *>(
                                                         bias + i * 16 + j / 2 * 8 + lane % 4 * 2));
        }
    }

    /* Adds the bias to q where it lies; tid: of all threads that share it. */
    static FP_DEVICE void bias_q(unsigned char *rows, const u16 *bias, int tid)
    {
#pragma unroll
        for (int i = tid; i < BLOCK * W / 8; i += PARTS * FOUR_WARPS) {
            int panel = i / 512, row = i % 512 / 8, chunk = i % 8;
            uint4 *at = reinterpret_cast<uint4 *>(rows + panel * PANEL + row * 128 +
                                                  (chunk ^ (row % 8)) * 16);
            uint4 x = *at, b = *reinterpret_cast<const uint4 *>(bias + panel * 64 + chunk * 8);
            *at = make_uint4(pairs<D>::add(x.x, b.x), pairs<D>::add(x.y, b.y),
                             pairs<D>::add(x.z, b.z), pairs<D>::add(x.w, b.w));
        }
    }

    /* All warpgroups that share the rows of a block. */
    static FP_DEVICE void meet(int group)
    {
        asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(PARTS * FOUR_WARPS) : "memory");
    }

/* The address in shared memory of a field of smem; the same as the low half of a descriptor. */
/* NVRTC has no offsetof. */
#define FP_OFFSET(field)                                                                           \
    static_cast<u32>(reinterpret_cast<u64>(&static_cast<smem *>(nullptr)->field))
#define FP_AT(field)  (base + FP_OFFSET(field))
#define FP_LOW(field) (base / UNIT + FP_OFFSET(field) / UNIT)

    /* Makes q ready for wgmma, with its bias: in registers, or where it lies. */
    FP_DEVICE void prepare_q(u32 (&q)[W / 16][4], int tile, int group, int part)
    {
        if constexpr (QREG) {
            load_q(q, s.q[tile][group], s.bias[tile][0]);
            if constexpr (PARTS > 1)
                meet(group); /* before the context takes q's place */
        } else {
            if constexpr (FIRST == 1) {
                bias_q(s.q[tile][group], s.bias[tile][0],
                       static_cast<int>(threadIdx.x) % FOUR_WARPS + part * FOUR_WARPS);
                proxy_fence();
                meet(group);
            }
        }
    }

    static FP_DEVICE void clear(fragment<D, W> &o, row_state &state)
    {
#pragma unroll
        for (int i = 0; i < W / 8; i++)
            o[i][0][0] = o[i][0][1] = o[i][1][0] = o[i][1][1] = 0.0f;
        state.top[0] = state.top[1] = MASKED;
        state.sum[0] = state.sum[1] = 0.0f;
    }

    /* Arrives for a slot whose key block this warpgroup skips. */
    static FP_DEVICE void pass_over(u32 base, u32 slot, u32 phase)
    {
        mbarrier_wait(FP_AT(full_v) + slot * 8, phase);
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            mbarrier_arrive(FP_AT(empty_k) + slot * 8);
            mbarrier_arrive(FP_AT(empty_v) + slot * 8);
        }
    }

    /* The context of one key block; nothing runs beside it. */
    static FP_DEVICE void context_block(fragment<D, W> &o, const u32 (&p)[4][4], u32 base, u32 slot,
                                        u32 phase)
    {
        mbarrier_wait(FP_AT(full_v) + slot * 8, phase);
        proxy_fence();
        issue_context(o, p, (FP_LOW(v) + slot * (TILE / UNIT)) | BY_COLUMNS);
        wgmma_wait<0>();
        pin(o);
        mbarrier_arrive_warp(FP_AT(empty_v) + slot * 8);
    }

    /* Scores of the key block at `slot` and the context of the one at `held`, both in flight at
     * once: the softmax of the scores runs while the tensor cores compute the context. */
    static FP_DEVICE void overlap_blocks(fragment<D, BLOCK> &c, fragment<D, W> &o, row_state &state,
                                         u32 (&p)[4][4], u32 (&q)[W / 16][4], float (&rescale)[2],
                                         u32 low_q, u32 base, u32 slot, int group, u32 partial,
                                         u32 held, u32 held_phase)
    {
        mbarrier_wait(FP_AT(full_v) + held * 8, held_phase);
        proxy_fence();
        if constexpr (QREG)
            pin(q);
        issue_scores(c, q, low_q, (FP_LOW(k) + slot * (TILE / UNIT)) | BY_ROWS);
        issue_context(o, p, (FP_LOW(v) + held * (TILE / UNIT)) | BY_COLUMNS);
        wgmma_wait<1>();
        pin(c);
        if (partial & 1)
            mask(c, FP_AT(words) + (slot * G + group) * (BLOCK * 8));
        mbarrier_arrive_warp(FP_AT(empty_k) + slot * 8);
        const bool grown = raise(c, state, rescale);
        soften(c, state);
        pin(c);
        wgmma_wait<0>();
        pin(o);
        mbarrier_arrive_warp(FP_AT(empty_v) + held * 8);
        if (grown)
            scale_rows(o, rescale);
        pin(c); /* wgmma reads p until here */
        pack(p, c);
    }

    FP_DEVICE void consume()
    {
        const int wg = uniform(static_cast<int>(threadIdx.x) / FOUR_WARPS);
        const int group = C == 1 ? 0 : wg % G, part = PARTS == 1 ? 0 : wg / G;
        const u32 base = shared_address(&s);
        u32 slot = part, phase = 0; /* of the entry at hand */

        auto wait_k = [&]() { mbarrier_wait(FP_AT(full_k) + slot * 8, phase); };
        auto low_k = [&](u32 at) { return (FP_LOW(k) + at * (TILE / UNIT)) | BY_ROWS; };

#pragma unroll 1
        for (int n = 0; DRAWS || n == 0; n++) {
            const int tile = n % smem::TILES;
            mbarrier_wait(FP_AT(full_q) + tile * 8, n / 2 & 1);
            const u32 entries = static_cast<u32>(s.item[tile][0]);
            if (DRAWS && static_cast<int>(entries) < 0)
                return;
            u32 skip = s.marks[tile][0][group], partial = s.marks[tile][1][group];
            if constexpr (PARTS > 1)
                skip >>= part, partial >>= part;
            u32 q[W / 16][4];
            prepare_q(q, tile, group, part);
            const u32 low_q = (FP_LOW(q) + (tile * G + group) * (TILE / UNIT)) | BY_ROWS;

            fragment<D, BLOCK> c;
            fragment<D, W> o;
            row_state state;
            u32 p[4][4];
            float rescale[2];
            clear(o, state);

            u32 i = static_cast<u32>(part); /* the entry at hand */
            auto advance = [&]() {
                slot += PARTS;
                if (slot >= STAGES)
                    slot = part, phase ^= 1;
                i += PARTS;
                skip >>= PARTS;
                partial >>= PARTS;
            };
            /* Waits for k of the entry at hand; whether it is to be skipped. */
            auto seek = [&]() {
                wait_k();
                if (i % 32 == static_cast<u32>(part) && i >= 32) {
                    skip = s.later[i / 32 & 1][0][group] >> part;
                    partial = s.later[i / 32 & 1][1][group] >> part;
                }
                return (skip & 1) != 0;
            };
            auto soft_mask = [&]() {
                if (partial & 1)
                    mask(c, FP_AT(words) + (slot * G + group) * (BLOCK * 8));
            };
#pragma unroll 1
            while (i < entries) {
                if (seek()) {
                    pass_over(base, slot, phase);
                    advance();
                    continue;
                }
                proxy_fence();
                if constexpr (QREG)
                    pin(q);
                issue_scores(c, q, low_q, low_k(slot));
                wgmma_wait<0>();
                pin(c);
                soft_mask();
                mbarrier_arrive_warp(FP_AT(empty_k) + slot * 8);
                if (raise(c, state, rescale))
                    scale_rows(o, rescale);
                soften(c, state);
                pack(p, c);
                u32 held = slot, held_phase = phase;
                advance();
                if constexpr (OVERLAP) {
#pragma unroll 1
                    while (i < entries) {
                        if (seek())
                            break;
                        overlap_blocks(c, o, state, p, q, rescale, low_q, base, slot, group,
                                       partial, held, held_phase);
                        held = slot, held_phase = phase;
                        advance();
                    }
                }
                context_block(o, p, base, held, held_phase);
            }
            if constexpr (PARTS > 1)
                join(o, state, group, part);
            else if constexpr (!QREG)
                meet(group); /* before the context takes q's place */
            if (part == 0)
                store(o, state, tile, group);
            if constexpr (DRAWS)
                mbarrier_arrive_warp(FP_AT(empty_q) + tile * 8);
        }
    }

#undef FP_OFFSET
#undef FP_AT
#undef FP_LOW

    /* Warpgroups of other parts leave what they have; that of part 0 adds it up. */
    FP_DEVICE void join(fragment<D, W> &o, row_state &state, int group, int part)
    {
        const int tid = static_cast<int>(threadIdx.x) % FOUR_WARPS;
        constexpr int N = W / 2;
        float *sums = reinterpret_cast<float *>(&o);
        auto area = [&](int of) {
            return s.join + ((of - 1) * G + group) * smem::JOIN * FOUR_WARPS + tid;
        };
        if (part > 0) {
            float *to = area(part);
#pragma unroll
            for (int i = 0; i < N; i++)
                to[i * FOUR_WARPS] = sums[i];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                to[(N + r) * FOUR_WARPS] = state.top[r];
                to[(N + 2 + r) * FOUR_WARPS] = state.sum[r];
            }
            meet(group);
            return;
        }
        meet(group);
#pragma unroll 1
        for (int of = 1; of < PARTS; of++) {
            const float *from = area(of);
            float mine[2], other[2];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float top = from[(N + r) * FOUR_WARPS], most = fmaxf(top, state.top[r]);
                float down = shift(most);
                mine[r] = exp2_fast(state.top[r] * unit - down);
                other[r] = exp2_fast(top * unit - down);
                state.top[r] = most;
                state.sum[r] = state.sum[r] * mine[r] + from[(N + 2 + r) * FOUR_WARPS] * other[r];
            }
#pragma unroll
            for (int i = 0; i < N; i++)
                sums[i] = sums[i] * mine[i / 2 % 2] + from[i * FOUR_WARPS] * other[i / 2 % 2];
        }
    }

    FP_DEVICE void store(const fragment<D, W> &o, const row_state &state, int tile, int group)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) % FOUR_WARPS / 32;
        const int *item = s.item[tile];
        const int batch = item[1], head = item[2], block = item[3] + group, length = item[4];
        unsigned char *rows = s.q[tile][group] + warp * WARP_ROWS * 128;
        const u16 *bias = s.bias[tile][1] + lane % 4 * 2;
        float factor[2], some[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float sum = lanes_sum<4>(state.sum[r]);
            factor[r] = sum > 0.0f ? __fdividef(1.0f, sum) : 0.0f;
            some[r] = sum > 0.0f ? 1.0f : 0.0f;
        }
        /* Two columns of eight at a time: a lane gives the address of row lane % 16 of one. */
#pragma unroll
        for (int p = 0; p < W / 8; p += 2) {
            u32 x[4];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float b[2] = {0.0f, 0.0f};
                if constexpr (FIRST == 1)
                    D::unpack(*reinterpret_cast<const u32 *>(bias + (p + i) * 8), b[0], b[1]);
#pragma unroll
                for (int r = 0; r < 2; r++)
                    x[2 * i + r] = D::pack(o[p + i][r][0] * factor[r] + some[r] * b[0],
                                           o[p + i][r][1] * factor[r] + some[r] * b[1]);
            }
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                             shared_address(rows) + p / 8 * PANEL + lane % 16 * 128 +
                             ((p % 8 + lane / 16) ^ (lane % 8)) * 16),
                         "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                         : "memory");
        }
        __syncwarp();
        const i64 step = LAST == 6 ? a.heads * W : W;
        T *out = LAST == 6
                     ? tensor<D>(a, 7) + (static_cast<i64>(batch) * a.seq_len * a.heads + head) * W
                     : tensor<D>(a, 6) + (static_cast<i64>(batch) * a.heads + head) * a.seq_len * W;
        const int first = block * BLOCK + warp * WARP_ROWS;
#pragma unroll
        for (int i = 0; i < WARP_ROWS / 4; i++)
#pragma unroll
            for (int j = 0; j < PANELS; j++) {
                int r = i * 4 + lane / 8;
                uint4 x = *reinterpret_cast<const uint4 *>(rows + j * PANEL + r * 128 +
                                                           ((lane % 8) ^ (r % 8)) * 16);
                if (first + r < length)
                    *reinterpret_cast<uint4 *>(out + (first + r) * step + j * 64 + lane % 8 * 8) =
                        x;
            }
        __syncwarp();
    }
};

} // namespace fp

#endif
