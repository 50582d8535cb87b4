/* How the two teams of hopper_gemm.cuh share the last tile of a thread block, if a layernorm
 * follows.
 *
 * The epilogue of every other tile runs while the other team multiplies.  Of the last one nothing
 * would hide it.  So the team that multiplies it hands the sums of its first product, 64 rows,
 * through shared memory to the other team, which has nothing left to multiply and ends these rows.
 * The second product still runs then.  Each thread hands its sums to the thread with its number in
 * the other team. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_SHARE_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_SHARE_CUH

#include "hopper_gemm_shape.cuh"

namespace fp
{

/* W: gemm_products */
template <class W> struct gemm_shares : W {
    using sums = typename W::sums;
    using position = typename W::position;
    using W::block, W::meet, W::s;
    using W::BN, W::STAGES;
    using W::W;

    static constexpr int FOURS = BN / 8; /* of a thread's sums of a product */

    /* Where this thread's i-th four sums are: in the places of the first two of the tile's last
     * STAGES steps.  next: the step after the tile's in the ring. */
    FP_DEVICE u32 place_of_handed(position next, int i) const
    {
        const u32 slot = (next.slot + (i < FOURS / 2 ? 0 : 1)) % STAGES;
        return shared_address(s.b[slot]) +
               (i % (FOURS / 2) * FOUR_WARPS + threadIdx.x % FOUR_WARPS) * 16;
    }

    /* Products of a team's other warps may still read the steps in whose places the sums go. */
    FP_DEVICE void hand_product(sums &c, position next, int team) const
    {
        meet(team);
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            const auto &x = block(c, 0, i);
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(place_of_handed(next, i)),
                         "f"(x[0][0]), "f"(x[0][1]), "f"(x[1][0]), "f"(x[1][1])
                         : "memory");
        }
        mbarrier_arrive(shared_address(&s.handed));
    }

    FP_DEVICE void take_product(sums &c, position next) const
    {
        mbarrier_wait(shared_address(&s.handed), 0);
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            auto &x = block(c, 0, i);
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(x[0][0]), "=f"(x[0][1]), "=f"(x[1][0]), "=f"(x[1][1])
                         : "r"(place_of_handed(next, i))
                         : "memory");
        }
    }
};

} // namespace fp

#endif
