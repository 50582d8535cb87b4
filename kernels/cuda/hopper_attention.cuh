/* Whole attention by Hopper's wgmma (sm_90a), fp16 and bf16, head size W of 32 to 128:
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
 *   q of the next tile, by cp.async in the 128-byte swizzle; with TMA one thread asks it for k and
 * v.  Where a thread block has a single tile, the warps that compute load its q themselves.
 *
 * The mbarriers full_* complete when copies have landed, the mbarriers empty_* when all that
 * compute have read them.  With OVERLAP each full_k is for the v before it, too, and full_v for the
 * last one of a tile.  Every thread arrives at empty_k and empty_q, because each reads row words
 * and biases with instructions of its own, and so at empty_v where JOINED; else one thread of a
 * warp arrives there.  Two bits of each entry (skip, partial) tell a warpgroup what to do with the
 * key block. A warpgroup that skips an entry arrives all the same.
 *
 *   DRAWS    thread blocks draw their tiles from a counter; else each has one
 *   OVERLAP  the next entry's scores are issued before this one's context, so that their maxima
 *            are found beside the context; else one after another
 *   QREG     q is an operand in registers, else in shared memory
 *   LANDS    warps that load announce copies when they have landed and are visible to wgmma
 *   TMA      TMA copies k and v, which wgmma sees without a fence: faster where lists are long
 *   FOLDS    products scale and shift the scores, and sum the probabilities
 *   ORDERED  the tiles are those of a cover: rows of q, k and v come by their tokens' numbers, and
 *            the mask may be in two parts
 *
 * Where the mask is in two parts, each part softmaxes its own elements.  The first part stores its
 * result and l = log2 of each row's sum; the second one joins these with its own,
 *
 *   out = (2^l1 out1 + 2^l2 out2) / (2^l1 + 2^l2)
 *
 * once a counter says that all warps of the first part have stored the head.  README.md says why
 * that comes to an end.
 *
 * This file has the roles of a thread block's warps.  Steps: hopper_attention_load.cuh (in the
 * order of _tiles.cuh), _compute.cuh (on _softmax.cuh and _joined.cuh) and _finish.cuh.  What all
 * of them know: _work.cuh and, with the host, hopper_attention.h. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_CUH

#include "hopper_attention_finish.cuh"
#include "hopper_attention_load.cuh"

namespace fp::hopper_attention
{

/* Loads every line of the arguments at once, so that later reads of them hit the cache. */
FP_DEVICE void touch_arguments(const fp_args &a)
{
    const int *words = reinterpret_cast<const int *>(&a);
    int x = words[threadIdx.x * 16 % (sizeof(fp_args) / 4)];
    asm volatile("" ::"r"(x));
}

template <class S> FP_DEVICE void init_mbarriers(typename S::smem &s)
{
    for (int i = 0; i < S::STAGES; i++) {
        mbarrier_init(shared_address(&s.full_k[i]), 32 * S::P + 1);
        mbarrier_init(shared_address(&s.full_v[i]), 32 * S::P + (S::TMA ? 1 : 0));
        mbarrier_init(shared_address(&s.empty_k[i]), FOUR_WARPS * S::G);
        mbarrier_init(shared_address(&s.empty_v[i]), (S::JOINED ? FOUR_WARPS : 4) * S::G);
    }
    for (int i = 0; i < S::TILES; i++) {
        mbarrier_init(shared_address(&s.full_q[i]), 32 * S::P + 1);
        mbarrier_init(shared_address(&s.empty_q[i]), FOUR_WARPS * S::C);
    }
    if constexpr (S::TMA)
        mbarrier_fence_init();
}

/* The warpgroups that compute, from tile to tile. */
template <class S>
FP_DEVICE void consume(const fp_args &a, const fp_attention &io, typename S::smem &s)
{
    using smem = typename S::smem;
    const int wg = static_cast<int>(uniform(threadIdx.x / FOUR_WARPS));
    u32 slot = S::SHARES == 1 ? 0 : wg / S::G, phase = 0;
    compute<S> step(s, wg, slot, phase);
#pragma unroll 1
    for (int n = 0; S::DRAWS || n == 0; n++) {
        const int tile = n % S::TILES;
        const u32 parity = n / 2 & 1;
        mbarrier_wait(step.at(&smem::full_q) + tile * 8, parity);
        if (S::DRAWS && s.item[tile].entries < 0)
            return;
        block_rows<S> rows;
        step.run(rows, tile, parity);
        finish<S>(a, io, step, rows.o, rows.state, tile);
        if constexpr (S::DRAWS)
            mbarrier_arrive(step.at(&smem::empty_q) + tile * 8);
    }
}

template <class D, int OPS, const fp_hopper_attention &A>
FP_DEVICE void run(const fp_args &a, const fp_attention &io, void *shared,
                   const fp_maps *maps = nullptr)
{
    using S = shape<D, OPS, A>;
    const bool computes = threadIdx.x < S::C * FOUR_WARPS;
    typename S::smem &s = S::align(shared);
    if (computes && threadIdx.x < 32)
        touch_arguments(a);
    load<S> loads{a, io, s, maps};
    tile t = {};
    entry e = {};
    const tile_order<S> order = loads.order();
    if ((!computes || !S::DRAWS) && order.first() < order.count()) {
        order.find(order.first(), t, e);
        loads.fetch_bias(t);
    }
    if (threadIdx.x == 0)
        init_mbarriers<S>(s);
    if constexpr (S::FOLDS) {
        for (u32 i = threadIdx.x; i < sizeof(s.ones) / 4; i += blockDim.x)
            s.ones[i] = D::pack(1.0f, 1.0f);
        proxy_fence();
    }
    if (S::TMA && threadIdx.x == S::C * FOUR_WARPS)
        fetch_map(&maps->in);
    __syncthreads();
    await_dependencies();
    if (!computes) {
        loads.run(t, e);
        return;
    }
    if constexpr (S::DRAWS)
        give_registers<fp_hopper_attention_registers(A)>(); /* none: README.md, "Addresses" */
    else
        loads.load_own_q(t);
    consume<S>(a, io, s);
}

} // namespace fp::hopper_attention

#endif
