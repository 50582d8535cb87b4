/* Joined rows: a key block of hopper_attention.cuh has values of several sequences, and a tile rows
 * of several. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_JOINED_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_JOINED_CUH

#include "hopper_attention_work.cuh"

namespace fp::hopper_attention
{

/* The values of a key block, by the one warpgroup that computes. */
template <class S> struct joined_values {
    using D = typename S::D;
    using rows = block_rows<S>;
    static constexpr int W = S::W, PANEL = S::PANEL;

    typename S::smem &s;

    /* What is not finite in v of one sequence must not reach another one, although 0 times NaN is
     * NaN.  Such rows of v become zeros, and the context of who keeps them NaN. */
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
        S::meet(0);
        if (bad && tid % 2 == 0)
            atomicOr(keys + key / 32, 1u << key % 32);
        for (int j = 0; bad && j < S::PANELS * 4; j++)
            *reinterpret_cast<uint4 *>(line + j / 4 * PANEL + (j % 4 * 2 + tid % 2) * 16) =
                make_uint4(0, 0, 0, 0);
        proxy_fence();
        S::meet(0);
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
};

} // namespace fp::hopper_attention

#endif
