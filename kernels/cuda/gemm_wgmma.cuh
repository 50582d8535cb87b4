/* The same GEMM on Hopper's warpgroup products (sm_90a), fp16 and bf16.
 *
 * A warpgroup owns 64 rows and all BN columns of a tile and reads both operands from shared memory,
 * which cp.async fills in the 128-byte swizzle: 16-byte chunk c of row r lies at chunk c ^ (r % 8).
 * The input is (row, k), the weight (k, n) in panels of 64 columns.  One group of products is in
 * flight while the next buffers are filled, so a buffer is free two steps after its use. */
#ifndef FUSEPLAN_CUDA_GEMM_WGMMA_CUH
#define FUSEPLAN_CUDA_GEMM_WGMMA_CUH

#include "gemm.cuh"

namespace fp
{

FP_DEVICE void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

FP_DEVICE void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int pending> FP_DEVICE void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/* A matrix in shared memory in 128-byte swizzle; strides in bytes.  PTX ISA, "Matrix descriptor".
 */
FP_DEVICE u64 wgmma_matrix(u32 address, int leading, int stride)
{
    return (static_cast<u64>(address & 0x3ffff) >> 4) | static_cast<u64>(leading >> 4) << 16 |
           static_cast<u64>(stride >> 4) << 32 | 1ull << 62;
}

/* c (64, N) += a (64, 16) b (16, N); a by rows of k, b by rows of n. */
template <class D, int N> struct wgmma;
#define FP_WGMMA_64(TYPE)                                                                          \
    asm volatile(                                                                                  \
        "{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"                                                   \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " {"                           \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "    \
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31 "                         \
        "}, %32, %33, p, 1, 1, 0, 1; }"                                                            \
        : "+f"(c[0][0][0]), "+f"(c[0][0][1]), "+f"(c[0][1][0]), "+f"(c[0][1][1]),                  \
          "+f"(c[1][0][0]), "+f"(c[1][0][1]), "+f"(c[1][1][0]), "+f"(c[1][1][1]),                  \
          "+f"(c[2][0][0]), "+f"(c[2][0][1]), "+f"(c[2][1][0]), "+f"(c[2][1][1]),                  \
          "+f"(c[3][0][0]), "+f"(c[3][0][1]), "+f"(c[3][1][0]), "+f"(c[3][1][1]),                  \
          "+f"(c[4][0][0]), "+f"(c[4][0][1]), "+f"(c[4][1][0]), "+f"(c[4][1][1]),                  \
          "+f"(c[5][0][0]), "+f"(c[5][0][1]), "+f"(c[5][1][0]), "+f"(c[5][1][1]),                  \
          "+f"(c[6][0][0]), "+f"(c[6][0][1]), "+f"(c[6][1][0]), "+f"(c[6][1][1]),                  \
          "+f"(c[7][0][0]), "+f"(c[7][0][1]), "+f"(c[7][1][0]), "+f"(c[7][1][1])                   \
        : "l"(a), "l"(b)                                                                           \
        : "memory")

template <> struct wgmma<fp16, 64> {
    static FP_DEVICE void run(fragment<fp16, 64> &c, u64 a, u64 b)
    {
        FP_WGMMA_64("f16");
    }
};

template <> struct wgmma<bf16, 64> {
    static FP_DEVICE void run(fragment<bf16, 64> &c, u64 a, u64 b)
    {
        FP_WGMMA_64("bf16");
    }
};

#define FP_WGMMA_128(TYPE)                                                                         \
    asm volatile(                                                                                  \
        "{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"                                                   \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " {"                          \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "    \
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "    \
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "    \
        "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63 "                                   \
        "}, %64, %65, p, 1, 1, 0, 1; }"                                                            \
        : "+f"(c[0][0][0]), "+f"(c[0][0][1]), "+f"(c[0][1][0]), "+f"(c[0][1][1]),                  \
          "+f"(c[1][0][0]), "+f"(c[1][0][1]), "+f"(c[1][1][0]), "+f"(c[1][1][1]),                  \
          "+f"(c[2][0][0]), "+f"(c[2][0][1]), "+f"(c[2][1][0]), "+f"(c[2][1][1]),                  \
          "+f"(c[3][0][0]), "+f"(c[3][0][1]), "+f"(c[3][1][0]), "+f"(c[3][1][1]),                  \
          "+f"(c[4][0][0]), "+f"(c[4][0][1]), "+f"(c[4][1][0]), "+f"(c[4][1][1]),                  \
          "+f"(c[5][0][0]), "+f"(c[5][0][1]), "+f"(c[5][1][0]), "+f"(c[5][1][1]),                  \
          "+f"(c[6][0][0]), "+f"(c[6][0][1]), "+f"(c[6][1][0]), "+f"(c[6][1][1]),                  \
          "+f"(c[7][0][0]), "+f"(c[7][0][1]), "+f"(c[7][1][0]), "+f"(c[7][1][1]),                  \
          "+f"(c[8][0][0]), "+f"(c[8][0][1]), "+f"(c[8][1][0]), "+f"(c[8][1][1]),                  \
          "+f"(c[9][0][0]), "+f"(c[9][0][1]), "+f"(c[9][1][0]), "+f"(c[9][1][1]),                  \
          "+f"(c[10][0][0]), "+f"(c[10][0][1]), "+f"(c[10][1][0]), "+f"(c[10][1][1]),              \
          "+f"(c[11][0][0]), "+f"(c[11][0][1]), "+f"(c[11][1][0]), "+f"(c[11][1][1]),              \
          "+f"(c[12][0][0]), "+f"(c[12][0][1]), "+f"(c[12][1][0]), "+f"(c[12][1][1]),              \
          "+f"(c[13][0][0]), "+f"(c[13][0][1]), "+f"(c[13][1][0]), "+f"(c[13][1][1]),              \
          "+f"(c[14][0][0]), "+f"(c[14][0][1]), "+f"(c[14][1][0]), "+f"(c[14][1][1]),              \
          "+f"(c[15][0][0]), "+f"(c[15][0][1]), "+f"(c[15][1][0]), "+f"(c[15][1][1])               \
        : "l"(a), "l"(b)                                                                           \
        : "memory")

template <> struct wgmma<fp16, 128> {
    static FP_DEVICE void run(fragment<fp16, 128> &c, u64 a, u64 b)
    {
        FP_WGMMA_128("f16");
    }
};

template <> struct wgmma<bf16, 128> {
    static FP_DEVICE void run(fragment<bf16, 128> &c, u64 a, u64 b)
    {
        FP_WGMMA_128("bf16");
    }
};

#define FP_WGMMA_192(TYPE)                                                                         \
    asm volatile(                                                                                  \
        "{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"                                                   \
        "wgmma.mma_async.sync.aligned.m64n192k16.f32." TYPE "." TYPE " {"                          \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "    \
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "    \
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "    \
        "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "    \
        "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, "    \
        "%87, %88, %89, %90, %91, %92, %93, %94, %95 "                                             \
        "}, %96, %97, p, 1, 1, 0, 1; }"                                                            \
        : "+f"(c[0][0][0]), "+f"(c[0][0][1]), "+f"(c[0][1][0]), "+f"(c[0][1][1]),                  \
          "+f"(c[1][0][0]), "+f"(c[1][0][1]), "+f"(c[1][1][0]), "+f"(c[1][1][1]),                  \
          "+f"(c[2][0][0]), "+f"(c[2][0][1]), "+f"(c[2][1][0]), "+f"(c[2][1][1]),                  \
          "+f"(c[3][0][0]), "+f"(c[3][0][1]), "+f"(c[3][1][0]), "+f"(c[3][1][1]),                  \
          "+f"(c[4][0][0]), "+f"(c[4][0][1]), "+f"(c[4][1][0]), "+f"(c[4][1][1]),                  \
          "+f"(c[5][0][0]), "+f"(c[5][0][1]), "+f"(c[5][1][0]), "+f"(c[5][1][1]),                  \
          "+f"(c[6][0][0]), "+f"(c[6][0][1]), "+f"(c[6][1][0]), "+f"(c[6][1][1]),                  \
          "+f"(c[7][0][0]), "+f"(c[7][0][1]), "+f"(c[7][1][0]), "+f"(c[7][1][1]),                  \
          "+f"(c[8][0][0]), "+f"(c[8][0][1]), "+f"(c[8][1][0]), "+f"(c[8][1][1]),                  \
          "+f"(c[9][0][0]), "+f"(c[9][0][1]), "+f"(c[9][1][0]), "+f"(c[9][1][1]),                  \
          "+f"(c[10][0][0]), "+f"(c[10][0][1]), "+f"(c[10][1][0]), "+f"(c[10][1][1]),              \
          "+f"(c[11][0][0]), "+f"(c[11][0][1]), "+f"(c[11][1][0]), "+f"(c[11][1][1]),              \
          "+f"(c[12][0][0]), "+f"(c[12][0][1]), "+f"(c[12][1][0]), "+f"(c[12][1][1]),              \
          "+f"(c[13][0][0]), "+f"(c[13][0][1]), "+f"(c[13][1][0]), "+f"(c[13][1][1]),              \
          "+f"(c[14][0][0]), "+f"(c[14][0][1]), "+f"(c[14][1][0]), "+f"(c[14][1][1]),              \
          "+f"(c[15][0][0]), "+f"(c[15][0][1]), "+f"(c[15][1][0]), "+f"(c[15][1][1]),              \
          "+f"(c[16][0][0]), "+f"(c[16][0][1]), "+f"(c[16][1][0]), "+f"(c[16][1][1]),              \
          "+f"(c[17][0][0]), "+f"(c[17][0][1]), "+f"(c[17][1][0]), "+f"(c[17][1][1]),              \
          "+f"(c[18][0][0]), "+f"(c[18][0][1]), "+f"(c[18][1][0]), "+f"(c[18][1][1]),              \
          "+f"(c[19][0][0]), "+f"(c[19][0][1]), "+f"(c[19][1][0]), "+f"(c[19][1][1]),              \
          "+f"(c[20][0][0]), "+f"(c[20][0][1]), "+f"(c[20][1][0]), "+f"(c[20][1][1]),              \
          "+f"(c[21][0][0]), "+f"(c[21][0][1]), "+f"(c[21][1][0]), "+f"(c[21][1][1]),              \
          "+f"(c[22][0][0]), "+f"(c[22][0][1]), "+f"(c[22][1][0]), "+f"(c[22][1][1]),              \
          "+f"(c[23][0][0]), "+f"(c[23][0][1]), "+f"(c[23][1][0]), "+f"(c[23][1][1])               \
        : "l"(a), "l"(b)                                                                           \
        : "memory")

template <> struct wgmma<fp16, 192> {
    static FP_DEVICE void run(fragment<fp16, 192> &c, u64 a, u64 b)
    {
        FP_WGMMA_192("f16");
    }
};

template <> struct wgmma<bf16, 192> {
    static FP_DEVICE void run(fragment<bf16, 192> &c, u64 a, u64 b)
    {
        FP_WGMMA_192("bf16");
    }
};

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
                wgmma<D, BN>::run(c[0], wgmma_matrix(at_a + i * 32, 16, 1024),
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
