/* out (tokens, N) = in (tokens, K) @ weight (K, N) with an epilogue, by wgmma and TMA (sm_90a),
 * fp16 and bf16.
 *
 * Source: the warp-specialised persistent kernels of CUTLASS 3 ("cooperative" and "ping-pong").
 *
 * A thread block takes tiles of (BM, BN) in turn.  Its warps have four roles:
 *
 *   - One warp loads the weight and one loads rows of the input, for one tile after another.  Each
 *     fills its half of a ring of STAGES steps: (BK, BN) of the weight, (BM, BK) of the input.  The
 *     warp of the input also loads residuals that follow a tile's steps, see residual_follows().
 *   - Two warps store: they move finished tiles from shared memory to memory, and before that other
 *     residuals, and a layernorm's gamma and beta, from memory to shared memory.
 *   - TEAMS teams multiply.  Team t takes every TEAMS-th tile; GROUPS warpgroups share its rows.
 *     While one team runs its epilogue, the other one multiplies.
 *
 * The mbarriers full[] complete when a step has landed, empty[] when it was multiplied; ready[team]
 * when the team may write its tile to `out` (which holds the residual), done[team][part] when it
 * has written that part of it or, after a split, when all sums of its rows are here; drained, with
 * one team, when TMA has read the tile from `out`, so that the next residual may come; turn[] of a
 * warpgroup when the one before has issued all of its tile's steps.  Matrices lie in shared memory
 * in panels of 64 columns, for BN = 96 of 32, in the swizzle in which TMA copies them.
 *
 * Sums begin with the bias.  The panels of a residual are loaded one by one after the tile's first
 * steps, so that these need not wait for them; with two teams that is so for the first tile only.
 * With one team and large tiles each warpgroup adds the residual at another step, while the others
 * multiply.  Of two that share the rows the second one issues its last steps after the first one
 * has issued all of its own, so that the first one's epilogue runs beside products.  The first
 * steps of the weight are loaded before the launch in front has ended.  Rows that are no neighbours
 * in memory (sequences of several lengths, merged heads) are copied by cp.async behind the same
 * mbarriers, or stored by ordinary instructions.
 *
 * This file has the roles and the products; gemm_tma_add.cuh bias and residual, gemm_tma_copy.cuh
 * what is loaded and stored, gemm_tma_norm.cuh the layernorm, gemm_tma_split.cuh the sums of a
 * split, gemm_tma_shape.cuh what all share.
 *
 * With SWAP the operands of wgmma change places, out^T = weight^T in^T: a product has 64 columns of
 * the tile and all BM of its rows, which need be no multiple of 64, and GROUPS warpgroups share the
 * columns.  stmatrix transposes the sums on their way to `out`.
 *
 * With CLUSTER_M > 1 the thread blocks of a cluster take tiles one below the other.  A step of the
 * weight is then the same for all: each loads a part of it, and TMA copies that part to all
 * (multicast).  With CLUSTER_N > 1 they take tiles side by side, and share the input likewise.  An
 * mbarrier empty[] completes when all of them have multiplied the step.
 *
 * With SPLIT > 1 the thread blocks of a cluster share K, and take one tile.  Each sends its sums to
 * the thread blocks that own the rows, which add them up and run the epilogue. */
#ifndef FUSEPLAN_CUDA_GEMM_TMA_CUH
#define FUSEPLAN_CUDA_GEMM_TMA_CUH

#include "gemm_tma_add.cuh"
#include "gemm_tma_norm_swap.cuh"
#include "gemm_tma_split.cuh"

namespace fp
{

template <class S, class View, class End>
struct gemm_tma
    : gemm_splits<
          gemm_norms_swapped<gemm_norms<gemm_copies<gemm_additions<gemm_work<S, View, End>>>>>> {
    using W = gemm_splits<
        gemm_norms_swapped<gemm_norms<gemm_copies<gemm_additions<gemm_work<S, View, End>>>>>>;
    using D = typename S::D;
    using tile = typename W::tile;
    using position = typename W::position;
    using sums = typename W::sums;
    using W::a, W::n, W::end, W::s;
    using W::begin, W::add_residual, W::load_weights, W::load_rows, W::store_tiles, W::normalise,
        W::normalise_swapped, W::fetch_columns, W::send_sums, W::add_parts;
    using W::BM, W::BN, W::BK, W::STAGES, W::SPLIT, W::CLUSTER, W::MI, W::NI, W::PANEL, W::LINE,
        W::STORERS, W::NORM, W::STRIPS, W::SWAP;
    using W::first_tile, W::next_tile, W::tiles, W::locate, W::strip_of, W::steps, W::ring_at,
        W::GATHERS, W::SCATTERS, W::first_matrices, W::matrices_at, W::block, W::finish_part;
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
                multiply_part(group);
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

    /* warp: of those that do not multiply.  By `==` one thread copies by TMA; else ptxas would
     * write a loop around each copy. */
    FP_DEVICE void copy(int warp, int lane)
    {
        if (warp == 0) {
            if (lane == 0)
                load_weights();
        } else if (warp == 1) {
            if (GATHERS || lane == 0)
                load_rows(lane);
        } else if (SPLIT == 1 && (SCATTERS || warp == 2)) {
            if (SCATTERS || lane == 0)
                store_tiles((warp - 2) * 32 + lane);
        }
    }

    /* By one thread, at addresses that the compiler knows.  Lanes with an address each would take
     * turns, some 65 cycles for each mbarrier. */
    FP_DEVICE void init_mbarriers() const
    {
        constexpr u32 landed = GATHERS ? 33 : 1, stored = SCATTERS ? STORERS : 1;
#pragma unroll
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(shared_address(&s.full[i]), landed);
            mbarrier_init(shared_address(&s.empty[i]), 4 * S::GROUPS * CLUSTER);
        }
#pragma unroll
        for (int i = 0; i < S::TEAMS; i++) {
            mbarrier_init(shared_address(&s.ready[i]), stored);
            for (int p = 0; p < S::PARTS; p++)
                mbarrier_init(shared_address(&s.done[i][p]), SPLIT == 1 ? 4 * S::GROUPS : 1);
        }
#pragma unroll
        for (int i = 0; i < S::CONSUMERS; i++)
            mbarrier_init(turn(i), 4);
        mbarrier_init(shared_address(&s.drained), 1);
        if constexpr (NORM == NORM_CLUSTER)
            for (int i = 0; i < 2; i++)
                mbarrier_init(shared_address(&s.shared[i]), 1);
        mbarrier_fence_init();
    }

    /* ---- the warpgroups that multiply -------------------------------------------------------- */

    FP_DEVICE u32 turn(int group) const
    {
        return shared_address(&s.turn[group]);
    }

    /* A step was multiplied.  Its place is free for the next one once it was in all thread blocks
     * that the next one goes to. */
    FP_DEVICE void give_back(u32 slot) const
    {
        const u32 empty = shared_address(&s.empty[slot]);
        if constexpr (CLUSTER == 1) {
            mbarrier_arrive_warp(empty);
        } else {
            const int lane = static_cast<int>(threadIdx.x) % 32;
            __syncwarp();
            if (lane < CLUSTER)
                mbarrier_arrive_cluster(cluster_address(empty, lane));
        }
    }

    /* The products of a step, from descriptors of its rows and columns. */
    FP_DEVICE void issue(sums &c, u64 rows, u64 columns) const
    {
        constexpr int BESIDE = BN / NI / PANEL * BK * LINE; /* bytes of a product's columns */
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            const u64 from =
                rows + k / S::A_PANEL * (S::A_PANEL_BYTES / 16) + k % S::A_PANEL * 2 / 16;
#pragma unroll
            for (int m = 0; m < MI * NI; m++)
                if constexpr (SWAP)
                    wgmma<D, BM>::tt(c[m], columns + m * (BK * LINE / 16) + k * (LINE / 16), from);
                else
                    wgmma<D, BN / NI>::nn(c[m], from + m / NI * (8192 / 16),
                                          columns + m % NI * (BESIDE / 16) + k * (LINE / 16));
        }
        wgmma_commit();
    }

    /* So many steps from `at` on.  member: of the warpgroups that share the tile.  next: the
     * mbarrier of the warpgroup whose turn it is then, 0 for none. */
    FP_DEVICE void multiply(sums &c, position &at, int count, int member, u32 next) const
    {
        const u32 rows = shared_address(s.a) + (SWAP ? 0 : member * MI * 8192);
        const u32 columns = shared_address(s.b) + (SWAP ? member * MI * BK * LINE : 0);
        u32 held = 0;
#pragma unroll 1
        for (int i = 0; i < count; i++) {
            mbarrier_wait(shared_address(&s.full[at.slot]), at.phase);
            if constexpr (GATHERS)
                proxy_fence();
            issue(c, wgmma_matrix(rows + at.slot * S::A_BYTES, 16, 1024),
                  wgmma_matrix<LINE>(columns + at.slot * S::B_BYTES, BK * LINE, 8 * LINE));
            if (i > 0) {
                wgmma_wait<1>();
                give_back(held);
            }
            held = at.slot;
            at.advance();
        }
        if (next != 0)
            mbarrier_arrive_warp(next);
        wgmma_wait<0>();
        if (count > 0)
            give_back(held);
#pragma unroll
        for (int m = 0; m < MI * NI; m++)
            pin(c[m]);
    }

    /* Waits until s.out is this team's, and adds the residual. */
    FP_DEVICE void await_residual(sums &c, int team, int member, u32 phase) const
    {
        mbarrier_wait(shared_address(&s.ready[team]), phase);
        if (end.residual != nullptr)
            add_residual(c, member);
    }

    /* All steps of a tile, and the residual.  Of two teams the other one has its tile in s.out
     * until the end. */
    FP_DEVICE void multiply_tile(sums &c, position at, int count, int team, int member,
                                 u32 phase) const
    {
        if constexpr (S::TEAMS == 1 && S::LARGE) {
            multiply_apart(c, at, count, member, phase);
        } else {
            multiply(c, at, count, member, S::TEAMS > 1 ? turn((team + 1) % S::TEAMS) : 0);
            await_residual(c, team, member, phase);
        }
    }

    /* A large tile of a single team.  Its warpgroups add the residual APART steps from each other,
     * so that the others keep the tensor cores busy; but none before the step behind which the last
     * panel is asked for.  IN_TURN the second one then waits until the first one has issued its
     * last step.  That one issues it after the residual has come, and so not before the second one
     * has waited for its turn in the tile before. */
    FP_DEVICE void multiply_apart(sums &c, position at, int count, int member, u32 phase) const
    {
        const bool in_turn = S::IN_TURN && count > S::PANELS; /* else no steps are left to issue */
        int now = max(count - (S::GROUPS - member) * S::APART, min(count, S::PANELS));
        bool added = false;
#pragma unroll 1
        for (int left = count;; now = left) {
            left -= now;
            multiply(c, at, now, member, in_turn && member == 0 && left == 0 ? turn(1) : 0);
            if (!added) {
                await_residual(c, 0, member, phase);
                if (in_turn && member == 1)
                    mbarrier_wait(turn(1), phase);
            }
            if (left == 0)
                break;
            added = true;
        }
    }

    /* 16 rows and columns of a warp. */
    FP_DEVICE void finish(const float (&v)[VEC<D>], u32 at) const
    {
        u32 r[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            r[i] = end.activation.template packed<D>(v[2 * i], v[2 * i + 1]);
        if constexpr (SWAP)
            store_matrix_transposed(at, r);
        else
            store_matrix(at, r);
    }

    /* Leaves the tile in s.out.  Columns past the last are left out; a branch between two steps
     * also keeps ptxas from mixing them, for which registers would not suffice. */
    FP_DEVICE void hand_over(sums &c, int n0, int member, u32 done) const
    {
        const u32 out = first_matrices(member);
#pragma unroll
        for (int m = 0; m < MI; m++)
#pragma unroll
            for (int p = 0; p < (SWAP ? BM : BN) / 8; p += 2) {
                if (SWAP || n0 + p * 8 < n) {
                    auto &x = block(c, m, p), &y = block(c, m, p + 1);
                    float v[VEC<D>] = {x[0][0], x[0][1], x[1][0], x[1][1],
                                       y[0][0], y[0][1], y[1][0], y[1][1]};
                    finish(v, matrices_at(out, m, p));
                }
                finish_part(done, m, p + 2);
            }
    }

    FP_DEVICE void multiply_tiles(int group)
    {
        const int team = group / S::GROUPS, member = group % S::GROUPS, count = steps();
        int number = next_tile(first_tile(), team);
#pragma unroll 1
        for (u32 i = team; number < tiles(); i += S::TEAMS, number = next_tile(number, S::TEAMS)) {
            sums c;
            const int n0 = locate(number).n0;
            begin(c, n0, member);
            const u32 phase = i / S::TEAMS & 1;
            if (S::TEAMS > 1)
                mbarrier_wait(turn(team), team == 0 ? phase ^ 1 : phase);
            multiply_tile(c, ring_at(i * count), count, team, member, phase);
            if constexpr (STRIPS && NORM == NORM_MEMORY) /* mailboxes */
                await_dependencies();
            if constexpr (STRIPS && SWAP)
                normalise_swapped(c, strip_of(number), i, team, member,
                                  shared_address(s.done[team]));
            else if constexpr (STRIPS)
                normalise(c, strip_of(number), i, member, shared_address(s.done[team]));
            else
                hand_over(c, n0, member, shared_address(s.done[team]));
        }
    }

    FP_DEVICE void multiply_part(int group)
    {
        const tile t = locate(first_tile());
        sums c;
        fetch_columns(t.n0);
        begin(c, t.n0, group);
        position at = {0, 0};
        multiply(c, at, steps(), group, 0);
        cluster_wait(); /* for all to have begun */
        send_sums(c, group);
        await_dependencies();
        add_parts(t);
        cluster_wait(); /* for all to have what this one sent */
    }
};

} // namespace fp

#endif
