/* out (tokens, N) = in (tokens, K) @ weight (K, N) with an epilogue, by wgmma and TMA (sm_90a),
 * fp16 and bf16.
 *
 * Source: the warp-specialised persistent kernels of CUTLASS 3 ("cooperative" and "ping-pong").
 *
 * A thread block takes tiles of (BM, BN) in turn.  Its warps have these roles:
 *
 *   - One warp loads the weight and one loads rows of the input, for one tile after another.  Each
 *     fills its half of a ring of STAGES steps: (BK, BN) of the weight, (BM, BK) of the input.
 *   - TEAMS teams multiply.  Team t takes every TEAMS-th tile; GROUPS warpgroups share its rows.
 *     While one team runs its epilogue, the other one multiplies.  Both may end the last tile, see
 *     hopper_gemm_share.cuh.  Each warp stores its own rows.
 *   - One more warp loads a layernorm's gamma and beta, and one a residual that is added between
 *     products (BETWEEN), into places of its own.  With SWAP one more warp stores finished tiles,
 *     two if their rows are no neighbours.
 *
 * Another residual follows its tile in more steps of the ring, up to 64 rows in each, in the place
 * of the weight.
 *
 * The mbarriers full[] complete when a step has landed, empty[] when it was multiplied or added,
 * residual_full[] and residual_empty[] likewise; turn[] of a warpgroup when the one before has
 * issued all of its tile's steps; landed[] of a team when the residual in the ring is here; handed
 * when one team has handed sums to the other.  With SWAP ready[team] completes when the team may
 * write its tile to `out`, and done[team] when it has; after a split done[0] when all sums of a
 * thread block's rows are here.  Matrices lie in shared memory in panels of 64 columns, for BN = 96
 * of 32, in the swizzle in which TMA copies them.
 *
 * Sums begin with the bias, but not those of a split.  Of two warpgroups that share the rows of a
 * large tile the second one issues its last steps after the first one has issued all of its own, so
 * that the first one's epilogue runs beside products.  The first steps of the weight are loaded
 * before the launch in front has ended.  Rows that are no neighbours in memory (merged or split
 * heads) are copied by cp.async behind the same mbarriers, or stored by ordinary instructions.
 *
 * This file has the roles; hopper_gemm_multiply.cuh the products, hopper_gemm_add.cuh bias and
 * residual, hopper_gemm_load.cuh what is loaded, hopper_gemm_store.cuh what is stored,
 * hopper_gemm_norm.cuh the layernorm, hopper_gemm_share.cuh the tile that both teams end,
 * hopper_gemm_split.cuh the sums of a split, hopper_gemm_shape.cuh what all parts know.
 *
 * With SWAP the operands of wgmma change places, out^T = weight^T in^T: a product has 64 columns of
 * the tile and all BM of its rows, which need be no multiple of 64, and GROUPS warpgroups share the
 * columns.  stmatrix transposes the sums on their way to `out`.
 *
 * With CLUSTER > 1 the thread blocks of a cluster take tiles one below the other.  A step of the
 * weight is then the same for all: each loads a part of it, and TMA copies that part to all
 * (multicast).  An mbarrier empty[] completes when all of them have multiplied the step.
 *
 * With SPLIT > 1 the thread blocks of a cluster share K, and take one tile.  Each sends its sums to
 * the thread blocks that own the rows, which add them up and run the epilogue. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_CUH

#include "hopper_gemm_multiply.cuh"
#include "hopper_gemm_norm_swap.cuh"
#include "hopper_gemm_share.cuh"
#include "hopper_gemm_split.cuh"

namespace fp
{

/* Each part knows those inside of it. */
template <class S, class View, class End>
using gemm_parts = gemm_splits<gemm_norms_swapped<gemm_norms<
    gemm_stores<gemm_loads<gemm_shares<gemm_products<gemm_additions<gemm_work<S, View, End>>>>>>>>>;

template <class S, class View, class End> struct hopper_gemm : gemm_parts<S, View, End> {
    using W = gemm_parts<S, View, End>;
    using tile = typename W::tile;
    using position = typename W::position;
    using sums = typename W::sums;
    using W::begin, W::multiply, W::multiply_tile, W::add_residual, W::hand_product,
        W::take_product, W::load_weights, W::load_rows, W::load_columns, W::load_panels,
        W::store_rows, W::hand_over, W::store_tiles, W::normalise, W::normalise_swapped,
        W::fetch_columns, W::send_sums, W::add_parts;
    using W::BM, W::BN, W::STAGES, W::SPLIT, W::CLUSTER, W::MI, W::STORERS, W::NORM, W::STRIPS,
        W::SWAP, W::NONE, W::GATHERS, W::SCATTERS;
    using W::first_tile, W::next_tile, W::tiles, W::groups, W::locate, W::strip_of, W::steps,
        W::ring_of, W::turn, W::landed;
    using W::s;
    using W::W;

    /* ---- roles ------------------------------------------------------------------------------- */

    FP_DEVICE void run()
    {
        constexpr bool WIDE = MI * (SWAP ? BM : BN) > 256; /* sums take most registers */
        const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / FOUR_WARPS, 0);
        const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
        if (threadIdx.x == 0)
            init_mbarriers();
        __syncthreads();
        if constexpr (SPLIT * CLUSTER > 1 || NORM == NORM_CLUSTER) /* mbarriers are ready */
            cluster_arrive_relaxed();
        if constexpr (CLUSTER > 1 || NORM == NORM_CLUSTER)
            cluster_wait();
        if (group < S::CONSUMERS) {
            if constexpr (S::CONSUMERS == 2)
                take_registers<WIDE ? 232 : 224>();
            if constexpr (S::CONSUMERS == 3)
                take_registers<152>();
            if constexpr (SPLIT == 1)
                multiply_tiles(group);
            else if (first_tile() < tiles())
                multiply_part();
            else
                cluster_wait();
        } else {
            if constexpr (S::CONSUMERS >= 2)
                give_registers<WIDE || S::CONSUMERS == 3 ? 40 : 56>();
            copy(warp - 4 * S::CONSUMERS, static_cast<int>(threadIdx.x) % 32);
            __syncwarp();
            if constexpr (SPLIT > 1)
                cluster_wait();
        }
    }

    /* warp: of those that do not multiply.  Where TMA copies, one thread asks for it. */
    FP_DEVICE void copy(int warp, int lane)
    {
        if (warp == 0) {
            if (lane == 0)
                load_weights();
        } else if (warp == 1) {
            if (GATHERS || lane == 0)
                load_rows(lane);
        } else {
            if constexpr (STRIPS)
                if (warp == 2 && (!SWAP || lane == 0))
                    load_columns(lane);
            if constexpr (S::BETWEEN)
                if (warp == 3 && lane == 0)
                    load_panels();
            if constexpr (SWAP)
                if (SCATTERS || (warp == 2 && lane == 0))
                    store_tiles((warp - 2) * 32 + lane);
        }
    }

    /* By one thread, at addresses that the compiler knows.  Lanes with an address each would take
     * turns, some 65 cycles for each mbarrier. */
    FP_DEVICE void init_mbarriers() const
    {
        constexpr u32 loaders = GATHERS ? 33 : 1, storers = SCATTERS ? STORERS : 1;
#pragma unroll
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(shared_address(&s.full[i]), loaders);
            mbarrier_init(shared_address(&s.empty[i]), 4 * S::GROUPS * CLUSTER);
        }
#pragma unroll
        for (int i = 0; i < S::TEAMS; i++) {
            mbarrier_init(shared_address(&s.ready[i]), storers);
            mbarrier_init(landed(i), 4);
            mbarrier_init(shared_address(&s.done[i]), SPLIT == 1 ? 4 * S::GROUPS : 1);
        }
#pragma unroll
        for (int i = 0; i < S::CONSUMERS; i++)
            mbarrier_init(turn(i), 4);
        if constexpr (STRIPS) {
            mbarrier_init(shared_address(&s.columns), SWAP ? 1 : 32);
#pragma unroll
            for (int i = 0; i < 2; i++)
                mbarrier_init(shared_address(&s.shared[i]), 1);
#pragma unroll
            for (int i = 0; i < S::TEAMS; i++)
                mbarrier_init(shared_address(&s.taken[i]), 4);
        }
        if constexpr (S::SHARES)
            mbarrier_init(shared_address(&s.handed), FOUR_WARPS);
        if constexpr (S::BETWEEN)
#pragma unroll
            for (int i = 0; i < S::PLACES; i++) {
                mbarrier_init(shared_address(&s.residual_full[i]), 1);
                mbarrier_init(shared_address(&s.residual_empty[i]), 4);
            }
        mbarrier_fence_init();
    }

    /* ---- the warpgroups that multiply -------------------------------------------------------- */

    FP_DEVICE void multiply_tiles(int group)
    {
        const int team = group / S::GROUPS, member = group % S::GROUPS, count = steps();
        const u32 ready = shared_address(&s.ready[team]), done = shared_address(&s.done[team]);
        /* The team whose turn would come after the last tile ends a part of that one. */
        const int end_of_turns = first_tile() < tiles() ? tiles() + (S::SHARES ? groups() : 0) : 0;
        int number = next_tile(first_tile(), team);
        u32 panels = 0;
#pragma unroll 1
        for (u32 i = team; number < end_of_turns;
             i += S::TEAMS, number = next_tile(number, S::TEAMS)) {
            sums c;
            const bool helps = S::SHARES && number >= tiles();
            const int current = helps ? number - groups() : number;
            const tile t = locate(current);
            const u32 phase = i / S::TEAMS & 1;
            position at = ring_of(i);
            int left_out = MI - 1;
            if (helps) {
                take_product(c, at);
            } else {
                begin(c, t.n0, member);
                const bool hands = S::SHARES && next_tile(current) >= tiles();
                left_out = hands ? 0 : NONE;
                multiply_tile(c, at, count, i, team, member, [&]() {
                    if (hands)
                        hand_product(c, at, team);
                });
            }
            if constexpr (S::RESIDUAL_STEPS > 0)
                add_residual(c, at, team, member);
            await_dependencies(); /* what is stored now may have been read or written before */
            if constexpr (SWAP)
                mbarrier_wait(ready, phase);
            if constexpr (STRIPS && SWAP)
                normalise_swapped(c, strip_of(current), i, team, member, done);
            else if constexpr (STRIPS)
                normalise(c, left_out, strip_of(current), i, team, member, panels);
            else if constexpr (SWAP)
                hand_over(c, member, done);
            else
                store_rows(c, t, member, panels);
        }
        if constexpr (S::BY_WARPS && !SCATTERS)
            box_stores_read<0>();
    }

    FP_DEVICE void multiply_part()
    {
        const tile t = locate(first_tile());
        sums c;
        fetch_columns(t.n0);
        begin(c, t.n0, 0);
        position at = {0, 0};
        if (steps() > 0)
            multiply(c, at, steps(), 0, 0);
        cluster_wait(); /* for all to have begun */
        send_sums(c);
        await_dependencies();
        add_parts(t);
        cluster_wait(); /* for all to have what this one sent */
    }
};

} // namespace fp

#endif
