/* A panel of a result in e4m3, as a warp leaves it in shared memory.
 *
 * Of each 16 columns byte 2i is column i, and byte 2i + 1 is column i + 8: so a thread has four
 * neighbours of two blocks.  The weight that such a result is multiplied by has its inner
 * dimension in the same order. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_PAIRS_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_PAIRS_CUH

#include "hopper_gemm_work.cuh"

namespace fp::hopper_gemm
{

template <class W> struct pairs {
    FP_GEMM_STEP;

    /* Where this lane's line of four 8x8 matrices of byte pairs is: lines of 64 bytes.  Of a gate
     * its first pair, in lines of 32 bytes. */
    static FP_DEVICE u32 first(u32 panel)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32, row = lane % 16;
        if constexpr (W::S::GATE)
            return panel + lane / 4 * 32 + lane / 16 * 16 + lane % 4 * 2;
        return panel + row * 64 + (lane / 16 ^ row / 2 % 4) * 16;
    }

    /* Of 16 rows and columns of a warp, x as store::leave() has them: a half of a matrix r of 32
     * columns. */
    static FP_DEVICE void pack(const W &w, const u32 (&x)[4], u32 (&r)[4], int half)
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
            r[half * 2 + i] = e4m3::pack<D>(x[i], x[i + 2], w.a.e4m3.factors);
    }

    /* Leaves 16 rows and 32 columns of a warp.  x: pairs of the first 16 columns as store::leave()
     * has them; y: of the others. */
    static FP_DEVICE void leave(const W &w, const u32 (&x)[4], const u32 (&y)[4], u32 at)
    {
        u32 r[4];
        pack(w, x, r, 0);
        pack(w, y, r, 1);
        store_matrix(at, r);
    }

    /* The same of blocks p to p + 3 of product m, by pairs that end as neighbours. */
    static FP_DEVICE void leave_sums(const W &w, sums &c, int m, int p, u32 at)
    {
        u32 r[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const auto &x = S::block(c, m, p + i / 2 * 2)[i % 2],
                       &y = S::block(c, m, p + i / 2 * 2 + 1)[i % 2];
            u32 of[2];
#pragma unroll
            for (int j = 0; j < 2; j++)
                of[j] = w.end.activation.template packed_for_e4m3<D>(x[j], y[j]);
            r[i] = e4m3::pack_in_order<D>(of[0], of[1], w.a.e4m3.factors);
        }
        store_matrix(at, r);
    }

    /* Of a gate 16 columns.  x: of two rows those that four blocks become, t, t+4, t+8 and t+12;
     * each has bytes 2t and 2t+1, and two eight bytes behind. */
    static FP_DEVICE void leave_gated(const W &w, const u32 (&x)[2][2], u32 at)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const u32 of = e4m3::pack<D>(x[r][0], x[r][1], w.a.e4m3.factors);
            store_pair(at + r * 8 * 32, of);
            store_pair(at + r * 8 * 32 + 8, of >> 16);
        }
    }

    static FP_DEVICE void store_pair(u32 at, u32 pair)
    {
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"(static_cast<unsigned short>(pair))
                     : "memory");
    }
};

} // namespace fp::hopper_gemm

#endif
