/* Finish: what becomes of a tile's sums, once the residual is in them, and the bias unless
 * BIAS_LAST. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_FINISH_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_FINISH_CUH

#include "hopper_gemm_compute.cuh"
#include "hopper_gemm_norm.cuh"
#include "hopper_gemm_norm_swap.cuh"

namespace fp::hopper_gemm
{

template <class W> struct finish {
    using S = typename W::S;

    const W &w;
    const u32 ready, done;       /* mbarriers of a team, if SWAP */
    u32 panels = 0;              /* that the warp has stored */
    u32 bias[compute<W>::LOADS]; /* if BIAS_LAST */

    FP_DEVICE finish(const W &work, int team)
        : w(work), ready(address(w.s.ready[team])), done(address(w.s.done[team]))
    {
    }

    /* To be called before the last step of a tile, while others run. */
    FP_DEVICE void prepare(const item &i)
    {
        if constexpr (S::BIAS_LAST)
            compute<W>::load_bias(w, i.t.n0, bias);
        if constexpr (W::TURNED > 0 && !S::SWAP)
            store<W>::fetch_turns(w, i.t.m0 + S::warp_row(i.member, 0));
    }

    /* A team leaves out the product that the other team finishes; NONE: it has the whole tile. */
    static constexpr int NONE = -1;

    FP_DEVICE void rows(typename S::sums &c, const item &i, u32 phase, int left_out)
    {
        await_dependencies(); /* what is stored now may have been read or written before */
        if constexpr (S::E4M3 && !S::UNSCALED)
            scale(c);
        if constexpr (S::SWAP)
            mbarrier_wait(ready, S::KEEPS ? 0 : phase);
        if constexpr (S::STRIPS && S::SWAP)
            norm_swap<W>::normalise(w, c, i, ready, done);
        else if constexpr (S::STRIPS)
            norm<W>::normalise(w, c, left_out, i, panels);
        else if constexpr (S::SWAP)
            store<W>::hand_over(w, c, i.member, done);
        else
            store<W>::store_rows(w, c, i.t, i.member, panels);
    }

    /* From sums of e4m3 operands to results. */
    FP_DEVICE void scale(typename S::sums &c) const
    {
        constexpr int BLOCKS = (S::SWAP ? S::BM : S::BN) / 8;
        const int lane = S::lane();
#pragma unroll
        for (int m = 0; m < S::MI; m++)
#pragma unroll
            for (int p = 0; p < BLOCKS; p++) {
                float pair[2] = {};
                if constexpr (S::BIAS_LAST)
                    compute<W>::unpack_bias(bias, lane, p, pair);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float &x = S::block(c, m, p)[i / 2][i % 2];
                    x = S::BIAS_LAST ? x * w.a.e4m3.alpha + pair[i % 2] : x * w.a.e4m3.alpha;
                }
            }
    }

    /* All that this warp has asked to be stored has left shared memory. */
    FP_DEVICE void end() const
    {
        if constexpr (S::BY_WARPS && !W::SCATTERS)
            box_stores_read<0>();
    }
};

} // namespace fp::hopper_gemm

#endif
