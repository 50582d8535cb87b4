/* How those who share the keys of a tile in attention_wgmma.cuh join their partial results: the
 * first one adds up what the others leave in shared memory. */
#ifndef FUSEPLAN_CUDA_ATTENTION_WGMMA_JOIN_CUH
#define FUSEPLAN_CUDA_ATTENTION_WGMMA_JOIN_CUH

#include "attention_wgmma_shape.cuh"

namespace fp
{

template <class S> struct attention_join {
    using D = typename S::D;
    static constexpr int W = S::W, G = S::G, SHARES = S::SHARES, CLUSTER = S::CLUSTER;

    typename S::smem &s;

    static FP_DEVICE void leave_partial(const fragment<D, W> &o, const row_state &state, float4 *to)
    {
#pragma unroll
        for (int p = 0; p < W / 8; p++)
            to[p * FOUR_WARPS] = make_float4(o[p][0][0], o[p][0][1], o[p][1][0], o[p][1][1]);
        to[W / 8 * FOUR_WARPS] =
            make_float4(state.top[0], state.top[1], state.sum[0], state.sum[1]);
    }

    /* from: an address in the shared memory of any thread block of the cluster. */
    static FP_DEVICE void add_partial(fragment<D, W> &o, row_state &state, u32 from)
    {
        constexpr u32 STEP = FOUR_WARPS * sizeof(float4);
        const float4 x = load_cluster(from + W / 8 * STEP);
        const float top[2] = {x.x, x.y}, sum[2] = {x.z, x.w};
        float mine[2], other[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float most = fmaxf(top[r], state.top[r]), down = S::shift(most);
            mine[r] = exp2_fast(state.top[r] * S::unit - down);
            other[r] = exp2_fast(top[r] * S::unit - down);
            state.top[r] = most;
            state.sum[r] = state.sum[r] * mine[r] + sum[r] * other[r];
        }
#pragma unroll
        for (int p = 0; p < W / 8; p++) {
            const float4 y = load_cluster(from + static_cast<u32>(p) * STEP);
            o[p][0][0] = o[p][0][0] * mine[0] + y.x * other[0];
            o[p][0][1] = o[p][0][1] * mine[0] + y.y * other[0];
            o[p][1][0] = o[p][1][0] * mine[1] + y.z * other[1];
            o[p][1][1] = o[p][1][1] * mine[1] + y.w * other[1];
        }
    }

    /* The warpgroup of the second share leaves what it has; that of the first one adds it up. */
    FP_DEVICE void add_shares(fragment<D, W> &o, row_state &state, int group, int share) const
    {
        const int tid = static_cast<int>(threadIdx.x) % FOUR_WARPS;
        auto area = [&](int of) {
            return s.join + ((of - 1) * G + group) * S::JOIN * FOUR_WARPS + tid;
        };
        if (share > 0)
            leave_partial(o, state, area(share));
        S::meet(group); /* one instruction for both: compute-sanitizer takes two for an error */
        if (share == 0)
#pragma unroll 1
            for (int of = 1; of < SHARES; of++)
                add_partial(o, state, shared_address(area(of)));
    }

    /* Likewise among thread blocks.  What the others leave lies where their keys were. */
    FP_DEVICE void add_cluster(fragment<D, W> &o, row_state &state) const
    {
        static_assert(CLUSTER == 1 || S::JOIN * FOUR_WARPS * sizeof(float4) <= sizeof(s.k),
                      "the keys' place holds it");
        float4 *area = reinterpret_cast<float4 *>(s.k) + threadIdx.x;
        const int rank = cluster_rank<CLUSTER>();
        if (rank > 0) {
            S::meet(0); /* all warps have read the keys */
            leave_partial(o, state, area);
        }
        cluster_arrive();
        cluster_wait();
        if (rank == 0)
#pragma unroll 1
            for (u32 of = 1; of < CLUSTER; of++)
                add_partial(o, state, cluster_address(shared_address(area), of));
        cluster_arrive(); /* shared memory is there until all have read it */
        cluster_wait();   /* rank 0 does so for racecheck alone, which hangs if some do not */
    }
};

} // namespace fp

#endif
