/* out (tokens, N) = in (tokens, K) @ weight (K, N) with an epilogue, by wgmma and TMA (sm_90a),
 * fp16 and bf16.  README.md has how it works.
 *
 * Source: the warp-specialised persistent kernels of CUTLASS 3 ("cooperative" and "ping-pong").
 *
 * This file has the roles of a thread block's warps.  Steps: hopper_gemm_load.cuh, _compute.cuh,
 * _finish.cuh (which stores by _store.cuh on _pairs.cuh, and with a layernorm by _norm.cuh and
 * _norm_swap.cuh on _moments.cuh).  Ways to run them: _pingpong.cuh, _cooperative.cuh, _split.cuh.
 * What all of them know: _work.cuh and, with the host, hopper_gemm.h. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_CUH

#include "hopper_gemm_cooperative.cuh"
#include "hopper_gemm_load.cuh"
#include "hopper_gemm_pingpong.cuh"
#include "hopper_gemm_split.cuh"

namespace fp::hopper_gemm
{

/* By one thread, at addresses that the compiler knows.  Lanes with an address each would take
 * turns, some 65 cycles for each mbarrier. */
template <class W> FP_DEVICE void init_mbarriers(const W &w)
{
    using S = typename W::S;
    constexpr u32 loaders = W::GATHERS ? 33 : 1, storers = W::SCATTERS ? W::STORERS : 1;
#pragma unroll
    for (int i = 0; i < S::STAGES; i++) {
        mbarrier_init(address(w.s.full[i]), loaders);
        mbarrier_init(address(w.s.empty[i]), 4 * S::GROUPS * S::CLUSTER);
    }
#pragma unroll
    for (int i = 0; i < S::TEAMS; i++) {
        mbarrier_init(address(w.s.ready[i]), storers);
        mbarrier_init(address(w.s.landed[i]), 4);
        mbarrier_init(address(w.s.done[i]), S::SPLIT == 1 ? 4 * S::GROUPS : 1);
    }
#pragma unroll
    for (int i = 0; i < S::CONSUMERS; i++)
        mbarrier_init(address(w.s.turn[i]), 4);
    if constexpr (S::STRIPS) {
        mbarrier_init(address(w.s.columns), S::SWAP ? 1 : 32);
#pragma unroll
        for (int i = 0; i < 2; i++)
            mbarrier_init(address(w.s.shared[i]), 1);
#pragma unroll
        for (int i = 0; i < S::TEAMS; i++)
            mbarrier_init(address(w.s.taken[i]), 4);
    }
#pragma unroll
    for (int i = 0; i < S::KEPT; i++)
        mbarrier_init(address(w.s.full[S::STAGES + i]), 1);
    if constexpr (S::SHARES)
        mbarrier_init(address(w.s.handed), FOUR_WARPS);
    if constexpr (S::BETWEEN)
#pragma unroll
        for (int i = 0; i < S::PLACES; i++) {
            mbarrier_init(address(w.s.residual_full[i]), 1);
            mbarrier_init(address(w.s.residual_empty[i]), 4);
        }
    mbarrier_fence_init();
}

/* The warps that do not multiply.  Where TMA copies, one thread asks for it. */
template <class W> FP_DEVICE void copy(const W &w, int warp, int lane)
{
    using S = typename W::S;
    if (warp == 0) {
        if (lane == 0) {
            if constexpr (S::STAYS)
                load<W>::kept(w);
            else
                load<W>::weights(w);
        }
    } else if (warp == 1) {
        if (W::GATHERS || lane == 0)
            load<W>::rows(w, lane);
    } else {
        if constexpr (S::STRIPS)
            if (warp == 2 && (!S::SWAP || lane == 0))
                load<W>::columns(w, lane);
        if constexpr (S::BETWEEN)
            if (warp == 3 && lane == 0)
                load<W>::residual_panels(w);
        if constexpr (S::SWAP)
            if (W::SCATTERS || (warp == 2 && lane == 0))
                store<W>::store_tiles(w, (warp - 2) * 32 + lane);
    }
}

/* The warpgroups that multiply. */
template <class W> FP_DEVICE void multiply(const W &w, int group)
{
    using S = typename W::S;
    if constexpr (S::SPLIT > 1)
        split<W>::run(w);
    else if constexpr (S::TEAMS == 2)
        pingpong<W>::run(w, group);
    else
        cooperative<W>::run(w, group / S::GROUPS, group % S::GROUPS);
}

template <class D, const fp_hopper_gemm &G, class View, class End>
FP_DEVICE void run(const fp_args &a, const fp_maps &maps, const View &in, const End &end,
                   void *shared)
{
    using S = shape<D, G>;
    constexpr bool WIDE = S::MI * (S::SWAP ? S::BM : S::BN) > 256; /* sums take most registers */
    const work<S, View, End> w(a, maps, in, end, shared);
    const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / FOUR_WARPS, 0);
    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
    if (threadIdx.x == 0)
        init_mbarriers(w);
    __syncthreads();
    if constexpr (S::SPLIT * S::CLUSTER > 1 || S::NORM == FP_NORM_CLUSTER) /* mbarriers are ready */
        cluster_arrive_relaxed();
    if constexpr (S::CLUSTER > 1 || S::NORM == FP_NORM_CLUSTER)
        cluster_wait();
    if (group < S::CONSUMERS) {
        if constexpr (S::CONSUMERS == 2)
            take_registers<WIDE ? 232 : 224>();
        if constexpr (S::CONSUMERS == 3)
            take_registers<152>();
        multiply(w, group);
    } else {
        if constexpr (S::CONSUMERS >= 2)
            give_registers<WIDE || S::CONSUMERS == 3 ? 40 : 56>();
        copy(w, warp - 4 * S::CONSUMERS, static_cast<int>(threadIdx.x) % 32);
        __syncwarp();
        if constexpr (S::SPLIT > 1)
            cluster_wait();
    }
}

} // namespace fp::hopper_gemm

#endif
