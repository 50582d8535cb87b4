/* Whole attention on Hopper's wgmma (sm_90a; fp16, bf16; W = 64, 128): operators 2..5 of all heads,
 * with 1 before and 6 after, by lists of 64x64 blocks.
 *
 * A tile is G neighbouring blocks of 64 query rows of one head.  C warpgroups of a thread block
 * compute: warpgroup w has the rows of block w % G and takes every (C/G)-th key block from w / G
 * on.  Where C/G > 1, these join their partial results in shared memory.  P more warps load: they
 * fill a ring of STAGES key blocks (k, v, row words) for all warpgroups, and q of the next tile,
 * row by row with cp.async in the 128-byte swizzle.
 *
 * The mbarriers full_* say that copies have landed; the mbarriers empty_* say that every warp that
 * computes has read them.  A warpgroup whose word of an entry says "skip" arrives all the same.
 * Two bits of each of 32 entries (skip, partial) tell a warpgroup what to do with it.
 *
 * Softmax is online, with 2^x and the scale folded in.  Maxima follow lazily, as in
 * FlashAttention-4: sums and context shrink only when a row's maximum grew by more than LAZY, for
 * the whole warp.  Until then 2^x gives up to 2^LAZY, which fp16 holds.
 *
 *   FIRST 1, 2; LAST 5, 6: as in attention.cuh
 *   DRAWS    thread blocks draw their tiles from a counter; else each has one
 *   OVERLAP  the next block's scores are issued before this one's context, so that softmax runs
 *            beside it (FlashAttention-3, Shah et al. 2024); else one after another
 *   QREG     q stays in registers, else in shared memory
 *   SHOWS    the warps that load wait for their copies and fence them for wgmma; else each warp
 *            that computes fences what has landed */
#ifndef FUSEPLAN_CUDA_ATTENTION_WGMMA_CUH
#define FUSEPLAN_CUDA_ATTENTION_WGMMA_CUH

#include "hopper.cuh"

namespace fp
{

/* The same in all lanes, and the compiler knows. */
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
    u32 later[2][2][G];     /* of 32 entries further on, by turns */
    int drawn[2];
    u64 full_k[STAGES], full_v[STAGES], empty_k[STAGES], empty_v[STAGES];
    u64 full_q[TILES], empty_q[TILES];
};

template <class D, int W, int FIRST, int LAST, int C, int G, int STAGES, int P, bool DRAWS,
          bool OVERLAP, bool QREG, bool SHOWS>
struct attention_wgmma {
    static_assert(is_half<D> && (W == 64 || W == 128), "a row is one or two lines of 128 bytes");
    static_assert(C % G == 0 && C / G <= 2, "the rows of a block are of one or two warpgroups");
    static_assert(!QREG || OVERLAP, "ptxas 13.0.88 puts p over q, which the next step needs");
    static_assert(!OVERLAP || STAGES >= 3, "a block is shown when the next one is asked for");
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
        if (computes && threadIdx.x < 32) {
            /* Brings all parameters near at once. */
            const int *words = reinterpret_cast<const int *>(&a);
            int x = words[threadIdx.x * 16 % (sizeof(fp_args) / 4)];
            asm volatile("" ::"r"(x));
        }
        place p = {};
        entry e = {};
        if (!computes && static_cast<int>(blockIdx.x) < total())
            find(static_cast<int>(blockIdx.x), p, e);
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                mbarrier_init(shared_address(&s.full_k[i]), SHOWS ? P : 32 * P + 1);
                mbarrier_init(shared_address(&s.full_v[i]), SHOWS ? P : 32 * P);
                mbarrier_init(shared_address(&s.empty_k[i]), 4 * G);
                mbarrier_init(shared_address(&s.empty_v[i]), 4 * G);
            }
            for (int i = 0; i < smem::TILES; i++) {
                mbarrier_init(shared_address(&s.full_q[i]), SHOWS ? P : 32 * P + 1);
                mbarrier_init(shared_address(&s.empty_q[i]), 4 * C);
            }
        }
        __syncthreads();
        if (computes)
            consume();
        else
            produce(p, e);
    }

    /* ---- producing --------------------------------------------------------------------------- */

    struct entry {
        int key_block, word[3];
    };

    struct place {
        int block, entries, rest, batch, head;
    };

    /* x / y, for what a float holds. */
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

    /* Tiles of all lists and heads. */
    FP_DEVICE int total() const
    {
        return (a.mask.blocks + G - 1) / G * a.batch * a.heads;
    }

    /* Tile t, and this lane's entry of its first 32.  Where the batch shares one list, each of its
     * tiles stands for all batch rows and heads. */
    FP_DEVICE void find(int t, place &p, entry &e) const
    {
        const bool shared_list = a.mask.lists == 1;
        const int each = shared_list ? a.batch * a.heads : a.heads;
        const int tile = divide(t, each), pair = t - tile * each;
        int4 x = reinterpret_cast<const int4 *>(a.tiles.tile)[tile];
        e = load_entry(a.tiles.head, tile * 32 + static_cast<int>(threadIdx.x % 32));
        p.batch = shared_list ? divide(pair, a.heads) : x.x;
        p.head = shared_list ? pair - p.batch * a.heads : pair;
        p.block = x.y;
        p.entries = x.z;
        p.rest = x.w;
    }

    /* 64 rows from row `first` of the head, in whose row 0 `from` is this thread's place; rows past
     * the length become zeros, so that 0 * v is 0. */
    static FP_DEVICE void fill(u32 to, const unsigned char *from, i64 pitch, int first, int length)
    {
        const int tid = static_cast<int>(threadIdx.x) - C * FOUR_WARPS, r0 = tid / 8;
        const u32 at = to + r0 * 128 + ((tid % 8) ^ (r0 % 8)) * 16;
        const unsigned char *p = from + (first + r0) * pitch;
        const u32 hop = static_cast<u32>(4 * P * pitch);
        if (first + BLOCK <= length) {
#pragma unroll
            for (int i = 0; i < BLOCK / (4 * P); i++) {
                const unsigned char *row; /* none waits for the one before */
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

    /* Two bits of each of 32 entries. */
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

    FP_DEVICE int draw() const
    {
        return static_cast<int>(gridDim.x + atomicInc(a.sync + FP_SYNC_DRAWN, total() - 1));
    }

    /* All but the last `pending` groups of copies have landed: says so. */
    template <int pending> static FP_DEVICE void landed(u32 barrier)
    {
        copy_wait<pending>();
        proxy_fence();
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            mbarrier_arrive(barrier);
    }

    /* What thread 0 of those that produce drew, to all of them. */
    FP_DEVICE int share(int drawn, int n, int tid) const
    {
        if constexpr (P == 1)
            return __shfl_sync(0xffffffffu, drawn, 0);
        if (tid == 0)
            s.drawn[n & 1] = drawn;
        asm volatile("bar.sync 15, %0;" ::"n"(32 * P) : "memory");
        return s.drawn[n & 1];
    }

    FP_DEVICE void produce(place p, entry e)
    {
        const int tid = static_cast<int>(threadIdx.x) - C * FOUR_WARPS, lane = tid % 32;
        const int warp = tid / 32, hidden = a.heads * W, end = total();
        u32 slot = 0, phase = 1;
        int t = static_cast<int>(blockIdx.x);
#pragma unroll 1
        for (int n = 0;; n++) {
            if (!DRAWS && n == 1)
                return;
            const int at = n % smem::TILES;
            const u32 full_q = shared_address(&s.full_q[at]);
            if constexpr (DRAWS)
                mbarrier_wait(shared_address(&s.empty_q[at]), (n / 2 & 1) ^ 1);
            int *item = s.item[at];
            if (t >= end) {
                if (tid == 0)
                    item[0] = -1;
                if constexpr (SHOWS) {
                    landed<0>(full_q);
                } else {
                    if (tid == 0)
                        mbarrier_arrive(full_q);
                    mbarrier_arrive_copies(full_q);
                }
                return;
            }
            const int length = a.lengths ? a.lengths[p.batch] : a.seq_len;
            const unsigned char *q, *k, *v;
            i64 pitch;
            if constexpr (FIRST == 1) {
                pitch = 6 * hidden;
                q = reinterpret_cast<const unsigned char *>(
                    tensor<D>(a, 1) + static_cast<i64>(p.batch) * a.seq_len * 3 * hidden +
                    p.head * W + tid % 8 * 8);
                k = q + 2 * hidden;
                v = k + 2 * hidden;
            } else {
                const i64 all = static_cast<i64>(a.batch) * hidden * a.seq_len;
                pitch = 2 * W;
                q = reinterpret_cast<const unsigned char *>(
                    tensor<D>(a, 2) +
                    (static_cast<i64>(p.batch) * a.heads + p.head) * a.seq_len * W + tid % 8 * 8);
                k = q + 2 * all;
                v = k + 2 * all;
            }
#pragma unroll
            for (int g = 0; g < G; g++)
                fill(shared_address(s.q[at][g]), q, pitch, (p.block + g) * BLOCK, length);
            if (FIRST == 1 && tid < W / 4) {
                int which = tid / (W / 8), col = tid % (W / 8) * 8;
                copy_16(shared_address(&s.bias[at][which][col]),
                        weight<D>(a, 1) + which * 2 * hidden + p.head * W + col);
            }
            write_marks(s.marks[at], e, lane < p.entries, tid == 0);
            if (tid == 0) {
                item[0] = p.entries, item[1] = p.batch, item[2] = p.head;
                item[3] = p.block, item[4] = length;
                if constexpr (!SHOWS)
                    mbarrier_arrive(full_q);
            }
            if constexpr (SHOWS)
                copy_commit();
            else
                mbarrier_arrive_copies(full_q);

            const int entries = p.entries;
            /* A tile is drawn late, so that long ones go to who is free first. */
            int next = end;
            if constexpr (DRAWS)
                if (tid == 0 && entries == 0)
                    next = draw();
#pragma unroll 1
            for (int i = 0; i < entries; i++) {
                if (i % 32 == 0 && i > 0) {
                    e = load_entry(a.tiles.rest, p.rest + i - 32 + lane);
                    write_marks(s.later[i / 32 & 1], e, i + lane < entries, tid == 0);
                }
                int word[G];
                const int key_block = __shfl_sync(0xffffffffu, e.key_block, i);
#pragma unroll
                for (int g = 0; g < G; g++)
                    word[g] = __shfl_sync(0xffffffffu, e.word[g], i);
                const u32 full_k = shared_address(&s.full_k[slot]);
                mbarrier_wait(shared_address(&s.empty_k[slot]), phase);
                fill(shared_address(s.k[slot]), k, pitch, key_block * BLOCK, length);
#pragma unroll
                for (int g = 0; g < G; g++)
                    if (word[g] >= 0 && warp == g % P)
                        copy_16(shared_address(s.words[slot][g]) + lane * 16,
                                a.mask.words + static_cast<i64>(word[g]) * BLOCK + lane * 2);
                if constexpr (SHOWS) {
                    copy_commit();
                } else {
                    if (tid == 0)
                        mbarrier_arrive(full_k);
                    mbarrier_arrive_copies(full_k);
                }
                mbarrier_wait(shared_address(&s.empty_v[slot]), phase);
                fill(shared_address(s.v[slot]), v, pitch, key_block * BLOCK, length);
                if constexpr (SHOWS) {
                    copy_commit();
                    if (i == 1)
                        landed<4>(full_q);
                    if (i > 0) {
                        const u32 before = slot == 0 ? STAGES - 1 : slot - 1;
                        landed<3>(shared_address(&s.full_k[before]));
                        landed<2>(shared_address(&s.full_v[before]));
                    }
                } else {
                    mbarrier_arrive_copies(shared_address(&s.full_v[slot]));
                }
                if constexpr (DRAWS)
                    if (tid == 0 && i == max(entries - 2, 0))
                        next = draw();
                if (++slot == STAGES)
                    slot = 0, phase ^= 1;
            }
            if constexpr (SHOWS) {
                if (entries == 0)
                    landed<0>(full_q);
                if (entries == 1)
                    landed<2>(full_q);
                if (entries > 0) {
                    const u32 before = slot == 0 ? STAGES - 1 : slot - 1;
                    landed<1>(shared_address(&s.full_k[before]));
                    landed<0>(shared_address(&s.full_v[before]));
                }
            }
            if constexpr (DRAWS) {
                t = share(next, n, tid);
                if (t < end)
                    find(t, p, e);
            }
        }
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

    static FP_DEVICE void release(u32 barrier)
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            mbarrier_arrive(barrier);
    }

#define FP_AT(field)  (base + static_cast<u32>(__builtin_offsetof(smem, field)))
#define FP_LOW(field) (base / UNIT + static_cast<u32>(__builtin_offsetof(smem, field)) / UNIT)

    FP_DEVICE void consume()
    {
        const int wg = uniform(static_cast<int>(threadIdx.x) / FOUR_WARPS);
        const int group = C == 1 ? 0 : wg % G, part = PARTS == 1 ? 0 : wg / G;
        const u32 base = shared_address(&s);
        u32 slot = part, phase = 0; /* of the entry at hand */

        auto wait_k = [&]() { mbarrier_wait(FP_AT(full_k) + slot * 8, phase); };
        auto wait_v = [&](u32 at, u32 its_phase) {
            mbarrier_wait(FP_AT(full_v) + at * 8, its_phase);
        };
        auto low_k = [&](u32 at) { return (FP_LOW(k) + at * (TILE / UNIT)) | BY_ROWS; };
        auto low_v = [&](u32 at) { return (FP_LOW(v) + at * (TILE / UNIT)) | BY_COLUMNS; };

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
            const u32 low_q = (FP_LOW(q) + (tile * G + group) * (TILE / UNIT)) | BY_ROWS;

            fragment<D, BLOCK> c;
            fragment<D, W> o;
            row_state state;
            u32 p[4][4];
            float rescale[2];
#pragma unroll
            for (int i = 0; i < W / 8; i++)
                o[i][0][0] = o[i][0][1] = o[i][1][0] = o[i][1][1] = 0.0f;
            state.top[0] = state.top[1] = MASKED;
            state.sum[0] = state.sum[1] = 0.0f;

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
                    wait_v(slot, phase);
                    __syncwarp();
                    if (threadIdx.x % 32 == 0) {
                        mbarrier_arrive(FP_AT(empty_k) + slot * 8);
                        mbarrier_arrive(FP_AT(empty_v) + slot * 8);
                    }
                    advance();
                    continue;
                }
                if constexpr (!SHOWS)
                    proxy_fence();
                if constexpr (QREG)
                    pin(q);
                issue_scores(c, q, low_q, low_k(slot));
                wgmma_wait<0>();
                pin(c);
                soft_mask();
                release(FP_AT(empty_k) + slot * 8);
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
                        wait_v(held, held_phase);
                        if constexpr (!SHOWS)
                            proxy_fence();
                        if constexpr (QREG)
                            pin(q);
                        issue_scores(c, q, low_q, low_k(slot));
                        issue_context(o, p, low_v(held));
                        wgmma_wait<1>();
                        pin(c);
                        soft_mask();
                        release(FP_AT(empty_k) + slot * 8);
                        const bool grown = raise(c, state, rescale);
                        soften(c, state);
                        pin(c);
                        wgmma_wait<0>();
                        pin(o);
                        release(FP_AT(empty_v) + held * 8);
                        if (grown)
                            scale_rows(o, rescale);
                        pin(c); /* p is not free before */
                        pack(p, c);
                        held = slot, held_phase = phase;
                        advance();
                    }
                }
                wait_v(held, held_phase);
                if constexpr (!SHOWS)
                    proxy_fence();
                issue_context(o, p, low_v(held));
                wgmma_wait<0>();
                pin(o);
                release(FP_AT(empty_v) + held * 8);
            }
            if constexpr (PARTS > 1)
                join(o, state, group, part);
            else if constexpr (!QREG)
                meet(group); /* before the context takes q's place */
            if (part == 0)
                store(o, state, tile, group);
            if constexpr (DRAWS)
                release(FP_AT(empty_q) + tile * 8);
        }
    }

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
