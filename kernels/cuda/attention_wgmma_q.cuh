/* How the warps of attention_wgmma.cuh that compute make q ready for wgmma. */
#ifndef FUSEPLAN_CUDA_ATTENTION_WGMMA_Q_CUH
#define FUSEPLAN_CUDA_ATTENTION_WGMMA_Q_CUH

#include "attention_wgmma_shape.cuh"

namespace fp
{

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

template <class S> struct attention_q {
    using D = typename S::D;
    static constexpr int W = S::W, SHARES = S::SHARES, PANEL = S::PANEL;
    static constexpr bool QREG = S::QREG, DRAWS = S::DRAWS;

    typename S::smem &s;

    /* q of this warp's rows, with its bias. */
    static FP_DEVICE void load(u32 (&q)[W / 16][4], const unsigned char *from, const u16 *bias)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) % FOUR_WARPS / 32;
        const unsigned char *rows = from + (warp * WARP_ROWS + lane % 16) * 128;
#pragma unroll
        for (int i = 0; i < W / 16; i++) {
            load_matrix(q[i], rows + i / 4 * PANEL + ((i % 4 * 2 + lane / 16) ^ (lane % 8)) * 16);
            if constexpr (S::BIAS)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    q[i][j] = pairs<D>::add(q[i][j], *reinterpret_cast<const u32 *>(
                                                         bias + i * 16 + j / 2 * 8 + lane % 4 * 2));
        }
    }

    /* Adds the bias to q where it lies; tid: of all threads that share it. */
    static FP_DEVICE void add_bias(unsigned char *rows, const u16 *bias, int tid)
    {
#pragma unroll
        for (int i = tid; i < BLOCK * W / 8; i += SHARES * FOUR_WARPS) {
            int panel = i / 512, row = i % 512 / 8, chunk = i % 8;
            uint4 *at = reinterpret_cast<uint4 *>(rows + panel * PANEL + row * 128 +
                                                  (chunk ^ (row % 8)) * 16);
            uint4 x = *at, b = *reinterpret_cast<const uint4 *>(bias + panel * 64 + chunk * 8);
            *at = make_uint4(pairs<D>::add(x.x, b.x), pairs<D>::add(x.y, b.y),
                             pairs<D>::add(x.z, b.z), pairs<D>::add(x.w, b.w));
        }
    }

    /* Makes q ready for wgmma, with its bias: in registers, or where it lies. */
    FP_DEVICE void prepare(u32 (&q)[W / 16][4], int tile, int group, int share) const
    {
        if constexpr (QREG) {
            load(q, s.q[tile][group], s.bias[tile][0]);
            if constexpr (SHARES > 1)
                S::meet(group); /* before the context takes q's place */
        } else {
            if constexpr (!DRAWS)
                S::meet(group); /* who shares the rows has copied them */
            if constexpr (S::BIAS) {
                add_bias(s.q[tile][group], s.bias[tile][0],
                         static_cast<int>(threadIdx.x) % FOUR_WARPS + share * FOUR_WARPS);
                proxy_fence();
                S::meet(group);
            }
        }
    }
};

} // namespace fp

#endif
