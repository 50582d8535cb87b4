/* The products of hopper_gemm.cuh: the steps of a tile, its residual, and whose turn it is.
 *
 * BETWEEN: a team has two products, of the upper and of the lower 64 rows of its tile.  While wgmma
 * computes one of them, the team adds a part of the residual to the sums of the other one.  After
 * the last step nothing of the residual is left to add.  Others add the residual then. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_MULTIPLY_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_MULTIPLY_CUH

#include "hopper_gemm_add.cuh"

namespace fp
{

/* W: gemm_additions */
template <class W> struct gemm_products : W {
    using D = typename W::D;
    using S = typename W::S;
    using position = typename W::position;
    using sums = typename W::sums;
    using addends = typename W::addends;
    using W::add, W::add_piece, W::load_addends;
    using W::BM, W::BN, W::BK, W::STAGES, W::CLUSTER, W::MI, W::PANEL, W::LINE, W::SWAP, W::GATHERS;
    using W::n, W::s;
    using W::W;

    FP_DEVICE u32 turn(int group) const
    {
        return shared_address(&s.turn[group]);
    }

    FP_DEVICE u32 landed(int team) const
    {
        return shared_address(&s.landed[team]);
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

    FP_DEVICE void await_step(position at) const
    {
        mbarrier_wait(shared_address(&s.full[at.slot]), at.phase);
        if constexpr (GATHERS)
            proxy_fence();
    }

    /* A step of COUNT products of a warpgroup, from the FIRST one on. */
    template <int FIRST, int COUNT> FP_DEVICE void issue(sums &c, position at, int member) const
    {
        const u32 a = shared_address(s.a[at.slot]) + (SWAP ? 0 : member * MI * 8192),
                  b = shared_address(s.b[at.slot]) + (SWAP ? member * MI * BK * LINE : 0);
        const u64 rows = wgmma_matrix(a, 16, 1024),
                  columns = wgmma_matrix<LINE>(b, BK * LINE, 8 * LINE);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            const u64 from =
                rows + k / S::A_PANEL * (S::A_PANEL_BYTES / 16) + k % S::A_PANEL * 2 / 16;
#pragma unroll
            for (int m = FIRST; m < FIRST + COUNT; m++)
                if constexpr (SWAP)
                    wgmma<D, BM>::tt(c[m], columns + m * (BK * LINE / 16) + k * (LINE / 16), from);
                else
                    wgmma<D, BN>::nn(c[m], from + m * (8192 / 16), columns + k * (LINE / 16));
        }
    }

    struct nothing { /* before a step */
        FP_DEVICE void operator()(int) const
        {
        }
    };

    /* Issues so many steps from `at` on, at least one, and returns the last one's place: all before
     * it are multiplied and given back.  member: of the warpgroups that share the tile.  before(i)
     * comes before step i.  A loop that tests at its end keeps ptxas from writing the bias into the
     * sums' registers twice. */
    template <class Before>
    FP_DEVICE u32 issue_steps(sums &c, position &at, int count, int member,
                              const Before &before) const
    {
        u32 held = 0;
        int i = 0;
#pragma unroll 1
        do {
            before(i);
            await_step(at);
            issue<0, MI>(c, at, member);
            wgmma_commit();
            if (i > 0) {
                wgmma_wait<1>();
                give_back(held);
            }
            held = at.slot;
            at.advance();
        } while (++i < count);
        return held;
    }

    /* So many steps, see issue_steps().  next: the mbarrier of the warpgroup whose turn it is then,
     * 0 for none.  before(count) comes before that turn. */
    template <class Before = nothing>
    FP_DEVICE void multiply(sums &c, position &at, int count, int member, u32 next,
                            const Before &before = {}) const
    {
        const u32 held = issue_steps(c, at, count, member, before);
        before(count);
        if (next != 0)
            mbarrier_arrive_warp(next);
        wgmma_wait<0>();
        give_back(held);
#pragma unroll
        for (int m = 0; m < MI; m++)
            pin(c[m]);
    }

    /* A residual that follows in the ring.  Without SWAP each warpgroup adds its own MI pieces.
     * Nobody waits for landed[] of a thread block's last tile. */
    FP_DEVICE void add_residual(sums &c, position at, int team, int member) const
    {
        constexpr int EACH = SWAP ? S::PIECES : MI;
#pragma unroll 1
        for (int i = 0; i < S::RESIDUAL_STEPS; i += EACH)
#pragma unroll
            for (int j = 0; j < EACH; j++, at.advance()) {
                mbarrier_wait(shared_address(&s.full[at.slot]), at.phase);
                if (S::TEAMS > 1 && j == EACH - 1)
                    mbarrier_arrive_warp(landed(team));
                if (SWAP || i == member * MI) {
                    add_piece(c, shared_address(s.b[at.slot]), j, member);
                    proxy_fence(); /* TMA writes there next */
                }
                give_back(at.slot);
            }
    }

    /* ---- a residual between two products ----------------------------------------------------- */

    /* Waits for all products but the last one, of which product m is none, and adds a chunk to m.
     * The residual of columns past the last is 0: the branch is there to keep ptxas from mixing
     * sums of different chunks. */
    FP_DEVICE void add_chunk(sums &c, const addends &x, int chunk, int m) const
    {
        wgmma_wait<1>();
        pin(c[m]);
        if (chunk * S::CHUNK < n)
            add(c, x, chunk, m);
    }

    /* As multiply(), with a residual: of the last CHUNKS steps each computes one product while a
     * chunk is added to the other one.  nth: of this thread block's tiles.  next: the mbarrier of
     * the team whose turn it is then.  then(): is called while only the last step of the second
     * product still runs. */
    template <class Then>
    FP_DEVICE void multiply_and_add(sums &c, position &at, int count, u32 nth, u32 next,
                                    const Then &then) const
    {
        if (nth == 0) { /* see load_panels() */
            await_step(at);
#pragma unroll
            for (int i = 0; i < S::PLACES; i++)
                mbarrier_arrive_warp(shared_address(&s.residual_empty[i]));
        }
        u32 held = issue_steps(c, at, count - S::CHUNKS, 0, nothing());
#pragma unroll
        for (int j = 0; j < S::CHUNKS; j++) {
            constexpr int EACH = PANEL / S::CHUNK; /* of a panel */
            const u32 number = nth * S::PANELS + j / EACH, place = number % S::PLACES,
                      panel = shared_address(s.residual[place]);
            addends x;
            await_step(at);
            issue<0, 1>(c, at, 0);
            wgmma_commit();
            if (j % EACH == 0)
                mbarrier_wait(shared_address(&s.residual_full[place]), number / S::PLACES & 1);
            load_addends(x, panel, j, 1);
            add_chunk(c, x, j, 1);
            give_back(held);
            issue<1, 1>(c, at, 0);
            wgmma_commit();
            if (j == S::CHUNKS - 1)
                mbarrier_arrive_warp(next);
            load_addends(x, panel, j, 0);
            add_chunk(c, x, j, 0);
            if (j % EACH == EACH - 1) {
                proxy_fence(); /* TMA writes there next */
                mbarrier_arrive_warp(shared_address(&s.residual_empty[place]));
            }
            held = at.slot;
            at.advance();
        }
        then();
        wgmma_wait<0>();
        give_back(held);
#pragma unroll
        for (int m = 0; m < MI; m++)
            pin(c[m]);
    }

    /* ---- turns ------------------------------------------------------------------------------- */

    /* All steps of this thread block's nth tile.  then: see multiply_and_add(). */
    template <class Then>
    FP_DEVICE void multiply_tile(sums &c, position &at, int count, u32 nth, int team, int member,
                                 const Then &then) const
    {
        const u32 phase = nth / S::TEAMS & 1;
        if constexpr (S::BETWEEN) {
            mbarrier_wait(turn(team), team == 0 ? phase ^ 1 : phase);
            multiply_and_add(c, at, count, nth, turn(1 - team), then);
        } else if constexpr (S::TEAMS > 1) {
            multiply_by_turns(c, at, count, team, phase);
        } else if constexpr (S::IN_TURN) {
            multiply_in_turn(c, at, count, member, phase);
        } else {
            multiply(c, at, count, member, 0);
        }
    }

    /* A team multiplies when the other one has issued its last step.  That one's residual may still
     * be on its way then.  Before the first step that takes its place the team waits for it: of an
     * mbarrier only the parity of its phase shows, so one must not wait for a phase while the one
     * before has still to end. */
    FP_DEVICE void multiply_by_turns(sums &c, position &at, int count, int team, u32 phase) const
    {
        const int other = (team + 1) % S::TEAMS, first_there = min(count, STAGES - S::PIECES);
        const u32 parity = team == 0 ? phase ^ 1 : phase;
        mbarrier_wait(turn(team), parity);
        multiply(c, at, count, 0, turn(other), [&](int i) {
            if (S::RESIDUAL_STEPS > 0 && i == first_there)
                mbarrier_wait(landed(other), parity);
        });
    }

    /* The second warpgroup waits with its last APART steps until the first one has issued its last
     * step.  Where the ring holds these, what follows them of the tile, and all steps of the next
     * tile, it does not: the first one could come to the end of that tile before the second one has
     * looked, which would then wait for the wrong phase, for ever. */
    FP_DEVICE void multiply_in_turn(sums &c, position &at, int count, int member, u32 phase) const
    {
        const int apart = min(count, S::APART);
        const bool turns = apart + S::RESIDUAL_STEPS + count > STAGES, first = turns && member == 0,
                   second = turns && member == 1;
        const int late = second ? apart : 0;
        int left = count;
#pragma unroll 1
        do {
            if (left == late)
                mbarrier_wait(turn(1), phase);
            const int now = left > late ? left - late : late;
            multiply(c, at, now, member, first ? turn(1) : 0);
            left -= now;
        } while (left > 0);
    }
};

} // namespace fp

#endif
