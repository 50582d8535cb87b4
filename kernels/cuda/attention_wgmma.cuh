/* Whole attention by Hopper's wgmma (sm_90a), fp16 and bf16, head size W = 64 or 128:
 *
 *   out (S,W) = softmax(mask(q k^T / sqrt(W))) v     for each batch row and head
 *
 * One launch fuses scores, mask, softmax and context, with the split of heads before and their
 * merge after, or without; the biases are treated as in attention.cuh.
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
 *   their partial results in shared memory.  CLUSTER thread blocks may share a tile in the same
 *   way; the first one reads the results of the others in their shared memory.
 *
 *   P warps load.  They fill a ring of STAGES key blocks (k, v, row words) for all warpgroups, and
 *   q of the next tile, by cp.async in the 128-byte swizzle.  Where a thread block has a single
 *   tile, the warps that compute load its q themselves.
 *
 * The mbarriers full_* complete when copies have landed, the mbarriers empty_* when all that
 * compute have read them.  Every thread arrives at empty_k, because each reads row words with
 * instructions of its own; one thread of a warp arrives at the others.  Two bits of each entry
 * (skip, partial) tell a warpgroup what to do with the key block.  A warpgroup that skips an entry
 * arrives all the same.
 *
 *   DRAWS    thread blocks draw their tiles from a counter; else each has one
 *   OVERLAP  the next entry's scores are issued before this one's context, so that softmax runs
 *            beside the context; else one after another
 *   QREG     q is an operand in registers, else in shared memory
 *   ORDERED  the tiles are those of a cover: rows of q, k and v come by their tokens' numbers, and
 *            the mask may be in two parts
 *
 * At W = 64 a row is one line of 128 bytes, so any order of tokens costs what a block of neighbours
 * costs.  Where the mask is in two parts, each part softmaxes its own elements.  The first part
 * stores its result and l = log2 of each row's sum; the second one joins these with its own,
 *
 *   out = (2^l1 out1 + 2^l2 out2) / (2^l1 + 2^l2)
 *
 * once a counter says that all warps of the first part have stored the head.  It may wait for a
 * thread block that has not begun: thread block b has tile b before any is drawn, so a drawn tile
 * of the second part can come after the tile of a thread block that is still to begin.  That one
 * begins because the grid is no larger than what the GPU holds, and whoever has its place will
 * return: all but a launch of a higher priority that waits for thread blocks of its own.
 *
 * This file has the roles, the products and their order.  attention_wgmma_load.cuh has what the
 * loading warps do, _copy.cuh how they copy rows, _q.cuh how q becomes an operand, _softmax.cuh the
 * softmax, _join.cuh how partial results of shared keys are added, _store.cuh how rows are stored
 * and those of two parts joined, _shape.cuh what all of these files use. */
#ifndef FUSEPLAN_CUDA_ATTENTION_WGMMA_CUH
#define FUSEPLAN_CUDA_ATTENTION_WGMMA_CUH

#include "attention_wgmma_join.cuh"
#include "attention_wgmma_load.cuh"
#include "attention_wgmma_q.cuh"
#include "attention_wgmma_softmax.cuh"
#include "attention_wgmma_store.cuh"

namespace fp
{

/* x, which is equal in all lanes, in a form that the compiler knows to be uniform. */
FP_DEVICE int uniform(int x)
{
    return static_cast<int>(__reduce_or_sync(0xffffffffu, static_cast<u32>(x)));
}

template <class D, int W, int OPS, int C, int G, int STAGES, int P, int CLUSTER, bool DRAWS,
          bool OVERLAP, bool QREG, bool ORDERED>
struct attention_wgmma {
    using S = attention_shape<D, W, OPS, C, G, STAGES, P, CLUSTER, DRAWS, OVERLAP, QREG, ORDERED>;
    using smem = typename S::smem;
    static constexpr int THREADS = C * FOUR_WARPS + P * 32, ALIGN = 1024;
    static constexpr int SHARES = S::SHARES, STRIDE = SHARES * CLUSTER; /* who share a tile */
    static constexpr int PANEL = S::PANEL, TILE = S::TILE;
    using softmax = attention_softmax<S>;

    const fp_args &a;
    const fp_attention &io;
    smem &s;

    static FP_DEVICE smem &align(void *shared)
    {
        u32 gap = (ALIGN - shared_address(shared) % ALIGN) % ALIGN;
        return *reinterpret_cast<smem *>(static_cast<unsigned char *>(shared) + gap);
    }

    FP_DEVICE attention_wgmma(const fp_args &args, const fp_attention &operands, void *shared)
        : a(args), io(operands), s(align(shared))
    {
    }

    FP_DEVICE void run()
    {
        const bool computes = threadIdx.x < C * FOUR_WARPS;
        if (computes && threadIdx.x < 32)
            touch_arguments();
        attention_loader<S> loader{a, io, s};
        typename attention_loader<S>::tile tile = {};
        typename attention_loader<S>::entry e = {};
        if ((!computes || !DRAWS) && loader.first_tile() < loader.tiles()) {
            loader.find_tile(loader.first_tile(), tile, e);
            loader.fetch_bias(tile);
        }
        if (threadIdx.x == 0)
            init_mbarriers();
        __syncthreads();
        await_dependencies();
        if (!computes) {
            loader.produce(tile, e);
            return;
        }
        if constexpr (!DRAWS)
            loader.load_own_q(tile);
        consume();
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
            mbarrier_init(shared_address(&s.empty_k[i]), FOUR_WARPS * G);
            mbarrier_init(shared_address(&s.empty_v[i]), 4 * G);
        }
        for (int i = 0; i < S::TILES; i++) {
            mbarrier_init(shared_address(&s.full_q[i]), 32 * P + 1);
            mbarrier_init(shared_address(&s.empty_q[i]), 4 * C);
        }
    }

    /* ---- computing --------------------------------------------------------------------------- */

    /* Matrices in shared memory by the low half of their descriptor, in units of 16 bytes; the high
     * half is the same for all: 1024 bytes between 8 rows, 128-byte swizzle.  A descriptor has room
     * for an address below MATRICES; in a cluster addresses have the thread block's
     * number above. */
    static constexpr u32 MATRICES = 1u << 18, UNIT = 16, BY_ROWS = 1u << 16,
                         BY_COLUMNS = PANEL / UNIT << 16;

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

/* The address in shared memory of a field of smem; the same as the low half of a descriptor. */
/* NVRTC has no offsetof. */
#define FP_OFFSET(field)                                                                           \
    static_cast<u32>(reinterpret_cast<u64>(&static_cast<smem *>(nullptr)->field))
#define FP_AT(field)  (base + FP_OFFSET(field))
#define FP_LOW(field) (base % MATRICES / UNIT + FP_OFFSET(field) / UNIT)

    /* Arrives for a slot whose key block this warpgroup skips. */
    static FP_DEVICE void pass_over(u32 base, u32 slot, u32 phase)
    {
        mbarrier_wait(FP_AT(full_v) + slot * 8, phase);
        __syncwarp();
        mbarrier_arrive(FP_AT(empty_k) + slot * 8);
        if (threadIdx.x % 32 == 0)
            mbarrier_arrive(FP_AT(empty_v) + slot * 8);
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
            softmax::mask(c, FP_AT(words) + (slot * G + group) * (BLOCK * 8));
        mbarrier_arrive(FP_AT(empty_k) + slot * 8);
        const bool grown = softmax::raise(c, state, rescale);
        softmax::soften(c, state);
        pin(c);
        wgmma_wait<0>();
        pin(o);
        mbarrier_arrive_warp(FP_AT(empty_v) + held * 8);
        if (grown)
            softmax::scale_rows(o, rescale);
        pin(c); /* wgmma reads p until here */
        softmax::pack(p, c);
    }

    FP_DEVICE void consume()
    {
        const int wg = uniform(static_cast<int>(threadIdx.x) / FOUR_WARPS);
        const int group = C == 1 ? 0 : wg % G, share = SHARES == 1 ? 0 : wg / G;
        const u32 base = shared_address(&s);
        const u32 first = CLUSTER > 1 ? cluster_rank<CLUSTER>() : share; /* of its entries */
        u32 slot = share, phase = 0;                                     /* of the entry at hand */

        auto wait_k = [&]() { mbarrier_wait(FP_AT(full_k) + slot * 8, phase); };
        auto low_k = [&](u32 at) { return (FP_LOW(k) + at * (TILE / UNIT)) | BY_ROWS; };

#pragma unroll 1
        for (int n = 0; DRAWS || n == 0; n++) {
            const int tile = n % S::TILES;
            mbarrier_wait(FP_AT(full_q) + tile * 8, n / 2 & 1);
            const u32 entries = static_cast<u32>(s.item[tile][0]);
            if (DRAWS && static_cast<int>(entries) < 0)
                return;
            u32 skip = s.marks[tile][0][group] >> first, partial = s.marks[tile][1][group] >> first;
            u32 q[W / 16][4];
            attention_q<S>{this->s}.prepare(q, tile, group, share);
            const u32 low_q = (FP_LOW(q) + (tile * G + group) * (TILE / UNIT)) | BY_ROWS;

            fragment<D, BLOCK> c;
            fragment<D, W> o;
            row_state state;
            u32 p[4][4];
            float rescale[2];
            softmax::clear(o, state);

            u32 i = first; /* the entry at hand */
            auto advance = [&]() {
                slot += SHARES;
                if (slot >= STAGES)
                    slot = share, phase ^= 1;
                i += STRIDE;
                skip >>= STRIDE;
                partial >>= STRIDE;
            };
            /* Waits for k of the entry at hand; whether it is to be skipped. */
            auto seek = [&]() {
                wait_k();
                if (i % 32 == first && i >= 32) {
                    skip = s.later[i / 32 & 1][0][group] >> first;
                    partial = s.later[i / 32 & 1][1][group] >> first;
                }
                return (skip & 1) != 0;
            };
            auto soft_mask = [&]() {
                if (partial & 1)
                    softmax::mask(c, FP_AT(words) + (slot * G + group) * (BLOCK * 8));
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
                mbarrier_arrive(FP_AT(empty_k) + slot * 8);
                if (softmax::raise(c, state, rescale))
                    softmax::scale_rows(o, rescale);
                softmax::soften(c, state);
                softmax::pack(p, c);
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
            const attention_join<S> joins{this->s};
            if constexpr (CLUSTER > 1)
                joins.add_cluster(o, state);
            if constexpr (SHARES > 1)
                joins.add_shares(o, state, group, share);
            else if constexpr (!QREG)
                S::meet(group); /* before the context takes q's place */
            if (first == 0)
                attention_store<S>{a, io, s}.store(o, state, tile, group);
            if constexpr (DRAWS)
                mbarrier_arrive_warp(FP_AT(empty_q) + tile * 8);
        }
    }

#undef FP_OFFSET
#undef FP_AT
#undef FP_LOW
};

} // namespace fp

#endif
