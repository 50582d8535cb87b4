/* Finish, by a layernorm of swapped operands.  A thread has two columns of many rows, and a row's
 * columns are with the lanes and warps of a team.
 *
 * Each warp leaves in shared memory what it knows of its columns of all rows.  Then one thread for
 * each row joins that of the warps, sends it to the group, waits for the group's, and leaves the
 * row's scaling for all.
 *
 * Parts of N columns are joined by Chan's formula, see hopper_gemm_moments.cuh, in sums s and in
 * Q = N * squares, in which it has no constants: two parts make s1 + s2 and
 * 2 * (Q1 + Q2) + (s1 - s2)^2, and k parts k * sum of Q_i + sum of (s_i - s_j)^2 for all i < j. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_NORM_SWAP_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_NORM_SWAP_CUH

#include "hopper_gemm_moments.cuh"
#include "hopper_gemm_store.cuh"

namespace fp::hopper_gemm
{

template <class W> struct norm_swap {
    FP_GEMM_STEP;
    using group = exchange<W>;
    using storing = store<W>;
    static constexpr fp_norm NORM = S::NORM;
    static constexpr int WARPS = 4 * S::GROUPS, COLUMNS = WARP_ROWS * MI; /* of a team, of a warp */
    static_assert(BM <= WARPS * 32, "a thread for each row");

    /* Of some columns of a row: their sum, and the sum of their squared distances from the mean
     * times their number. */
    struct alignas(8) spread {
        float sum, squares;
    };
    static_assert(WARPS * BM * sizeof(spread) <= sizeof(S::smem::out), "what warps leave there");

    /* Of two parts with the same number of columns. */
    static FP_DEVICE spread merge(const spread &x, const spread &y)
    {
        const float apart = x.sum - y.sum;
        return {x.sum + y.sum, 2.0f * (x.squares + y.squares) + apart * apart};
    }

    static FP_DEVICE spread of_lane(const spread &x, int far)
    {
        return {__shfl_xor_sync(0xffffffff, x.sum, far),
                __shfl_xor_sync(0xffffffff, x.squares, far)};
    }

    /* Leaves one of two rows to the lane `far` from this one, for its part of the other one. */
    static FP_DEVICE spread trade(const spread &first, const spread &second, int far)
    {
        const bool second_is_mine = S::lane() & far;
        return merge(choose(second_is_mine, second, first),
                     of_lane(choose(second_is_mine, first, second), far));
    }

    /* By values: a choice between addresses would need local memory. */
    static FP_DEVICE spread choose(bool x, const spread &yes, const spread &no)
    {
        return {x ? yes.sum : no.sum, x ? yes.squares : no.squares};
    }

    /* A thread's columns of a row, two of each product. */
    static FP_DEVICE spread of_thread(sums &c, int p, int odd)
    {
        spread of[MI], all = {0.0f, 0.0f};
#pragma unroll
        for (int m = 0; m < MI; m++) {
            const auto &x = S::block(c, m, p);
            of[m] = merge({x[0][odd], 0.0f}, {x[1][odd], 0.0f});
            all.sum += of[m].sum, all.squares += MI * of[m].squares;
#pragma unroll
            for (int i = 0; i < m; i++)
                all.squares += (of[m].sum - of[i].sum) * (of[m].sum - of[i].sum);
        }
        return all;
    }

    /* A warp's columns of all rows.  Eight lanes have columns of the same rows: of four rows at
     * once, they trade until two lanes have the whole of one. */
    static FP_DEVICE void write_spreads(const W &w, sums &c, spread *to)
    {
        const int row = S::lane() / 16 * 8 + S::lane() % 4 * 2 + S::lane() / 8 % 2;
#pragma unroll
        for (int p = 0; p < BM / 8; p += 2) {
            spread of[2];
#pragma unroll
            for (int odd = 0; odd < 2; odd++)
                of[odd] = trade(of_thread(c, p, odd), of_thread(c, p + 1, odd), 16);
            const spread half = trade(of[0], of[1], 8);
            const spread whole = merge(half, of_lane(half, 4));
            if (S::lane() % 8 < 4)
                to[p * 8 + row] = whole;
        }
    }

    /* The moments of the team's columns of a row, from what its warps have written. */
    static FP_DEVICE moments join(const spread *from)
    {
        float sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            sum += from[i * BM].sum;
        const float mean = sum * (1.0f / WARPS);
#pragma unroll
        for (int i = 0; i < WARPS; i++) {
            const spread x = from[i * BM];
            squares += x.squares + (x.sum - mean) * (x.sum - mean);
        }
        return {mean * (1.0f / COLUMNS), squares * (1.0f / COLUMNS)};
    }

    /* Sends a row's moments to all thread blocks of the group. */
    static FP_DEVICE void send(const W &w, const moments &x, int strip, u32 buffer, int row)
    {
#pragma unroll
        for (int to = 0; to < FP_GEMM_RANKS; to++)
            if (to < w.ranks())
                group::send_row(w, to, strip, buffer, row, x);
    }

    /* Waits for a row's moments of all thread blocks of the group, and joins them. */
    static FP_DEVICE scaling receive(const W &w, int strip, u32 buffer, u32 phase, int row)
    {
        moments of[FP_GEMM_RANKS];
        if constexpr (NORM == FP_NORM_CLUSTER) {
            mbarrier_wait(address(w.s.shared[buffer]), phase);
#pragma unroll
            for (int i = 0; i < FP_GEMM_RANKS; i++)
                if (i < w.ranks())
                    of[i] = w.s.part[buffer][i][row];
        } else {
            collect_row(w, of, w.mailbox(strip, w.part(), 0) + row);
        }
        float mean = 0.0f, squares = 0.0f, between = 0.0f;
#pragma unroll
        for (int i = 0; i < FP_GEMM_RANKS; i++)
            mean += i < w.ranks() ? of[i].mean : 0.0f;
        mean *= group::portion(w);
#pragma unroll
        for (int i = 0; i < FP_GEMM_RANKS; i++)
            if (i < w.ranks())
                squares += of[i].squares, between += (of[i].mean - mean) * (of[i].mean - mean);
        return group::scaling_of(w, mean, squares + BN * between);
    }

    /* Waits for what all thread blocks send of a row, and empties their mailboxes. */
    static FP_DEVICE void collect_row(const W &w, moments (&of)[FP_GEMM_RANKS], u64 *from)
    {
        u64 word[FP_GEMM_RANKS];
        bool all;
        do {
            all = true;
#pragma unroll
            for (int i = 0; i < FP_GEMM_RANKS; i++) {
                word[i] = i < w.ranks() ? load_relaxed(from + i * BM) : 1;
                all = all && word[i] != 0;
            }
        } while (!all);
#pragma unroll
        for (int i = 0; i < FP_GEMM_RANKS; i++) {
            if (i < w.ranks())
                store_relaxed(from + i * BM, 0);
            of[i] = group::moments_in(word[i]);
        }
    }

    static FP_DEVICE void scale(const W &w, sums &c, const scaling *scalings, u32 out, int member,
                                u32 done)
    {
#pragma unroll
        for (int m = 0; m < MI; m++) {
            float gamma[2], beta[2] = {};
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int column = S::warp_row(member, m) + half * 8 + S::lane() / 4;
                float none;
                D::unpack(reinterpret_cast<const u16 *>(w.s.weights)[column], gamma[half], none);
                if constexpr (!S::RMS)
                    D::unpack(reinterpret_cast<const u16 *>(w.s.weights)[BN + column], beta[half],
                              none);
            }
#pragma unroll
            for (int p = 0; p < BM / 8; p += 2) {
                u32 packed[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const auto &x = S::block(c, m, p + i / 2)[i % 2];
                    float v[2];
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const scaling k = scalings[(p + i / 2) * 8 + S::lane() % 4 * 2 + e];
                        v[e] = (x[e] * k.factor + k.shift) * gamma[i % 2] + beta[i % 2];
                    }
                    packed[i] = D::pack(v[0], v[1]);
                }
                store_matrix_transposed(S::matrices_at(out, BM, m, p), packed);
            }
        }
        storing::hand_in(done);
    }

    /* The tile of a strip.  `out` has the spreads of the warps at first,
     * then, where KEEPS, the sums.  The scalings go to
     * part[buffer][0]: with FP_NORM_CLUSTER in the place of moments that were read. */
    static FP_DEVICE void normalise(const W &w, sums &c, const item &i, u32 ready, u32 done)
    {
        const int strip = w.strip_of(i.number), team = i.team, member = i.member;
        const u32 buffer = NORM == FP_NORM_CLUSTER ? i.nth & 1 : 0, phase = i.nth >> 1 & 1;
        const int tid = member * FOUR_WARPS + static_cast<int>(threadIdx.x) % FOUR_WARPS;
        const u32 out = S::first_matrices(address(w.s.out), BM, S::warp_row(member, 0));
        auto *const parts = reinterpret_cast<spread *>(w.s.out);
        auto *const scalings = reinterpret_cast<scaling *>(w.s.part[buffer][0]);
        if (NORM == FP_NORM_CLUSTER && tid == 0)
            mbarrier_expect(address(w.s.shared[buffer]),
                            w.ranks() * BM * static_cast<int>(sizeof(moments)));
        mbarrier_wait(address(w.s.columns), 0);
        S::meet(team);
        write_spreads(w, c, parts + tid / 32 * BM);
        S::meet(team);
        if (tid < BM) {
            send(w, join(parts + tid), strip, buffer, tid);
            if constexpr (!S::KEEPS)
                scalings[tid] = receive(w, strip, buffer, phase, tid);
        }
        if constexpr (S::KEEPS) { /* while the others' moments are on their way */
            S::meet(team);
            storing::hand_over(w, c, member, done);
            if (tid < BM)
                scalings[tid] = receive(w, strip, buffer, phase, tid);
        }
        S::meet(team);
        if constexpr (S::KEEPS)
            mbarrier_wait(ready, 1);
        scale(w, c, scalings, out, member, done);
    }
};

} // namespace fp::hopper_gemm

#endif
