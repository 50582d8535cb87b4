/* What thread blocks tell each other of the rows that they share, for a layernorm:
 *
 *   x = sum + residual;  out = (x - mean) / sqrt(variance + eps) * gamma + beta
 *
 * Each has BN columns of a row.  It computes their moments, the mean and the sum of the squared
 * distances from it, and sends them to all thread blocks of the group.  The moments of the row
 * follow by Chan's formula for parts of equal size: the mean of the means m_i, and
 *
 *   squares = sum of squares_i + BN * sum of (m_i - mean)^2
 *
 * An RMS norm takes no mean away and has no beta.
 *
 * Source: Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample
 * variances, 1979.
 *
 * FP_NORM_CLUSTER: the group is a cluster, and moments go straight into the shared memory of the
 * others.  Two places for them suffice, for tiles with even and odd numbers.  A team sends the
 * moments of tile i + 1 after the other one has read those of tile i: `taken` tells it so, and with
 * SWAP the teams share `out`.  So who has received those of tile i + 1 may send those of tile
 * i + 2.
 *
 * FP_NORM_MEMORY: neighbouring thread blocks are a group, so that few multiprocessors are left
 * over.  Moments go through mailboxes in memory: each thread block has one for each strip and
 * sender.  A word holds the moments of a row; it is 0 while it is empty, so that it needs no other
 * mark, and the warp that reads it empties it.  No more thread blocks run than the device holds, so
 * that all of a group will have begun. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_MOMENTS_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_MOMENTS_CUH

#include "hopper_gemm_work.cuh"

namespace fp::hopper_gemm
{

/* What normalises the sums x of a row, before gamma and beta: x * factor + shift. */
struct alignas(8) scaling {
    float factor, shift;
};

/* lanes_sum() of several numbers: the steps of one fill the time that those of the others take. */
template <int width, int count> FP_DEVICE void lanes_sums(float (&x)[count])
{
#pragma unroll
    for (int d = width / 2; d > 0; d /= 2) {
        float other[count];
#pragma unroll
        for (int i = 0; i < count; i++)
            other[i] = __shfl_xor_sync(0xffffffffu, x[i], d);
#pragma unroll
        for (int i = 0; i < count; i++)
            x[i] += other[i];
    }
}

template <class W> struct exchange {
    FP_GEMM_STEP;
    static constexpr u64 FIRST_BIT = 1ull << 32; /* of squares in a mailbox: next to 0 */

    /* The lowest bit of squares shows that the mailbox is not empty. */
    static FP_DEVICE u64 word_of(float mean, float squares)
    {
        return static_cast<u64>(__float_as_uint(squares) | 1) << 32 | __float_as_uint(mean);
    }

    static FP_DEVICE moments moments_in(u64 word)
    {
        return {__uint_as_float(static_cast<u32>(word)),
                __uint_as_float(static_cast<u32>(word >> 32))};
    }

    static FP_DEVICE void send_row(const W &w, int to, int strip, u32 buffer, int row,
                                   const moments &x)
    {
        if constexpr (S::NORM == FP_NORM_CLUSTER)
            send_cluster(cluster_address(shared_address(w.s.part[buffer][w.part()] + row), to),
                         x.mean, x.squares, cluster_address(address(w.s.shared[buffer]), to));
        else
            store_relaxed(w.mailbox(strip, 0, w.part()) + row + to * (w.ranks() * BM),
                          word_of(x.mean, x.squares));
    }

    /* Norms of sums that are results over alpha are the results' with eps over its square. */
    static FP_DEVICE float eps_of(const W &w)
    {
        const float inverse = w.a.e4m3.inverse;
        return S::UNSCALED ? w.end.eps * inverse * inverse : w.end.eps;
    }

    /* An RMS norm is of the mean square, which is the variance and the mean's square. */
    static FP_DEVICE scaling scaling_of(const W &w, float mean, float squares)
    {
        const float variance = squares * (1.0f / BN) * portion(w),
                    factor = rsqrtf((S::RMS ? variance + mean * mean : variance) + eps_of(w));
        return {factor, S::RMS ? 0.0f : -mean * factor};
    }

    /* What a thread block has of a row.  Not by a division, which is a call of a subroutine: the
     * kernels with one took longer for their products, too. */
    static FP_DEVICE float portion(const W &w)
    {
        return __fdividef(1.0f, static_cast<float>(w.ranks()));
    }

    /* LANES neighbouring lanes share a row: each takes the moments that every LANES-th thread
     * block of the group has sent, from its own number on.  Whether there is an i-th one. */
    template <int LANES> static FP_DEVICE bool takes(const W &w, int i)
    {
        return i * LANES + S::lane() % LANES < w.ranks();
    }

    /* Waits for a lane's moments of ROWS rows, each BELOW rows below the one before, and empties
     * their mailboxes.  from: the first one's.  The lanes of a warp wait together: were each to go
     * on alone, what follows would run for one after another. */
    template <int LANES, int BELOW, int ROWS, int EACH>
    static FP_DEVICE void take_moments(const W &w, moments (&x)[ROWS][EACH], u64 *from)
    {
        u64 word[ROWS][EACH];
        bool all;
        do {
            all = true;
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int i = 0; i < EACH; i++)
                    word[r][i] = load_relaxed_if(takes<LANES>(w, i),
                                                 from + i * LANES * BM + r * BELOW, FIRST_BIT);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int i = 0; i < EACH; i++)
                    all &= word[r][i] != 0;
        } while (!__all_sync(~0u, all));
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                if (takes<LANES>(w, i))
                    store_relaxed(from + i * LANES * BM + r * BELOW, 0);
                x[r][i] = moments_in(word[r][i]);
            }
    }

    /* Joins what the lanes of each row have taken. */
    template <int LANES, int ROWS, int EACH>
    static FP_DEVICE void join(const W &w, scaling (&k)[ROWS], const moments (&x)[ROWS][EACH])
    {
        float mean[ROWS] = {}, squares[ROWS] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
                mean[r] += x[r][i].mean;
        lanes_sums<LANES>(mean);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            mean[r] *= portion(w);
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const float far = x[r][i].mean - mean[r];
                if (takes<LANES>(w, i))
                    squares[r] += x[r][i].squares + BN * far * far;
            }
        }
        lanes_sums<LANES>(squares);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            k[r] = scaling_of(w, mean[r], squares[r]);
    }
};

} // namespace fp::hopper_gemm

#endif
