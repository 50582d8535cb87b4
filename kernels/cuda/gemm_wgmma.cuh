/* The GEMM of gemm.cuh by Hopper's wgmma (sm_90a), fp16 and bf16.
 *
 * A warpgroup owns 64 rows and all BN columns of a tile and reads both operands from shared memory,
 * which cp.async fills in the 128-byte swizzle: 16-byte chunk c of row r lies at chunk c ^ (r % 8).
 * The input is (row, k), the weight (k, n) in panels of 64 columns.  One group of products is in
 * flight while the next buffers are filled, so a buffer is free two steps after its use. */
#ifndef FUSEPLAN_CUDA_GEMM_WGMMA_CUH
#define FUSEPLAN_CUDA_GEMM_WGMMA_CUH

#include "gemm.cuh"
#include "hopper.cuh"

namespace fp
{

template <class D_, int BM_, int BN_, int STAGES_, int SPLIT_> struct wgmma_shape {
    using D = D_;
    static constexpr int BM = BM_, BN = BN_, BK = 64, STAGES = STAGES_, SPLIT = SPLIT_;
    static constexpr int THREADS = BM * 2, WM = BM / 16, WN = 1, WARP_M = 16, WARP_N = BN, MI = 1;
    static constexpr int LDS = WARP_N + 8;
    static constexpr int A_CHUNKS = BM * 8 / THREADS;
    static constexpr int B_CHUNKS = (BN * 8 + THREADS - 1) / THREADS; /* the last may be idle */
    static constexpr int PANEL = 64 * 128; /* bytes of 64 rows of k, 64 columns each */

    static_assert(BM % 64 == 0 && BN % 64 == 0 && BN <= 192, "whole warpgroups and panels");
    static_assert(STAGES >= 3, "one buffer is used, one not yet free, one filled");

    struct buffers {
        unsigned char a[STAGES][BM * 128];
        unsigned char b[STAGES][BN * 128];
    };
    union smem {
        buffers pipe;
        float slab[WM][16 * LDS];
    };
    static constexpr int ALIGN = 1024; /* of the swizzle's pattern */

    template <class View>
    static FP_DEVICE void tile(const fp_args &a, const gemm_size &g, const View &in,
                               const elem<D> *weight, int m0, int n0, int k_begin, int k_end,
                               buffers &pipe, gemm_sums<wgmma_shape> &c)
    {
        const int tid = threadIdx.x, ac = tid % 8, ar = tid / 8;
        const elem<D> *rows[A_CHUNKS];
        int offset[B_CHUNKS];
        u32 a_live = 0, b_live = 0;
#pragma unroll
        for (int i = 0; i < A_CHUNKS; i++) {
            int m = m0 + ar + i * (THREADS / 8);
            a_live |= static_cast<u32>(m < a.tokens) << i;
            rows[i] = in.row(token_row(a, min(m, a.tokens - 1)));
        }
#pragma unroll
        for (int i = 0; i < B_CHUNKS; i++) {
            int r = (tid + i * THREADS) / (BN / 8), n = (tid + i * THREADS) % (BN / 8) * 8;
            b_live |= static_cast<u32>(n0 + n < g.n) << i;
            offset[i] = r * g.n + n;
        }
        const elem<D> *panel = weight + static_cast<i64>(k_begin) * g.n + n0;

        auto fill = [&](int slot, int k0) {
            const bool whole = k0 + BK <= k_end, inside = k0 + ac * 8 < k_end;
            const i64 at = inside ? in.col(k0 + ac * 8) : 0;
            unsigned char *to = pipe.a[slot] + ar * 128 + (ac ^ ar % 8) * 16;
#pragma unroll
            for (int i = 0; i < A_CHUNKS; i++)
                copy_async(to + i * THREADS * 16, rows[i] + at, inside && (a_live >> i & 1));
#pragma unroll
            for (int i = 0; i < B_CHUNKS; i++) {
                int r = (tid + i * THREADS) / (BN / 8), n = (tid + i * THREADS) % (BN / 8);
                if (BN * 8 % THREADS != 0 && r >= BK)
                    continue;
                bool valid = (b_live >> i & 1) && (whole || k0 + r < k_end);
                copy_async(pipe.b[slot] + n / 8 * PANEL + r * 128 + (n % 8 ^ r % 8) * 16,
                           valid ? panel + offset[i] : weight, valid);
            }
            panel += BK * g.n;
        };

#pragma unroll
        for (int s = 0; s < STAGES - 2; s++) {
            if (k_begin + s * BK < k_end)
                fill(s, k_begin + s * BK);
            copy_commit();
        }
        int slot = 0, next = STAGES - 2;
        wgmma_fence();
#pragma unroll 1
        for (int k = k_begin; k < k_end; k += BK) {
            copy_wait<STAGES - 3>();
            asm volatile("fence.proxy.async;" ::: "memory");
            __syncthreads();
            u32 at_a = shared_address(pipe.a[slot]) + tid / 128 * 64 * 128;
            u32 at_b = shared_address(pipe.b[slot]);
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < 4; i++)
                wgmma<D, BN>::nn(c[0], wgmma_matrix(at_a + i * 32, 16, 1024),
                                 wgmma_matrix(at_b + i * 2048, PANEL, 1024));
            wgmma_commit();
            if (k + (STAGES - 2) * BK < k_end)
                fill(next, k + (STAGES - 2) * BK);
            copy_commit();
            wgmma_wait<1>();
            slot = slot + 1 == STAGES ? 0 : slot + 1;
            next = next + 1 == STAGES ? 0 : next + 1;
        }
        wgmma_wait<0>();
        copy_wait<0>();
        __syncthreads();
    }
};

} // namespace fp

#endif
