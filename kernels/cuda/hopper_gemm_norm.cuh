/* The layernorm of hopper_gemm.cuh: a group of thread blocks shares the rows of a strip, each has
 * BN of their columns in its registers.
 *
 *   x = sum + residual;  out = (x - mean) / sqrt(variance + eps) * gamma + beta
 *
 * A thread block computes the moments of its columns of a row, the mean and the sum of the squared
 * distances from it, and sends them to all thread blocks of the group.  The moments of the row
 * follow by Chan's formula for parts of equal size: the mean of the means m_i, and
 *
 *   squares = sum of squares_i + BN * sum of (m_i - mean)^2
 *
 * Source: Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample
 * variances, 1979.
 *
 * NORM_CLUSTER: the group is a cluster, and moments go straight into the shared memory of the
 * others.  Two places for them suffice, for tiles with even and odd numbers.  A team sends the
 * moments of tile i + 1 after the other one has read those of tile i: taken[] tells it so, and with
 * SWAP the teams share s.out.  So who has received those of tile i + 1 may send those of tile
 * i + 2.
 *
 * NORM_MEMORY: neighbouring thread blocks are a group, so that few multiprocessors are left over.
 * Moments go through mailboxes in memory: each thread block has one for each strip and sender.  A
 * word holds the moments of a row; it is 0 while it is empty, so that it needs no other mark, and
 * the warp that reads it empties it.  No more thread blocks run than the device holds, so that all
 * of a group will have begun.
 *
 * After a split (SPLIT > 1) a thread block has the whole sums of some rows and of one tile's
 * columns.  The group are then the thread blocks of other clusters that have the same rows. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_NORM_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_NORM_CUH

#include "hopper_gemm_store.cuh"

namespace fp
{

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

/* W: gemm_stores */
template <class W> struct gemm_norms : W {
    using D = typename W::D;
    using S = typename W::S;
    using sums = typename W::sums;
    using W::BM, W::BN, W::MI, W::NORM, W::PANEL;
    using W::end, W::s;
    using W::mailbox, W::part, W::ranks, W::matrices_at, W::block, W::warp_row, W::ends;
    using W::store_panel;
    using W::W;

    static FP_DEVICE int lane()
    {
        return static_cast<int>(threadIdx.x) % 32;
    }

    /* The moments of this thread block's columns, of two rows at once: from the sums of numbers and
     * of their squares.  Where a mean is more than 16 times the standard deviation, the difference
     * of these has too few right digits, and a second pass adds up the squared distances from the
     * mean; where the difference is no number, too. */
    FP_DEVICE void moments_of(sums &c, int m, float (&mean)[2], float (&squares)[2]) const
    {
        float sum[4] = {}, square[4] = {};
        each_of(c, m, [&](float x, int i) { sum[i] += x, square[i] += x * x; });
        float row[4] = {sum[0] + sum[1], sum[2] + sum[3], square[0] + square[1],
                        square[2] + square[3]};
        lanes_sums<4>(row);
        bool far = false;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float part = row[r] * row[r] * (1.0f / BN);
            mean[r] = row[r] * (1.0f / BN);
            squares[r] = row[r + 2] - part;
            far |= !(part <= 16 * 16 * squares[r]);
        }
        if (__any_sync(~0u, far))
            distances_from(c, m, mean, squares);
    }

    FP_DEVICE void distances_from(sums &c, int m, const float (&mean)[2], float (&squares)[2]) const
    {
        float square[4] = {};
        each_of(c, m, [&](float x, int i) {
            const float away = x - mean[i / 2];
            square[i] += away * away;
        });
        squares[0] = square[0] + square[1], squares[1] = square[2] + square[3];
        lanes_sums<4>(squares);
    }

    /* Calls what(number, i) for each of a product's sums; i: 0 and 1 in its first row, 2 and 3 in
     * its second one. */
    template <class What> FP_DEVICE void each_of(sums &c, int m, const What &what) const
    {
#pragma unroll
        for (int p = 0; p < BN / 8; p++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                what(block(c, m, p)[i / 2][i % 2], i);
    }

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

    FP_DEVICE void send_row(int to, int strip, u32 buffer, int row, const moments &x) const
    {
        if constexpr (NORM == NORM_CLUSTER)
            send_cluster(cluster_address(shared_address(&s.part[buffer][part()][row]), to), x.mean,
                         x.squares, cluster_address(shared_address(&s.shared[buffer]), to));
        else
            store_relaxed(mailbox(strip, 0, part()) + row + to * (ranks() * BM),
                          word_of(x.mean, x.squares));
    }

    /* The four lanes of a row send to every fourth thread block each. */
    FP_DEVICE void send(sums &c, int left_out, int strip, u32 buffer, int member) const
    {
#pragma unroll
        for (int m = 0; m < MI; m++) {
            if (!ends(m, left_out))
                continue;
            float mean[2], squares[2];
            moments_of(c, m, mean, squares);
#pragma unroll
            for (int i = 0; i < NORM_RANKS / 4; i++)
                if (takes<4>(i))
#pragma unroll
                    for (int r = 0; r < 2; r++)
                        send_row(lane() % 4 + i * 4, strip, buffer,
                                 warp_row(member, m) + fragment_row<D>(r), {mean[r], squares[r]});
        }
    }

    FP_DEVICE scaling scaling_of(float mean, float squares) const
    {
        const float factor = rsqrtf(squares * (1.0f / BN) * portion() + end.eps);
        return {factor, -mean * factor};
    }

    /* What a thread block has of a row.  Not by a division, which is a call of a subroutine: the
     * kernels with one took longer for their products, too. */
    FP_DEVICE float portion() const
    {
        return __fdividef(1.0f, static_cast<float>(ranks()));
    }

    /* LANES neighbouring lanes share a row: each takes the moments that every LANES-th thread
     * block of the group has sent, from its own number on.  Whether there is an i-th one. */
    template <int LANES> FP_DEVICE bool takes(int i) const
    {
        return i * LANES + lane() % LANES < ranks();
    }

    /* Waits for a lane's moments of ROWS rows, each BELOW rows below the one before, and empties
     * their mailboxes.  from: the first one's.  The lanes of a warp wait together: were each to go
     * on alone, what follows would run for one after another. */
    template <int LANES, int BELOW, int ROWS, int EACH>
    FP_DEVICE void take_moments(moments (&x)[ROWS][EACH], u64 *from) const
    {
        u64 word[ROWS][EACH];
        bool all;
        do {
            all = true;
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int i = 0; i < EACH; i++)
                    word[r][i] = load_relaxed_if(takes<LANES>(i), from + i * LANES * BM + r * BELOW,
                                                 FIRST_BIT);
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
                if (takes<LANES>(i))
                    store_relaxed(from + i * LANES * BM + r * BELOW, 0);
                x[r][i] = moments_in(word[r][i]);
            }
    }

    static constexpr u64 FIRST_BIT = 1ull << 32; /* of squares: next to 0 */

    /* Joins what the lanes of each row have taken. */
    template <int LANES, int ROWS, int EACH>
    FP_DEVICE void join(scaling (&k)[ROWS], const moments (&x)[ROWS][EACH]) const
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
            mean[r] *= portion();
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const float far = x[r][i].mean - mean[r];
                if (takes<LANES>(i))
                    squares[r] += x[r][i].squares + BN * far * far;
            }
        }
        lanes_sums<LANES>(squares);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            k[r] = scaling_of(mean[r], squares[r]);
    }

    /* The scalings of this lane's two rows, of a warp's 16 from `first` on. */
    FP_DEVICE void receive(scaling (&k)[2], int strip, u32 buffer, int first) const
    {
        moments x[2][NORM_RANKS / 4] = {};
        const int row = first + fragment_row<D>(0), from = lane() % 4;
        if constexpr (NORM == NORM_MEMORY)
            take_moments<4, 8>(x, mailbox(strip, part(), from) + row);
        else
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int i = 0; i < NORM_RANKS / 4; i++)
                    if (takes<4>(i))
                        x[r][i] = s.part[buffer][i * 4 + from][row + r * 8];
        join<4>(k, x);
    }

    /* Of 16 columns gamma and beta of this lane's pairs, see load_columns(). */
    FP_DEVICE void load_weights_of(u32 (&w)[4], int p) const
    {
        const uint4 x = reinterpret_cast<const uint4 *>(s.weights)[p / 2 * 4 + lane() % 4];
        w[0] = x.x, w[1] = x.y, w[2] = x.z, w[3] = x.w;
    }

    /* 16 rows of a warp, of product m. */
    FP_DEVICE void scale(sums &c, int m, const scaling (&k)[2], int row, int n0, u32 &panels) const
    {
        constexpr int BLOCKS = PANEL / 8;
#pragma unroll
        for (int q = 0; q < BN / 8; q += BLOCKS)
            store_panel(row, n0 + q * 8, panels, [&](u32 at) {
                u32 next[4];
                load_weights_of(next, q);
#pragma unroll
                for (int p = 0; p < BLOCKS; p += 2) {
                    const u32 w[4] = {next[0], next[1], next[2], next[3]};
                    u32 packed[4];
                    if (p + 2 < BLOCKS)
                        load_weights_of(next, q + p + 2);
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        auto &x = block(c, m, q + p + i / 2)[i % 2];
                        float gamma[2], beta[2], v[2];
                        D::unpack(w[i / 2 * 2], gamma[0], gamma[1]);
                        D::unpack(w[i / 2 * 2 + 1], beta[0], beta[1]);
#pragma unroll
                        for (int e = 0; e < 2; e++)
                            v[e] = (x[e] * k[i % 2].factor + k[i % 2].shift) * gamma[e] + beta[e];
                        packed[i] = D::pack(v[0], v[1]);
                    }
                    store_matrix(matrices_at(at, WARP_ROWS, 0, p), packed);
                }
            });
    }

    /* The mbarrier on which a team arrives when it has read the moments of a tile. */
    FP_DEVICE u32 taken(int team) const
    {
        return shared_address(&s.taken[team]);
    }

    /* The tile of a strip, this thread block's i-th. */
    FP_DEVICE void normalise(sums &c, int left_out, int strip, u32 i, int team, int member,
                             u32 &panels) const
    {
        constexpr bool ORDERED = NORM == NORM_CLUSTER && S::TEAMS > 1;
        const u32 buffer = NORM == NORM_CLUSTER ? i & 1 : 0, phase = i >> 1 & 1,
                  full = shared_address(&s.shared[buffer]);
        if (NORM == NORM_CLUSTER && member == 0 && threadIdx.x % FOUR_WARPS == 0)
            mbarrier_expect(full, ranks() * BM * static_cast<int>(sizeof(moments)));
        __syncwarp();
        if constexpr (ORDERED)
            mbarrier_wait(taken(1 - team), team == 0 ? phase ^ 1 : phase);
        send(c, left_out, strip, buffer, member);
        if constexpr (NORM == NORM_CLUSTER)
            mbarrier_wait(full, phase);
        scaling k[MI][2];
        if constexpr (ORDERED) { /* all at once: the other team waits */
#pragma unroll
            for (int m = 0; m < MI; m++)
                receive(k[m], strip, buffer, warp_row(member, m));
            mbarrier_arrive_warp(taken(team));
        }
        mbarrier_wait(shared_address(&s.columns), 0);
#pragma unroll
        for (int m = 0; m < MI; m++) {
            if (!ends(m, left_out))
                continue;
            if constexpr (!ORDERED)
                receive(k[m], strip, buffer, warp_row(member, m));
            scale(c, m, k[m], strip * BM + warp_row(member, m), part() * BN, panels);
        }
    }

    /* ---- after a split ---------------------------------------------------------------------- */

    /* CHUNKS neighbouring lanes have a row of the tile, 16 bytes each.  They share what they send
     * to the thread blocks that have the row's other columns, and what these send. */
    static constexpr int CHUNKS = BN / VEC<D>;

    /* What a thread block sends of rows, each BELOW rows below the one before.  to: the mailbox of
     * the first one at the first thread block of the group. */
    template <int BELOW, int ROWS>
    FP_DEVICE void send_moments(const float (&v)[ROWS][VEC<D>], u64 *to) const
    {
        float mean[ROWS] = {}, squares[ROWS] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int e = 0; e < VEC<D>; e++)
                mean[r] += v[r][e] * (1.0f / BN);
        lanes_sums<CHUNKS>(mean);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int e = 0; e < VEC<D>; e++)
                squares[r] += (v[r][e] - mean[r]) * (v[r][e] - mean[r]);
        lanes_sums<CHUNKS>(squares);
#pragma unroll 1
        for (int i = lane() % CHUNKS; i < ranks(); i += CHUNKS)
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                store_relaxed(to + i * (ranks() * BM) + r * BELOW, word_of(mean[r], squares[r]));
    }

    /* Of rows of tile `number`, from `row` on, each BELOW rows below the one before: this lane's 16
     * bytes from `column` on. */
    template <int BELOW, int ROWS>
    FP_DEVICE void normalise_chunks(float (&v)[ROWS][VEC<D>], int number, int row, int column) const
    {
        constexpr int EACH = (RANKS_OF_SPLIT + CHUNKS - 1) / CHUNKS;
        const auto at = W::place_of(number);
        float gamma[VEC<D>], beta[VEC<D>];
        load_vec<D>(end.gamma + column, gamma);
        load_vec<D>(end.beta + column, beta);
        moments x[ROWS][EACH];
        scaling k[ROWS];
        send_moments<BELOW>(v, mailbox(at.strip, 0, at.rank) + row);
        take_moments<CHUNKS, BELOW>(x, mailbox(at.strip, at.rank, lane() % CHUNKS) + row);
        join<CHUNKS>(k, x);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int e = 0; e < VEC<D>; e++)
                v[r][e] = (v[r][e] * k[r].factor + k[r].shift) * gamma[e] + beta[e];
    }
};

} // namespace fp

#endif
