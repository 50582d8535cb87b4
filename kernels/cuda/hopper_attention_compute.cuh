/* Compute: scores, softmax and context of the rows of a warpgroup of hopper_attention.cuh, from one
 * key block of its tile to the next. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_COMPUTE_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_COMPUTE_CUH

#include "hopper_attention_joined.cuh"
#include "hopper_attention_softmax.cuh"

namespace fp::hopper_attention
{

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
            if constexpr (S::FOLDS)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    float lo, hi;
                    D::unpack(q[i][j], lo, hi);
                    q[i][j] = D::pack(lo * S::unit, hi * S::unit);
                }
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
    u32 i, entries;          /* the entry, and how many the tile has */
    u32 skip, partial;       /* bits of the entry and of the entries after it */
    u32 k_at, low_k;         /* of the entry's k: its mbarrier, its descriptor */
    u32 last_v, last_parity; /* OVERLAP: the mbarrier of v of the tile's last entry */

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
        wgmma_fence();
        if constexpr (S::QREG) {
            if constexpr (S::FOLDS)
                wgmma<D, BLOCK>::nt(r.c, r.q[0], columns(low_k, 0));
            else
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
        /* All 16 keys of a step take the same ones, which are nearer to the next step's. */
        constexpr u32 KEYS = 2048 / UNIT, NEXT = S::FOLDS ? KEYS - (KEYS << 16) : KEYS;
        const u32 v = low(&smem::v) + held * (TILE / UNIT);
        const u32 low_v = v | (S::FOLDS ? (low(&smem::ones) - v) << 16 : BY_COLUMNS);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++)
            wgmma<D, S::CONTEXT>::nn(r.o, r.p[i], matrix(low_v + i * NEXT));
        wgmma_commit();
    }

    /* ---- steps ------------------------------------------------------------------------------- */

    /* What the next products wait for, computed ahead. */
    FP_DEVICE void locate()
    {
        k_at = at(&smem::full_k) + slot * 8;
        low_k = (low(&smem::k) + slot * (TILE / UNIT)) | BY_ROWS;
    }

    FP_DEVICE void advance()
    {
        slot += SHARES;
        if (slot >= STAGES)
            slot = share, phase ^= 1;
        locate();
        i += STRIDE;
        skip = __funnelshift_r(skip, ~0u, STRIDE);
        partial >>= STRIDE;
    }

    FP_DEVICE void await_k() const
    {
        mbarrier_wait(k_at, phase);
    }

    /* Whether the entry at hand may be one to skip: it is, or its bits, and those of the entries
     * after it, have yet to be read. */
    FP_DEVICE bool marked() const
    {
        return (skip & 1) != 0;
    }

    /* Of a marked entry: whether it is. */
    FP_DEVICE bool skips()
    {
        const int mine = S::C == 1 ? 0 : group; /* a constant makes one access of two */
        if (i % 32 == first && i >= 32)
            set_marks(s.later[i / 32 & 1], mine);
        return marked();
    }

    FP_DEVICE void set_marks(const u32 (&of)[2][G], int mine)
    {
        skip = __funnelshift_r(uniform(of[0][mine]), ~0u, first); /* behind the last one: set */
        partial = uniform(of[1][mine]) >> first;
    }

    /* Where JOINED each thread has read v. */
    FP_DEVICE void leave_v(u32 held) const
    {
        if constexpr (S::JOINED)
            mbarrier_arrive(at(&smem::empty_v) + held * 8);
        else
            mbarrier_arrive_warp(at(&smem::empty_v) + held * 8);
    }

    /* OVERLAP: waits for v of the entry in front of the one at hand. */
    FP_DEVICE void await_v_before() const
    {
        if (i < entries)
            await_k();
        else
            mbarrier_wait(last_v, last_parity);
    }

    /* Goes on to the next entry.  No warpgroup gives v back before it has landed: else a fast one
     * could do so a second time in the place of a slow one. */
    FP_DEVICE void pass_over()
    {
        const u32 passed = slot;
        mbarrier_arrive(at(&smem::empty_k) + slot * 8);
        if constexpr (!S::OVERLAP)
            mbarrier_wait(at(&smem::full_v) + slot * 8, phase);
        advance();
        if constexpr (S::OVERLAP)
            await_v_before();
        leave_v(passed);
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

    /* Whether to raise the maxima.  With three warpgroups floats are compared where keys are
     * masked: blocks without masked keys become 1 % faster so, as ptxas orders them differently.
     * With FOLDS a masked score is below every limit but a row's first. */
    FP_DEVICE bool grows(const rows &r) const
    {
        return S::C == 3 && !S::FOLDS && partial & 1 ? softmax<S>::exceeds(r.c, r.state)
                                                     : softmax<S>::grows(r.c, r.state);
    }

    /* Copies that have landed become visible to products. */
    static FP_DEVICE void see_copies()
    {
        if constexpr (!S::LANDS && !S::TMA)
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
        if (S::JOINED || grows(r)) /* nearly all joined blocks are masked: raise() looks itself */
            softmax<S>::raise(r.c, r.state, r.o);
        if constexpr (!S::OVERLAP)
            mbarrier_wait(at(&smem::full_v) + slot * 8, phase);
        softmax<S>::soften(r.p, r.c, r.state, entries >> 31);
    }

    /* The context of the key block at `held`, whose v has landed; nothing runs beside it. */
    FP_DEVICE void context_block(rows &r, u32 held) const
    {
        if constexpr (S::JOINED)
            if (r.masked)
                joined_values<S>{s}.contain(r, held);
        see_copies();
        issue_context(r, held);
        wgmma_wait<0>();
        pin(r.o);
        leave_v(held);
    }

    /* Probabilities of the key block at hand and the context of the one at `held`, both in flight
     * at once: maxima are found while the tensor cores compute the context.  v at `held` has
     * landed, as k at hand has, which was loaded after it.  All warps of a warpgroup must wait for
     * products at the same place: not where `grown` alone is true. */
    FP_DEVICE void overlap_blocks(rows &r, u32 &held)
    {
        see_copies();
        if constexpr (S::QREG)
            pin(r.q);
        issue_scores(r);
        issue_context(r, held);
        wgmma_wait<1>();
        pin(r.c);
        mask(r);
        mbarrier_arrive(at(&smem::empty_k) + slot * 8);
        const bool grown = grows(r);
        wgmma_wait<0>();
        pin(r.o);
        leave_v(held);
        if (grown)
            softmax<S>::raise(r.c, r.state, r.o);
        held = slot;
        advance();
        softmax<S>::soften(r.p, r.c, r.state, entries >> 31);
    }

    /* Computes its entries of a tile, which the loading warps have announced.  tile: its place;
     * parity: of the mbarriers of this place. */
    FP_DEVICE void run(rows &r, int tile, u32 parity)
    {
        entries = uniform(static_cast<u32>(s.item[tile].entries));
        const int mine = S::C == 1 ? 0 : group; /* as in skips() */
        set_marks(s.marks[tile], mine);
        query<S>{s}.prepare(r.q, tile, group, share);
        r.low_q = (low(&smem::q) + (tile * G + group) * (TILE / UNIT)) | BY_ROWS;
        softmax<S>::clear(r.c, r.o, r.state);
        i = first;
        locate();
        last_v = at(&smem::full_v) + tile * 8, last_parity = parity;
#pragma unroll 1
        while (i < entries) {
            await_k();
            if (marked() && skips()) {
                pass_over();
                continue;
            }
            score_block(r);
            u32 held = slot;
            advance();
            if constexpr (S::OVERLAP) {
#pragma unroll 1
                while (i < entries) {
                    await_k();
                    if (marked() && skips())
                        break;
                    overlap_blocks(r, held);
                }
                await_v_before();
            }
            context_block(r, held);
        }
        if constexpr (S::OVERLAP)
            mbarrier_wait(last_v, last_parity); /* where no entry did */
    }
};

} // namespace fp::hopper_attention

#endif
