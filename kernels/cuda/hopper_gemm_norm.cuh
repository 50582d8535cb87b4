/* Finish, by a layernorm: a group of thread blocks has the tiles of a row strip, each BN of their
 * columns in its registers.  See hopper_gemm_moments.cuh for what they tell each other. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_NORM_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_NORM_CUH

#include "hopper_gemm_moments.cuh"
#include "hopper_gemm_store.cuh"

namespace fp::hopper_gemm
{

template <class W> struct norm {
    FP_GEMM_STEP;
    using group = exchange<W>;
    using storing = store<W>;
    static constexpr fp_norm NORM = S::NORM;
    static constexpr int BLOCKS = PANEL / 8; /* of 8 columns */

    static FP_DEVICE bool ends(int m, int left_out)
    {
        return !S::SHARES || m != left_out;
    }

    /* The moments of this thread block's columns, of two rows at once: from the sums of numbers and
     * of their squares.  Where a mean is more than 16 times the standard deviation, the difference
     * of these has too few right digits, and a second pass adds up the squared distances from the
     * mean; where the difference is no number, too.  What other rows of the warp are, of other
     * sequences or of none, changes no bit. */
    static FP_DEVICE void moments_of(const W &w, sums &c, int m, float (&mean)[2],
                                     float (&squares)[2])
    {
        float sum[4] = {}, square[4] = {};
        each_of(w, c, m, [&](float x, int i) { sum[i] += x, square[i] += x * x; });
        float row[4] = {sum[0] + sum[1], sum[2] + sum[3], square[0] + square[1],
                        square[2] + square[3]};
        lanes_sums<4>(row);
        bool far[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float part = row[r] * row[r] * (1.0f / BN);
            mean[r] = row[r] * (1.0f / BN);
            squares[r] = row[r + 2] - part;
            far[r] = !(part <= 16 * 16 * squares[r]);
        }
        if (__any_sync(~0u, far[0] || far[1]))
            distances_from(w, c, m, mean, far, squares);
    }

    /* Of rows whose mean is far from 0. */
    static FP_DEVICE void distances_from(const W &w, sums &c, int m, const float (&mean)[2],
                                         const bool (&far)[2], float (&squares)[2])
    {
        float square[4] = {};
        each_of(w, c, m, [&](float x, int i) {
            const float away = x - mean[i / 2];
            square[i] += away * away;
        });
        float row[2] = {square[0] + square[1], square[2] + square[3]};
        lanes_sums<4>(row);
#pragma unroll
        for (int r = 0; r < 2; r++)
            squares[r] = far[r] ? row[r] : squares[r];
    }

    /* Calls what(number, i) for each of a product's sums; i: 0 and 1 in its first row, 2 and 3 in
     * its second one. */
    template <class What>
    static FP_DEVICE void each_of(const W &w, sums &c, int m, const What &what)
    {
#pragma unroll
        for (int p = 0; p < BN / 8; p++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                what(S::block(c, m, p)[i / 2][i % 2], i);
    }

    /* The four lanes of a row send to every fourth thread block each. */
    static FP_DEVICE void send(const W &w, sums &c, int left_out, int strip, u32 buffer, int member)
    {
#pragma unroll
        for (int m = 0; m < MI; m++) {
            if (!ends(m, left_out))
                continue;
            float mean[2], squares[2];
            moments_of(w, c, m, mean, squares);
#pragma unroll
            for (int i = 0; i < FP_GEMM_RANKS / 4; i++)
                if (group::template takes<4>(w, i))
#pragma unroll
                    for (int r = 0; r < 2; r++)
                        group::send_row(w, S::lane() % 4 + i * 4, strip, buffer,
                                        S::warp_row(member, m) + fragment_row<D>(r),
                                        {mean[r], squares[r]});
        }
    }

    /* The scalings of this lane's two rows, of a warp's 16 from `first` on. */
    static FP_DEVICE void receive(const W &w, scaling (&k)[2], int strip, u32 buffer, int first)
    {
        moments x[2][FP_GEMM_RANKS / 4] = {};
        const int row = first + fragment_row<D>(0), from = S::lane() % 4;
        if constexpr (NORM == FP_NORM_MEMORY)
            group::template take_moments<4, 8>(w, x, w.mailbox(strip, w.part(), from) + row);
        else
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int i = 0; i < FP_GEMM_RANKS / 4; i++)
                    if (group::template takes<4>(w, i))
                        x[r][i] = w.s.part[buffer][i * 4 + from][row + r * 8];
        group::template join<4>(w, k, x);
    }

    /* Of 16 columns gamma and beta of this lane's pairs, see load::columns(). */
    static FP_DEVICE void load_weights_of(const W &w, u32 (&r)[4], int p)
    {
        const uint4 x = reinterpret_cast<const uint4 *>(w.s.weights)[p / 2 * 4 + S::lane() % 4];
        r[0] = x.x, r[1] = x.y, r[2] = x.z, r[3] = x.w;
    }

    /* Calls what(p, pairs) for blocks p and p + 1 of each panel, as store::leave() has pairs. */
    template <class What>
    static FP_DEVICE void scale_panel(const W &w, sums &c, int m, const scaling (&k)[2], int q,
                                      const What &what)
    {
        u32 next[4];
        load_weights_of(w, next, q);
#pragma unroll
        for (int p = 0; p < BLOCKS; p += 2) {
            const u32 r[4] = {next[0], next[1], next[2], next[3]};
            u32 packed[4];
            if (p + 2 < BLOCKS)
                load_weights_of(w, next, q + p + 2);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                auto &x = S::block(c, m, q + p + i / 2)[i % 2];
                float gamma[2], beta[2], v[2];
                D::unpack(r[i / 2 * 2], gamma[0], gamma[1]);
                D::unpack(r[i / 2 * 2 + 1], beta[0], beta[1]);
#pragma unroll
                for (int e = 0; e < 2; e++)
                    v[e] = (x[e] * k[i % 2].factor + k[i % 2].shift) * gamma[e] + beta[e];
                packed[i] = D::pack(v[0], v[1]);
            }
            what(p, packed);
        }
    }

    /* 16 rows of a warp, of product m. */
    static FP_DEVICE void scale(const W &w, sums &c, int m, const scaling (&k)[2], int row, int n0,
                                u32 &panels)
    {
#pragma unroll
        for (int q = 0; q < BN / 8; q += BLOCKS)
            if constexpr (S::OUT_E4M3)
                scale_e4m3(w, c, m, k, q, row, n0 + q * 8, panels);
            else
                storing::store_panel(w, w.maps.out, row, n0 + q * 8, panels, [&](u32 at) {
                    scale_panel(w, c, m, k, q, [&](int p, const u32(&pairs)[4]) {
                        store_matrix(S::matrices_at(at, WARP_ROWS, 0, p), pairs);
                    });
                });
    }

    /* Where registers suffice, pairs of a panel that is stored twice stay in them until both its
     * places are free.  Else they come back from shared memory. */
    static constexpr bool AT_ONCE = S::SPARE && S::OUT_BOTH && S::SLOTS == 2;

    /* leave_pairs(first of a place) leaves the panel in e4m3. */
    template <class Leave>
    static FP_DEVICE void store_at_once(const W &w, int row, int column, u32 &panels,
                                        const u32 (&kept)[BLOCKS / 2][4], const Leave &leave_pairs)
    {
        const u32 half = storing::next_panel(w, panels), bytes = storing::next_panel(w, panels),
                  first = storing::template first_of<false>(half);
        if (S::lane() == 0)
            box_stores_read<0>();
        __syncwarp();
#pragma unroll
        for (int p = 0; p < BLOCKS; p += 2)
            store_matrix(S::matrices_at(first, WARP_ROWS, 0, p), kept[p / 2]);
        leave_pairs(storing::template first_of<true>(bytes));
        proxy_fence();
        __syncwarp();
        if (S::lane() == 0) {
            box_store(&w.maps.out, column, row, half);
            box_stores_end(); /* a group for each place, as store_panel() waits for them */
            box_store(&w.maps.e4m3, column, row, bytes);
            box_stores_end();
        }
    }

    /* A panel from block q on, in e4m3, and with OUT_BOTH as it is. */
    static FP_DEVICE void scale_e4m3(const W &w, sums &c, int m, const scaling (&k)[2], int q,
                                     int row, int column, u32 &panels)
    {
        u32 kept[BLOCKS / 2][4], from = 0;
        const auto leave_pairs = [&](u32 at) {
#pragma unroll
            for (int p = 0; p < BLOCKS; p += 4)
                pairs<W>::leave(w, kept[p / 2], kept[p / 2 + 1], at ^ p * 8);
        };
        if constexpr (S::OUT_BOTH && !AT_ONCE)
            storing::store_panel(w, w.maps.out, row, column, panels, [&](u32 at) {
                from = at;
                scale_panel(w, c, m, k, q, [&](int p, const u32(&pairs)[4]) {
                    store_matrix(S::matrices_at(at, WARP_ROWS, 0, p), pairs);
                });
            });
        else
            scale_panel(w, c, m, k, q, [&](int p, const u32(&pairs)[4]) {
#pragma unroll
                for (int i = 0; i < 4; i++)
                    kept[p / 2][i] = pairs[i];
            });
        if constexpr (AT_ONCE)
            return store_at_once(w, row, column, panels, kept, leave_pairs);
        storing::template store_panel<true>(w, w.maps.e4m3, row, column, panels, [&](u32 at) {
            if constexpr (S::OUT_BOTH) {
#pragma unroll
                for (int p = 0; p < BLOCKS; p += 2)
                    load_matrix(kept[p / 2], S::matrices_at(from, WARP_ROWS, 0, p));
                if constexpr (S::SLOTS == 1) /* the warp writes where it has read */
                    __syncwarp();
            }
            leave_pairs(at);
        });
    }

    /* The tile of a strip. */
    static FP_DEVICE void normalise(const W &w, sums &c, int left_out, const item &i, u32 &panels)
    {
        constexpr bool ORDERED = NORM == FP_NORM_CLUSTER && S::TEAMS > 1;
        const int strip = w.strip_of(i.number), team = i.team, member = i.member;
        const u32 buffer = NORM == FP_NORM_CLUSTER ? i.nth & 1 : 0, phase = i.nth >> 1 & 1,
                  full = address(w.s.shared[buffer]);
        if (NORM == FP_NORM_CLUSTER && member == 0 && threadIdx.x % FOUR_WARPS == 0)
            mbarrier_expect(full, w.ranks() * BM * static_cast<int>(sizeof(moments)));
        __syncwarp();
        if constexpr (ORDERED)
            mbarrier_wait(address(w.s.taken[1 - team]), team == 0 ? phase ^ 1 : phase);
        send(w, c, left_out, strip, buffer, member);
        if constexpr (S::KEEPS) /* while the others' moments are on their way */
#pragma unroll
            for (int m = 0; m < MI; m++)
                if (ends(m, left_out))
                    storing::store_product(w, c, m, w.maps.sum, i.t, member, panels);
        if constexpr (NORM == FP_NORM_CLUSTER)
            mbarrier_wait(full, phase);
        scaling k[MI][2];
        if constexpr (ORDERED) { /* all at once: the other team waits */
#pragma unroll
            for (int m = 0; m < MI; m++)
                receive(w, k[m], strip, buffer, S::warp_row(member, m));
            mbarrier_arrive_warp(address(w.s.taken[team]));
        }
        mbarrier_wait(address(w.s.columns), 0);
#pragma unroll
        for (int m = 0; m < MI; m++) {
            if (!ends(m, left_out))
                continue;
            if constexpr (!ORDERED)
                receive(w, k[m], strip, buffer, S::warp_row(member, m));
            scale(w, c, m, k[m], i.t.m0 + S::warp_row(member, m), i.t.n0, panels);
        }
    }
};

} // namespace fp::hopper_gemm

#endif
