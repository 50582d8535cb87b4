/* The layernorm of gemm_tma.cuh: the thread blocks of a cluster share the rows of a strip, each
 * has BN of their columns in its registers.
 *
 *   x = sum + residual;  out = (x - mean) / sqrt(variance + eps) * gamma + beta
 *
 * A thread block computes the moments of its columns of a row, the mean and the sum of the squared
 * distances from it, and sends them to all thread blocks of the cluster.  The moments of the row
 * follow by Chan's formula for parts of equal size: the mean of the means m_i, and
 *
 *   squares = sum of squares_i + BN * sum of (m_i - mean)^2
 *
 * Source: Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample
 * variances, 1979.
 *
 * Two places for moments suffice, for tiles with even and odd numbers.  Teams run their epilogues
 * one after another, because these need s.out.  So a thread block that has sent the moments of tile
 * i + 1 has read those of tile i, and who has received them may send those of tile i + 2. */
#ifndef FUSEPLAN_CUDA_GEMM_TMA_NORM_CUH
#define FUSEPLAN_CUDA_GEMM_TMA_NORM_CUH

#include "gemm_tma_copy.cuh"

namespace fp
{

/* W: gemm_copies */
template <class W> struct gemm_norms : W {
    using D = typename W::D;
    using S = typename W::S;
    using sums = typename W::sums;
    using W::BM, W::BN, W::MI;
    using W::n, W::end, W::s;
    using W::part, W::ranks, W::first_matrices, W::matrices_at, W::block, W::warp_row;
    using W::W;

    /* Before the first product.  All thread blocks have then set up their mbarriers. */
    FP_DEVICE void begin_norm() const
    {
        for (int i = threadIdx.x; i < BN / 2; i += S::CONSUMERS * FOUR_WARPS) {
            s.gamma[i] = reinterpret_cast<const u32 *>(end.gamma + part() * BN)[i];
            s.beta[i] = reinterpret_cast<const u32 *>(end.beta + part() * BN)[i];
        }
        cluster_arrive();
        cluster_wait();
    }

    /* Branches between steps keep ptxas from mixing them, for which registers would not suffice. */
    FP_DEVICE bool past_columns(int p) const
    {
        return p * 8 >= n;
    }

    static FP_DEVICE int lane()
    {
        return static_cast<int>(threadIdx.x) % 32;
    }

    FP_DEVICE void add_residual(sums &c, u32 out) const
    {
#pragma unroll
        for (int m = 0; m < MI; m++)
#pragma unroll
            for (int p = 0; p < BN / 8; p += 2) {
                if (past_columns(p))
                    break;
                u32 r[4];
                load_matrix(r, matrices_at(out, m, p));
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float lo, hi;
                    D::unpack(r[i], lo, hi);
                    auto &x = block(c, m, p + i / 2)[i % 2];
                    x[0] += lo, x[1] += hi;
                }
            }
    }

    /* Sends the moments of this thread block's columns: the four lanes of a row to every fourth
     * thread block each. */
    FP_DEVICE void send(sums &c, u32 buffer, int member) const
    {
        const u32 full = shared_address(&s.shared[buffer]);
#pragma unroll
        for (int m = 0; m < MI; m++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int row = warp_row(member, m) + fragment_row<D>(r);
                const u32 at = shared_address(&s.part[buffer][part()][row]);
                float mean, squares;
                moments_of(c, m, r, mean, squares);
#pragma unroll 1
                for (int to = lane() % 4; to < ranks(); to += 4)
                    send_cluster(cluster_address(at, to), mean, squares, cluster_address(full, to));
            }
    }

    FP_DEVICE void moments_of(sums &c, int m, int r, float &mean, float &squares) const
    {
        float sum[2] = {}, square[2] = {};
#pragma unroll
        for (int p = 0; p < BN / 8; p++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                sum[e] += block(c, m, p)[r][e];
        mean = lanes_sum<4>(sum[0] + sum[1]) * (1.0f / BN);
#pragma unroll
        for (int p = 0; p < BN / 8; p++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float far = block(c, m, p)[r][e] - mean;
                square[e] += far * far;
            }
        squares = lanes_sum<4>(square[0] + square[1]);
    }

    /* The scale of a row: its mean, and 1 / sqrt(variance + eps). */
    FP_DEVICE void combine(u32 buffer, int row, float &mean, float &inverse) const
    {
        const int count = ranks();
        float squares = 0.0f, between = 0.0f;
        mean = 0.0f;
#pragma unroll 4
        for (int i = 0; i < count; i++)
            mean += s.part[buffer][i][row].mean;
        mean /= static_cast<float>(count);
#pragma unroll 4
        for (int i = 0; i < count; i++) {
            const moments x = s.part[buffer][i][row];
            squares += x.squares;
            between += (x.mean - mean) * (x.mean - mean);
        }
        inverse = rsqrtf((squares + BN * between) / static_cast<float>(n) + end.eps);
    }

    FP_DEVICE void scale(sums &c, u32 out, u32 buffer, int member) const
    {
#pragma unroll
        for (int m = 0; m < MI; m++) {
            float mean[2], inverse[2];
#pragma unroll
            for (int r = 0; r < 2; r++)
                combine(buffer, warp_row(member, m) + fragment_row<D>(r), mean[r], inverse[r]);
#pragma unroll
            for (int p = 0; p < BN / 8; p += 2) {
                if (past_columns(p))
                    break;
                u32 packed[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    auto &x = block(c, m, p + i / 2)[i % 2];
                    float gamma[2], beta[2], v[2];
                    D::unpack(s.gamma[(p + i / 2) * 4 + lane() % 4], gamma[0], gamma[1]);
                    D::unpack(s.beta[(p + i / 2) * 4 + lane() % 4], beta[0], beta[1]);
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        v[e] = (x[e] - mean[i % 2]) * inverse[i % 2] * gamma[e] + beta[e];
                    packed[i] = D::pack(v[0], v[1]);
                }
                store_matrix(matrices_at(out, m, p), packed);
            }
        }
    }

    /* The tile that is this thread block's i-th; its residual lies in s.out. */
    FP_DEVICE void normalise(sums &c, u32 i, int member, u32 done) const
    {
        const u32 buffer = i & 1, phase = i >> 1 & 1, full = shared_address(&s.shared[buffer]);
        const u32 out = first_matrices(warp_row(member, 0));
        if (end.residual != nullptr)
            add_residual(c, out);
        if (member == 0 && threadIdx.x % FOUR_WARPS == 0)
            mbarrier_expect(full, ranks() * BM * static_cast<int>(sizeof(moments)));
        __syncwarp();
        send(c, buffer, member);
        mbarrier_wait(full, phase);
        scale(c, out, buffer, member);
        proxy_fence();
        mbarrier_arrive_warp(done);
    }
};

} // namespace fp

#endif
