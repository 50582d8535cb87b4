/* One team of two or three warpgroups, which share the rows of each tile, with SWAP the columns.
 *
 * Of two warpgroups that share the rows of a large tile (IN_TURN) the second one issues its last
 * APART steps after the first one has issued all of its own.  So it multiplies while the first one
 * finishes. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_COOPERATIVE_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_COOPERATIVE_CUH

#include "hopper_gemm_compute.cuh"
#include "hopper_gemm_finish.cuh"

namespace fp::hopper_gemm
{

template <class W> struct cooperative {
    FP_GEMM_STEP;
    using products = compute<W>;
    static constexpr int APART = 2;
    static constexpr bool IN_TURN = S::LARGE && !S::SWAP && S::GROUPS == 2;

    static_assert(!IN_TURN || APART <= S::STAGES, "the ring holds the second one's last steps");

    static FP_DEVICE void run(const W &w, int team, int member)
    {
        const int count = w.steps();
        finish<W> results(w, team);
        const int end = w.first_tile() < w.tiles() ? w.tiles() : 0;
        int number = w.next_tile(w.first_tile(), team);
#pragma unroll 1
        for (u32 nth = team; number < end; nth++, number = w.next_tile(number)) {
            sums c;
            const item i = w.item_at(number, nth, team, member);
            const u32 phase = nth & 1;
            position at = w.ring_of(nth);
            products::begin(w, c, i.t.n0, member);
            const auto before = [&](int left) {
                if (left == 1)
                    results.prepare(i);
            };
            if constexpr (IN_TURN)
                multiply_in_turn(w, c, at, count, member, phase, before);
            else
                products::multiply(w, c, at, count, member, 0,
                                   [&](int step) { before(count - step); });
            products::add_residual(w, c, at, member, 0);
            results.rows(c, i, phase, results.NONE);
        }
        results.end();
    }

    /* before(left) comes before a step, with how many are left.
     *
     * The second warpgroup waits with its last APART steps until the first one has issued its last
     * step.  Where the ring holds these, what follows them of the tile, and all steps of the next
     * tile, it does not: the first one could come to the end of that tile before the second one has
     * looked, which would then wait for the wrong phase, for ever. */
    template <class Before>
    static FP_DEVICE void multiply_in_turn(const W &w, sums &c, position &at, int count, int member,
                                           u32 phase, const Before &before)
    {
        const int apart = min(count, APART);
        const bool turns = apart + S::RESIDUAL_STEPS + count > S::STAGES,
                   first = turns && member == 0, second = turns && member == 1;
        const u32 turn = address(w.s.turn[1]);
        const int late = second ? apart : 0;
        int left = count;
#pragma unroll 1
        do {
            if (left == late)
                mbarrier_wait(turn, phase);
            const int now = left > late ? left - late : late;
            products::multiply(w, c, at, now, member, first ? turn : 0,
                               [&](int step) { before(left - step); });
            left -= now;
        } while (left > 0);
    }
};

} // namespace fp::hopper_gemm

#endif
