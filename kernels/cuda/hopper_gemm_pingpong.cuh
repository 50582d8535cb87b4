/* Two teams in turn: each takes every second tile of a thread block, and has the tensor cores to
 * itself until it has issued its tile's last step.  While one team finishes, the other computes.
 *
 * BETWEEN: a team has two products, of the upper and of the lower 64 rows of its tile.  While wgmma
 * computes one of them, the team adds a part of the residual to the sums of the other one.  After
 * the last step nothing of the residual is left to add.  Others add the residual then.
 *
 * SHARES: of a thread block's last tile nothing would hide the layernorm.  So the team that
 * multiplies it hands the sums of its first product, 64 rows, through shared memory to the other
 * team, which has nothing left to multiply and finishes these rows.  The second product still runs
 * then.  Each thread hands its sums to the thread with its number in the other team. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_PINGPONG_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_PINGPONG_CUH

#include "hopper_gemm_compute.cuh"
#include "hopper_gemm_finish.cuh"

namespace fp::hopper_gemm
{

template <class W> struct pingpong {
    FP_GEMM_STEP;
    using products = compute<W>;
    static constexpr int STAGES = S::STAGES;

    static_assert(STAGES > S::RESIDUAL_STEPS, "a place in the ring beside those of a residual");
    static_assert(!S::SHARES || STAGES > 2, "the last step has another place than the sums");

    static FP_DEVICE void run(const W &w, int team)
    {
        const int count = w.steps();
        finish<W> results(w, team);
        /* The team whose turn would come after the last tile helps with that one. */
        const int end = w.first_tile() < w.tiles() ? w.tiles() + (S::SHARES ? w.groups() : 0) : 0;
        int number = w.next_tile(w.first_tile(), team);
        /* All tiles of a strip's thread block have the same columns, and so the same bias. */
        constexpr bool ONCE = S::SPARE && S::E4M3 && S::STRIPS && !S::SWAP;
        u32 bias[products::LOADS];
        if constexpr (ONCE)
            products::load_bias(w, w.part() * BN, bias);
#pragma unroll 1
        for (u32 nth = team; number < end; nth += 2, number = w.next_tile(number, 2)) {
            sums c;
            const bool helps = S::SHARES && number >= w.tiles();
            const item i = w.item_at(helps ? number - w.groups() : number, nth, team, 0);
            const u32 phase = nth / 2 & 1;
            position at = w.ring_of(nth);
            int left_out = MI - 1;
            if (helps) {
                take_product(w, c, at);
            } else {
                if constexpr (ONCE)
                    products::begin_with(w, c, bias);
                else
                    products::begin(w, c, i.t.n0, 0);
                const bool hands = S::SHARES && w.next_tile(i.number) >= w.tiles();
                left_out = hands ? 0 : results.NONE;
                multiply(w, c, at, count, i, results, [&]() {
                    if (hands)
                        hand_product(w, c, at, team);
                });
            }
            products::add_residual(w, c, at, 0, address(w.s.landed[team]));
            results.rows(c, i, phase, left_out);
        }
        results.end();
    }

    /* All steps of a tile.  then: see multiply_and_add(). */
    template <class Then>
    static FP_DEVICE void multiply(const W &w, sums &c, position &at, int count, const item &i,
                                   finish<W> &results, const Then &then)
    {
        const u32 phase = i.nth / S::TEAMS & 1;
        if constexpr (S::BETWEEN) {
            mbarrier_wait(address(w.s.turn[i.team]), i.team == 0 ? phase ^ 1 : phase);
            multiply_and_add(w, c, at, count, i.nth, address(w.s.turn[1 - i.team]), then);
        } else {
            multiply_alone(w, c, at, count, i, phase, results);
        }
    }

    /* A team multiplies when the other one has issued its last step.  That one's residual may still
     * be on its way then.  Before the first step that takes its place the team waits for it: of an
     * mbarrier only the parity of its phase shows, so one must not wait for a phase while the one
     * before has still to end. */
    static FP_DEVICE void multiply_alone(const W &w, sums &c, position &at, int count,
                                         const item &i, u32 phase, finish<W> &results)
    {
        const int other = (i.team + 1) % S::TEAMS, first_there = min(count, STAGES - S::PIECES);
        const u32 parity = i.team == 0 ? phase ^ 1 : phase;
        mbarrier_wait(address(w.s.turn[i.team]), parity);
        products::multiply(w, c, at, count, 0, address(w.s.turn[other]), [&](int step) {
            if (S::RESIDUAL_STEPS > 0 && step == first_there)
                mbarrier_wait(address(w.s.landed[other]), parity);
            if (step == count - 1)
                results.prepare(i);
        });
    }

    /* ---- a residual between two products ----------------------------------------------------- */

    /* What the residual adds to product m of two products, in columns of a chunk. */
    using addends = float[S::CHUNK / 8][2][2];

    /* panel: its place in shared memory. */
    static FP_DEVICE void load_addends(const W &w, addends &x, u32 panel, int chunk, int m)
    {
        constexpr int BLOCKS = S::CHUNK / 8, WITHIN = PANEL / 8;
        const u32 from = S::first_matrices(panel, BM, S::warp_row(0, m));
#pragma unroll
        for (int p = 0; p < BLOCKS; p += 2) {
            u32 r[4];
            load_matrix(r, S::matrices_at(from, BM, 0, chunk * BLOCKS % WITHIN + p));
#pragma unroll
            for (int i = 0; i < 4; i++)
                D::unpack(r[i], x[p + i / 2][i % 2][0], x[p + i / 2][i % 2][1]);
        }
        pin(x);
    }

    /* Waits for all products but the last one, of which product m is none, and adds a chunk to m.
     * The residual of columns past the last is 0: the branch is there to keep ptxas from mixing
     * sums of different chunks. */
    static FP_DEVICE void add_chunk(const W &w, sums &c, const addends &x, int chunk, int m)
    {
        constexpr int BLOCKS = S::CHUNK / 8;
        wgmma_wait<1>();
        pin(c[m]);
        if (chunk * S::CHUNK < w.n) {
#pragma unroll
            for (int p = 0; p < BLOCKS; p++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    auto &sum = S::block(c, m, chunk * BLOCKS + p)[i];
                    sum[0] += products::as_sum(w, x[p][i][0]);
                    sum[1] += products::as_sum(w, x[p][i][1]);
                }
        }
    }

    /* With a residual: of the last CHUNKS steps each computes one product while a chunk is added to
     * the other one.  nth: of this thread block's tiles.  next: the mbarrier of the team whose turn
     * it is then.  then(): is called while only the last step of the second product still runs. */
    template <class Then>
    static FP_DEVICE void multiply_and_add(const W &w, sums &c, position &at, int count, u32 nth,
                                           u32 next, const Then &then)
    {
        if (nth == 0) { /* see residual_panels() */
            products::await_step(w, at);
#pragma unroll
            for (int i = 0; i < S::PLACES; i++)
                mbarrier_arrive_warp(address(w.s.residual_empty[i]));
        }
        u32 held =
            products::issue_steps(w, c, at, count - S::CHUNKS, 0, typename compute<W>::nothing());
#pragma unroll
        for (int j = 0; j < S::CHUNKS; j++) {
            constexpr int EACH = PANEL / S::CHUNK; /* of a panel */
            const u32 number = nth * S::PANELS + j / EACH, place = number % S::PLACES,
                      panel = address(w.s.residual[place]);
            addends x;
            products::await_step(w, at);
            products::template issue<0, 1>(w, c, at, 0);
            wgmma_commit();
            if (j % EACH == 0)
                mbarrier_wait(address(w.s.residual_full[place]), number / S::PLACES & 1);
            load_addends(w, x, panel, j, 1);
            add_chunk(w, c, x, j, 1);
            products::give_back(w, held);
            products::template issue<1, 1>(w, c, at, 0);
            wgmma_commit();
            if (j == S::CHUNKS - 1)
                mbarrier_arrive_warp(next);
            load_addends(w, x, panel, j, 0);
            add_chunk(w, c, x, j, 0);
            if (j % EACH == EACH - 1) {
                proxy_fence(); /* TMA writes there next */
                mbarrier_arrive_warp(address(w.s.residual_empty[place]));
            }
            held = at.slot;
            at.advance();
        }
        then();
        products::complete(w, c, held);
    }

    /* ---- a tile that both teams finish ------------------------------------------------------- */

    static constexpr int FOURS = BN / 8; /* of a thread's sums of a product */

    /* Where this thread's i-th four sums are: in the places of the first two of the tile's last
     * STAGES steps.  next: the step after the tile's in the ring. */
    static FP_DEVICE u32 place_of_handed(const W &w, position next, int i)
    {
        const u32 slot = (next.slot + (i < FOURS / 2 ? 0 : 1)) % STAGES;
        return address(w.s.weight[slot]) +
               (i % (FOURS / 2) * FOUR_WARPS + threadIdx.x % FOUR_WARPS) * 16;
    }

    /* Products of a team's other warps may still read the steps in whose places the sums go. */
    static FP_DEVICE void hand_product(const W &w, sums &c, position next, int team)
    {
        S::meet(team);
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            const auto &x = S::block(c, 0, i);
            asm volatile(
                "st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(place_of_handed(w, next, i)),
                "f"(x[0][0]), "f"(x[0][1]), "f"(x[1][0]), "f"(x[1][1])
                : "memory");
        }
        mbarrier_arrive(address(w.s.handed));
    }

    static FP_DEVICE void take_product(const W &w, sums &c, position next)
    {
        mbarrier_wait(address(w.s.handed), 0);
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            auto &x = S::block(c, 0, i);
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(x[0][0]), "=f"(x[0][1]), "=f"(x[1][0]), "=f"(x[1][1])
                         : "r"(place_of_handed(w, next, i))
                         : "memory");
        }
    }
};

} // namespace fp::hopper_gemm

#endif
