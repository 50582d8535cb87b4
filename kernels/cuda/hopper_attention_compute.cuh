/* Compute: scores, softmax and context of the rows of a warpgroup of hopper_attention.cuh, from one
 * key block of its tile to the next. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_COMPUTE_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_COMPUTE_CUH

#include "hopper_attention_softmax.cuh"

namespace fp::hopper_attention
{

/* What a warpgroup holds of its rows. */
template <class S> struct block_rows {
    using D = typename S::D;
    u32 q[S::STEPS][4]; /* with QREG */
    u32 low_q;          /* else its descriptor */
    row_state state;
    fragment<D, BLOCK> c;
    fragment<D, S::W> o;
    u32 p[4][4];
    bool masked; /* of the key block at hand some keys are; which ones the lane's rows keep */
    u32 kept;
};

/* Makes q ready for wgmma, with its bias: in registers, or where it lies. */
template <class S> struct query {
    using D = typename S::D;
    static constexpr int W = S::W, STEPS = S::STEPS, SHARES = S::SHARES, PANEL = S::PANEL;

    typename S::smem &s;

    /* q of this warp's rows. */
    static FP_DEVICE void load(u32 (&q)[STEPS][4], const unsigned char *from, const u16 *bias)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) % FOUR_WARPS / 32;
        const unsigned char *rows = from + (warp * WARP_ROWS + lane % 16) * 128;
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            load_matrix(q[i], rows + i / 4 * PANEL + ((i % 4 * 2 + lane / 16) ^ (lane % 8)) * 16);
            if constexpr (S::BIAS)
#pragma unroll
                for (int j = 0; j < (i * 16 + 8 < W ? 4 : 2); j++)
                    q[i][j] = pairs<D>::add(q[i][j], *reinterpret_cast<const u32 *>(
                                                         bias + i * 16 + j / 2 * 8 + lane % 4 * 2));
        }
    }

    /* Adds the bias to q where it lies; tid: of all threads that share it. */
    static FP_DEVICE void add_bias(unsigned char *rows, const u16 *bias, int tid)
    {
#pragma unroll
        for (int i = tid; i < S::PANELS * 512; i += SHARES * FOUR_WARPS) {
            int panel = i / 512, row = i % 512 / 8, chunk = i % 8;
            if (!S::has(panel, chunk))
                continue;
            uint4 *at = reinterpret_cast<uint4 *>(rows + panel * PANEL + row * 128 +
                                                  (chunk ^ (row % 8)) * 16);
            uint4 x = *at, b = *reinterpret_cast<const uint4 *>(bias + panel * 64 + chunk * 8);
            *at = make_uint4(pairs<D>::add(x.x, b.x), pairs<D>::add(x.y, b.y),
                             pairs<D>::add(x.z, b.z), pairs<D>::add(x.w, b.w));
        }
    }

    FP_DEVICE void prepare(u32 (&q)[STEPS][4], int tile, int group, int share) const
    {
        if constexpr (S::QREG) {
            load(q, s.q[tile][group], s.bias[tile][0]);
            if constexpr (SHARES > 1)
                S::meet(group); /* before the context takes q's place */
        } else {
            if constexpr (!S::DRAWS)
                S::meet(group); /* who shares the rows has copied them */
            if constexpr (S::BIAS)
                add_bias(s.q[tile][group], s.bias[tile][0],
                         static_cast<int>(threadIdx.x) % FOUR_WARPS + share * FOUR_WARPS);
            if constexpr (S::BIAS || S::LANDS) {
                proxy_fence();
                S::meet(group);
            }
        }
    }
};

/* A warpgroup that computes: its place among the others, and the entry at hand.  slot, phase: of
 * the ring, which goes on from tile to tile. */
template <class S> struct compute {
    using D = typename S::D;
    using smem = typename S::smem;
    using rows = block_rows<S>;
    static constexpr int W = S::W, G = S::G, SHARES = S::SHARES, STAGES = S::STAGES;
    static constexpr int STRIDE = SHARES * S::CLUSTER; /* who share a tile */
    static constexpr int PANEL = S::PANEL, TILE = S::TILE;

    smem &s;
    int group, share;
    u32 base, first; /* of shared memory; of its entries */
    u32 &slot, &phase;
    u32 i, entries;    /* the entry, and how many the tile has */
    u32 skip, partial; /* bits of the entry and of the entries after it */
    bool rare;         /* the entry is skipped, or its bits have yet to be read */

    FP_DEVICE compute(smem &shared, int wg, u32 &ring_slot, u32 &ring_phase)
        : s(shared), group(S::C == 1 ? 0 : wg % G), share(SHARES == 1 ? 0 : wg / G),
          base(shared_address(&s)), first(S::CLUSTER > 1 ? cluster_rank<S::CLUSTER>() : share),
          slot(ring_slot), phase(ring_phase)
    {
    }

    /* ---- matrices in shared memory -------------------------------------------------------------
     *
     * By the low half of their descriptor, in units of 16 bytes; the high half is the same for all:
     * 1024 bytes between 8 rows, 128-byte swizzle.  A descriptor has room for an address below
     * MATRICES; in a cluster addresses have the thread block's number above. */

    static constexpr u32 MATRICES = 1u << 18, UNIT = 16, BY_ROWS = 1u << 16,
                         BY_COLUMNS = PANEL / UNIT << 16;

    /* NVRTC has no offsetof. */
    template <class Field> static FP_DEVICE u32 offset(Field smem::*field)
    {
        return static_cast<u32>(reinterpret_cast<u64>(&(static_cast<smem *>(nullptr)->*field)));
    }

    /* The address of a field; the same as the low half of a descriptor. */
    template <class Field> FP_DEVICE u32 at(Field smem::*field) const
    {
        return base + offset(field);
    }

    template <class Field> FP_DEVICE u32 low(Field smem::*field) const
    {
        return base % MATRICES / UNIT + offset(field) / UNIT;
    }

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

    /* ---- products ---------------------------------------------------------------------------- */

    FP_DEVICE void issue_scores(rows &r) const
    {
        const u32 low_k = (low(&smem::k) + slot * (TILE / UNIT)) | BY_ROWS;
        wgmma_fence();
        if constexpr (S::QREG) {
            wgmma<D, BLOCK>::nt_set(r.c, r.q[0], columns(low_k, 0));
#pragma unroll
            for (int i = 1; i < S::STEPS; i++)
                wgmma<D, BLOCK>::nt(r.c, r.q[i], columns(low_k, i));
        } else {
            wgmma<D, BLOCK>::nt_set(r.c, columns(r.low_q, 0), columns(low_k, 0));
#pragma unroll
            for (int i = 1; i < S::STEPS; i++)
                wgmma<D, BLOCK>::nt(r.c, columns(r.low_q, i), columns(low_k, i));
        }
        wgmma_commit();
    }

    FP_DEVICE void issue_context(rows &r, u32 held) const
    {
        const u32 low_v = (low(&smem::v) + held * (TILE / UNIT)) | BY_COLUMNS;
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++)
            wgmma<D, W>::nn(r.o, r.p[i], matrix(low_v + i * (2048 / UNIT)));
        wgmma_commit();
    }

    /* ---- steps ------------------------------------------------------------------------------- */

    /* Whether the marks of the entry at hand, and of those after it, have yet to be read. */
    FP_DEVICE bool begins_marks() const
    {
        return i % 32 == first && i >= 32;
    }

    FP_DEVICE void advance()
    {
        slot += SHARES;
        if (slot >= STAGES)
            slot = share, phase ^= 1;
        i += STRIDE;
        skip >>= STRIDE;
        partial >>= STRIDE;
        rare = (skip & 1) != 0 || begins_marks();
    }

    FP_DEVICE void await_k() const
    {
        mbarrier_wait(at(&smem::full_k) + slot * 8, phase);
    }

    /* Of a rare entry: whether it is to be skipped. */
    FP_DEVICE bool skips()
    {
        const int mine = S::C == 1 ? 0 : group; /* a constant makes one access of two */
        if (begins_marks()) {
            skip = uniform(s.later[i / 32 & 1][0][mine]) >> first;
            partial = uniform(s.later[i / 32 & 1][1][mine]) >> first;
        }
        return (skip & 1) != 0;
    }

    /* Where JOINED each thread has read v. */
    FP_DEVICE void leave_v(u32 held) const
    {
        if constexpr (S::JOINED)
            mbarrier_arrive(at(&smem::empty_v) + held * 8);
        else
            mbarrier_arrive_warp(at(&smem::empty_v) + held * 8);
    }

    /* Arrives for the key block at hand, which this warpgroup skips. */
    FP_DEVICE void pass_over() const
    {
        mbarrier_wait(at(&smem::full_v) + slot * 8, phase);
        mbarrier_arrive(at(&smem::empty_k) + slot * 8);
        leave_v(slot);
    }

    /* Adds the score bias, if there is one, and masks. */
    FP_DEVICE void mask(rows &r) const
    {
        r.masked = (partial & 1) != 0;
        if constexpr (S::SCORE_BIAS)
            softmax<S>::add_score_bias(r.c, at(&smem::token) + slot * (S::DISTANCES * 4), group);
        if (partial & 1)
            r.kept = softmax<S>::mask(r.c, at(&smem::words) + (slot * G + group) * (BLOCK * 8));
    }

    /* Joined rows: what is not finite in v of one sequence must not reach another one, although 0
     * times NaN is NaN.  Such rows of v become zeros, and the context of who keeps them NaN. */
    FP_DEVICE void contain(rows &r, u32 held) const
    {
        constexpr u32 EXPONENTS = pairs<D>::EXPONENTS, LOWEST = pairs<D>::LOWEST;
        const u32 tid = threadIdx.x % FOUR_WARPS, row = tid / 2;
        unsigned char *line = s.v[held] + row * S::LINE;
        u32 sums = 0;
#pragma unroll
        for (int j = 0; j < S::PANELS * 4; j++) {
            const u32 chunk = tid % 2 * 4 + j % 4; /* eight threads: all banks */
            if (S::has(j / 4, chunk)) {
                const uint4 x =
                    *reinterpret_cast<const uint4 *>(line + j / 4 * PANEL + (chunk ^ row % 8) * 16);
                sums |= ((x.x & EXPONENTS) + LOWEST) | ((x.y & EXPONENTS) + LOWEST) |
                        ((x.z & EXPONENTS) + LOWEST) | ((x.w & EXPONENTS) + LOWEST);
            }
        }
        u32 bad = sums & 0x80008000, any;
        bad |= __shfl_xor_sync(0xffffffffu, bad, 1);
        asm volatile("{.reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.or.pred q, 1, %2, p; "
                     "selp.u32 %0, 1, 0, q;}"
                     : "=r"(any)
                     : "r"(bad), "n"(FOUR_WARPS)
                     : "memory");
        if (any != 0)
            clear_values(r, line, row, bad != 0);
    }

    /* row: of v, by two threads; `bad` ones are cleared.  Keys are dealt out (block_copy::place).
     */
    FP_DEVICE void clear_values(rows &r, unsigned char *line, u32 row, bool bad) const
    {
        u32 *keys = &s.later[0][0][0]; /* a bit each: joined tiles have at most 32 entries */
        const u32 tid = threadIdx.x % FOUR_WARPS, key = row % 8 / 2 * 16 + row / 8 * 2 + row % 2;
        if (tid < 2)
            keys[tid] = 0;
        S::meet(group);
        if (bad && tid % 2 == 0)
            atomicOr(keys + key / 32, 1u << key % 32);
        for (int j = 0; bad && j < S::PANELS * 4; j++)
            *reinterpret_cast<uint4 *>(line + j / 4 * PANEL + (j % 4 * 2 + tid % 2) * 16) =
                make_uint4(0, 0, 0, 0);
        proxy_fence();
        S::meet(group);
        const u32 of_lane = keys[tid % 4 / 2] >> tid % 2 * 16 & 0xffff;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            u32 kept = r.kept >> 16 * i & of_lane;
            kept |= __shfl_xor_sync(0xffffffffu, kept, 1);
            kept |= __shfl_xor_sync(0xffffffffu, kept, 2);
#pragma unroll
            for (int p = 0; p < W / 8; p++)
                if (kept != 0)
                    r.o[p][i][0] = r.o[p][i][1] = __int_as_float(0x7fffffff);
        }
    }

    /* Copies that have landed become visible to products. */
    static FP_DEVICE void see_copies()
    {
        if constexpr (!S::LANDS)
            proxy_fence();
    }

    /* The probabilities of the key block at hand; nothing runs beside it. */
    FP_DEVICE void score_block(rows &r) const
    {
        see_copies();
        if constexpr (S::QREG)
            pin(r.q);
        issue_scores(r);
        wgmma_wait<0>();
        pin(r.c);
        mask(r);
        mbarrier_arrive(at(&smem::empty_k) + slot * 8);
        float top[2];
        if (softmax<S>::grows(r.c, r.state, top))
            softmax<S>::raise(top, r.state, r.o);
        if constexpr (!S::OVERLAP)
            mbarrier_wait(at(&smem::full_v) + slot * 8, phase);
        softmax<S>::soften(r.p, r.c, r.state);
    }

    /* The context of the key block at `held`; nothing runs beside it. */
    FP_DEVICE void context_block(rows &r, u32 held, u32 held_phase) const
    {
        if constexpr (S::OVERLAP)
            mbarrier_wait(at(&smem::full_v) + held * 8, held_phase);
        if constexpr (S::JOINED)
            if (r.masked)
                contain(r, held);
        see_copies();
        issue_context(r, held);
        wgmma_wait<0>();
        pin(r.o);
        leave_v(held);
    }

    /* Probabilities of the key block at hand and the context of the one at `held`, both in flight
     * at once: maxima are found while the tensor cores compute the context.  All warps of a
     * warpgroup must wait for products at the same place: not where `grown` alone is true. */
    FP_DEVICE void overlap_blocks(rows &r, u32 held, u32 held_phase) const
    {
        mbarrier_wait(at(&smem::full_v) + held * 8, held_phase);
        see_copies();
        if constexpr (S::QREG)
            pin(r.q);
        issue_scores(r);
        issue_context(r, held);
        wgmma_wait<1>();
        pin(r.c);
        mask(r);
        mbarrier_arrive(at(&smem::empty_k) + slot * 8);
        float top[2];
        const bool grown = softmax<S>::grows(r.c, r.state, top);
        wgmma_wait<0>();
        pin(r.o);
        leave_v(held);
        if (grown)
            softmax<S>::raise(top, r.state, r.o);
        softmax<S>::soften(r.p, r.c, r.state);
    }

    /* Computes its entries of a tile, which the loading warps have announced. */
    FP_DEVICE void run(rows &r, int tile)
    {
        entries = uniform(static_cast<u32>(s.item[tile].entries));
        const int mine = S::C == 1 ? 0 : group; /* as in skips() */
        skip = uniform(s.marks[tile][0][mine]) >> first;
        partial = uniform(s.marks[tile][1][mine]) >> first;
        query<S>{s}.prepare(r.q, tile, group, share);
        r.low_q = (low(&smem::q) + (tile * G + group) * (TILE / UNIT)) | BY_ROWS;
        softmax<S>::clear(r.o, r.state);
        i = first;
        rare = (skip & 1) != 0;
#pragma unroll 1
        while (i < entries) {
            await_k();
            if (rare && skips()) {
                pass_over();
                advance();
                continue;
            }
            score_block(r);
            u32 held = slot, held_phase = phase;
            advance();
            if constexpr (S::OVERLAP) {
#pragma unroll 1
                while (i < entries) {
                    await_k();
                    if (rare && skips())
                        break;
                    overlap_blocks(r, held, held_phase);
                    held = slot, held_phase = phase;
                    advance();
                }
            }
            context_block(r, held, held_phase);
        }
    }
};

} // namespace fp::hopper_attention

#endif
