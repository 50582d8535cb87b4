/* How the two teams of gemm_tma.cuh share the last tile of a thread block, if a layernorm follows.
 *
 * The epilogue of every other tile runs while the other team multiplies.  Of the last one nothing
 * would hide it.  So the team that has multiplied it hands the sums of its second product, 64 rows,
 * through shared memory to the other team, which has nothing left to multiply and ends these rows.
 * Each thread hands its sums to the thread with its number in the other team. */
#ifndef FUSEPLAN_CUDA_GEMM_TMA_SHARE_CUH
#define FUSEPLAN_CUDA_GEMM_TMA_SHARE_CUH

#include "gemm_tma_shape.cuh"

namespace fp
{

/* W: gemm_work */
template <class W> struct gemm_shares : W {
    using S = typename W::S;
    using sums = typename W::sums;
    using position = typename W::position;
    using W::block, W::meet, W::s;
    using W::BN, W::MI, W::STAGES;
    using W::W;

    static constexpr int FOURS = BN / 8; /* of a thread's sums of a product */

    /* Sums go to the two places of the ring behind the residual's.  They hold steps of the tile
     * that are multiplied, but for a short inner dimension.  Then they would hold the residual of
     * the tile before, which the other team may still be reading. */
    FP_DEVICE bool shares() const
    {
        return S::SHARES && W::steps() >= STAGES - S::PIECES;
    }

    /* Where this thread's i-th four sums are.  residual: its first step in the ring. */
    FP_DEVICE u32 place_of_handed(position residual, int i) const
    {
        const u32 slot = (residual.slot + S::PIECES + (i < FOURS / 2 ? 0 : 1)) % STAGES;
        return shared_address(s.b[slot]) +
               (i % (FOURS / 2) * FOUR_WARPS + threadIdx.x % FOUR_WARPS) * 16;
    }

    /* Products of a team's other warps may still read the steps in whose places the sums go. */
    FP_DEVICE void hand_product(sums &c, position residual, int team) const
    {
        meet(team);
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            const auto &x = block(c, MI - 1, i);
            asm volatile(
                "st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(place_of_handed(residual, i)),
                "f"(x[0][0]), "f"(x[0][1]), "f"(x[1][0]), "f"(x[1][1])
                : "memory");
        }
        mbarrier_arrive(shared_address(&s.handed));
    }

    FP_DEVICE void take_product(sums &c, position residual) const
    {
        mbarrier_wait(shared_address(&s.handed), 0);
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            auto &x = block(c, MI - 1, i);
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(x[0][0]), "=f"(x[0][1]), "=f"(x[1][0]), "=f"(x[1][1])
                         : "r"(place_of_handed(residual, i))
                         : "memory");
        }
    }
};

} // namespace fp

#endif
