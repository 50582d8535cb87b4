/* The thread blocks of a cluster share the inner dimension of one tile of 64 rows (SPLIT > 1).
 *
 * Each thread block owns OWN rows of the tile.  It gets the sums of these rows from all, adds them
 * up and finishes them, with the layernorm if one follows: its group are then the thread blocks of
 * other clusters that have the same rows. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_SPLIT_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_SPLIT_CUH

#include "hopper_gemm_compute.cuh"
#include "hopper_gemm_moments.cuh"

namespace fp::hopper_gemm
{

template <class W> struct split {
    FP_GEMM_STEP;
    using products = compute<W>;
    using group = exchange<W>;
    static constexpr int SPLIT = S::SPLIT;
    static constexpr int OWN = BM / SPLIT, LDS = BN + FP_GEMM_SUMS_PAD, /* floats of a row */
        OWN_BYTES = OWN * LDS * 4;
    /* CHUNKS neighbouring threads have a row, 16 bytes of the result each, and ITEMS rows in all,
     * each BELOW rows below the one before. */
    static constexpr int CHUNKS = BN / VEC<D>, BELOW = FOUR_WARPS / CHUNKS,
                         ITEMS = (OWN + BELOW - 1) / BELOW;

    static_assert(BM == 64 && S::CONSUMERS == 1 && (BN == 64 || BN == 128),
                  "a warpgroup has the tile, and the lanes that add up a row are a power of two");
    static_assert(S::NORM != FP_NORM_CLUSTER, "a cluster takes one tile");
    static_assert(sizeof(S::smem::out) == (SPLIT - 1) * OWN_BYTES,
                  "rows of sums from each other one");
    static_assert(S::STAGES * (S::A_BYTES + S::B_BYTES) >= SPLIT * OWN_BYTES,
                  "sums are sent from the ring's place");

    static FP_DEVICE void run(const W &w)
    {
        if (w.first_tile() >= w.tiles()) {
            cluster_wait();
            return;
        }
        const tile t = w.locate(w.first_tile());
        sums c;
        fetch_columns(w, t.n0);
        products::begin(w, c, t.n0, 0);
        typename W::position at = {0, 0};
        if (w.steps() > 0)
            products::multiply(w, c, at, w.steps(), 0, 0);
        cluster_wait(); /* for all to have begun */
        send_sums(w, c);
        await_dependencies();
        add_parts(w, t);
        cluster_wait(); /* for all to have what this one sent */
    }

    /* The sums of this thread block, in the place of the ring: those of a row of the tile. */
    static FP_DEVICE u32 sums_here(const W &w, int row)
    {
        return address(w.s.input[0]) + row * (LDS * 4);
    }

    /* Where the sums of the rows that thread block `owner` owns come to from another one. */
    static FP_DEVICE u32 sums_from(const W &w, int from, int owner)
    {
        return address(w.s.out) + (from < owner ? from : from - 1) * OWN_BYTES;
    }

    /* Rows of sums go to the thread blocks that own them, in one copy for each. */
    static FP_DEVICE void send_sums(const W &w, sums &c)
    {
        const int thread = static_cast<int>(threadIdx.x);
        const u32 here = address(w.s.done);
        if (thread == 0)
            mbarrier_expect(here, (SPLIT - 1) * OWN_BYTES);
        S::meet(0); /* all have read the ring */
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const u32 to =
                sums_here(w, S::warp_row(0, 0) + fragment_row<D>(r)) + fragment_col<D>(0) * 4;
#pragma unroll
            for (int p = 0; p < BN / 8; p++) {
                const auto &x = S::block(c, 0, p)[r];
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + p * 32), "f"(x[0]),
                             "f"(x[1])
                             : "memory");
            }
        }
        proxy_fence();
        S::meet(0);
        if (thread == 0)
#pragma unroll 1
            for (int i = 1; i < SPLIT; i++) {
                const int owner = (w.part() + i) % SPLIT;
                shared_copy(cluster_address(sums_from(w, w.part(), owner), owner),
                            sums_here(w, owner * OWN), OWN_BYTES, cluster_address(here, owner));
            }
    }

    /* The weights that add_parts() reads are on their way to the caches. */
    static FP_DEVICE void fetch_columns(const W &w, int n0)
    {
        constexpr int LINE_COLUMNS = 64;
        const int column = n0 + static_cast<int>(threadIdx.x) * LINE_COLUMNS;
        if (threadIdx.x >= (BN + LINE_COLUMNS - 1) / LINE_COLUMNS || column >= w.n)
            return;
        if (w.end.bias != nullptr)
            fetch_line(w.end.bias + column);
        if constexpr (S::NORM != FP_NORM_NONE) {
            fetch_line(w.end.gamma + column);
            if constexpr (!S::RMS)
                fetch_line(w.end.beta + column);
        }
    }

    /* Bias and residual are on their way while sums arrive. */
    static FP_DEVICE void add_parts(const W &w, const tile &t)
    {
        const int thread = static_cast<int>(threadIdx.x), first = thread / CHUNKS,
                  within = thread % CHUNKS * VEC<D>;
        const int column = t.n0 + within, m0 = t.m0 + w.part() * OWN + first;
        /* From m0 down to the last row that is owned, and to the last one that is stored. */
        const int rows = first < BELOW ? OWN - first : 0;
        const int stored = column < w.n ? min(rows, w.a.tokens - m0) : 0;
        const i64 at = static_cast<i64>(m0) * w.n + column;
        uint4 bias = make_uint4(0, 0, 0, 0), residual[ITEMS];
        float v[ITEMS][VEC<D>];
        if (stored > 0 && w.end.bias != nullptr)
            bias = *reinterpret_cast<const uint4 *>(w.end.bias + column);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            residual[i] = make_uint4(0, 0, 0, 0);
            if (i * BELOW < stored && w.end.residual != nullptr)
                residual[i] =
                    *reinterpret_cast<const uint4 *>(w.end.residual + at + i * BELOW * w.n);
        }
        mbarrier_wait(address(w.s.done), 0);
        __syncwarp();
        cluster_arrive_relaxed(); /* what the others sent has left their shared memory */
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            float x[VEC<D>];
            unpack_vec<D>(bias, v[i]);
            unpack_vec<D>(residual[i], x);
#pragma unroll
            for (int e = 0; e < VEC<D>; e++)
                v[i][e] += x[e];
            if (i * BELOW < rows)
                add_sums(w, v[i], first + i * BELOW, within);
            if constexpr (S::KEEPS)
                if (i * BELOW < stored)
                    store_vec<D>(w.end.sum + at + i * BELOW * w.n, v[i]);
        }
        if constexpr (S::NORM != FP_NORM_NONE)
            if (rows > 0)
                normalise(w, v, w.first_tile(), w.part() * OWN + first, column);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            if constexpr (W::TURNED > 0)
                turn(w, v[i], min(m0 + i * BELOW, w.a.tokens - 1), column);
            w.end.activation.at(0, 0, v[i]);
            if constexpr (S::OUT_E4M3)
                store_e4m3(w, v[i], at + i * BELOW * w.n, i * BELOW < stored);
            if constexpr (!S::OUT_E4M3 || S::OUT_BOTH)
                if (i * BELOW < stored)
                    w.end.store.at(m0 + i * BELOW, column, v[i]);
        }
    }

    /* Two lanes have 16 columns, and store 8 bytes each: columns 0..3 with 8..11, 4..7 with 12..15,
     * in the order of hopper_gemm_pairs.cuh. */
    static FP_DEVICE void store_e4m3(const W &w, const float (&v)[VEC<D>], i64 at, bool stores)
    {
        const u32 own[4] = {D::pack(v[0], v[1]), D::pack(v[2], v[3]), D::pack(v[4], v[5]),
                            D::pack(v[6], v[7])};
        const bool odd = S::lane() % 2 != 0;
        u32 r[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const u32 mine = odd ? own[2 + i] : own[i],
                      other = __shfl_xor_sync(~0u, odd ? own[i] : own[2 + i], 1);
            r[i] = e4m3::pack<D>(odd ? other : mine, odd ? mine : other, w.a.e4m3.factors);
        }
        if (stores)
            *reinterpret_cast<uint2 *>(static_cast<unsigned char *>(w.a.e4m3.out) + at) =
                make_uint2(r[0], r[1]);
    }

    /* Another lane has the other halves of the pairs of 16 bytes of a row. */
    static FP_DEVICE void turn(const W &w, float (&v)[VEC<D>], int row, int column)
    {
        const auto turns = w.end.store.turns();
        float other[VEC<D>];
#pragma unroll
        for (int e = 0; e < VEC<D>; e++)
            other[e] = __shfl_xor_sync(~0u, v[e], W::TURNED / 2 / VEC<D>);
        if (turns.of_column(column))
            turns.turn(v, other, column, turns.of_row(row));
    }

    /* What all thread blocks of the cluster have summed of 16 bytes of a row. */
    static FP_DEVICE void add_sums(const W &w, float (&v)[VEC<D>], int row, int column)
    {
        const float alpha = S::E4M3 ? w.a.e4m3.alpha : 1.0f;
#pragma unroll
        for (int from = 0; from < SPLIT; from++) {
            const u32 sums =
                from == w.part() ? sums_here(w, w.part() * OWN) : sums_from(w, from, w.part());
#pragma unroll
            for (int e = 0; e < VEC<D>; e += 4) {
                float4 y;
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(y.x), "=f"(y.y), "=f"(y.z), "=f"(y.w)
                             : "r"(sums + (row * LDS + column + e) * 4)
                             : "memory");
                v[e] += y.x * alpha, v[e + 1] += y.y * alpha;
                v[e + 2] += y.z * alpha, v[e + 3] += y.w * alpha;
            }
        }
    }

    /* ---- a layernorm ------------------------------------------------------------------------- */

    /* What a thread block sends of rows, each BELOW rows below the one before.  to: the mailbox of
     * the first one at the first thread block of the group. */
    static FP_DEVICE void send_moments(const W &w, const float (&v)[ITEMS][VEC<D>], u64 *to)
    {
        float mean[ITEMS] = {}, squares[ITEMS] = {};
#pragma unroll
        for (int r = 0; r < ITEMS; r++)
#pragma unroll
            for (int e = 0; e < VEC<D>; e++)
                mean[r] += v[r][e] * (1.0f / BN);
        lanes_sums<CHUNKS>(mean);
#pragma unroll
        for (int r = 0; r < ITEMS; r++)
#pragma unroll
            for (int e = 0; e < VEC<D>; e++)
                squares[r] += (v[r][e] - mean[r]) * (v[r][e] - mean[r]);
        lanes_sums<CHUNKS>(squares);
#pragma unroll 1
        for (int i = S::lane() % CHUNKS; i < w.ranks(); i += CHUNKS)
#pragma unroll
            for (int r = 0; r < ITEMS; r++)
                store_relaxed(to + i * (w.ranks() * BM) + r * BELOW,
                              group::word_of(mean[r], squares[r]));
    }

    /* Of rows of tile `number`, from `row` on, each BELOW rows below the one before: this lane's 16
     * bytes from `column` on. */
    static FP_DEVICE void normalise(const W &w, float (&v)[ITEMS][VEC<D>], int number, int row,
                                    int column)
    {
        constexpr int EACH = (FP_GEMM_SPLIT_RANKS + CHUNKS - 1) / CHUNKS;
        const auto at = w.place_of(number);
        float gamma[VEC<D>], beta[VEC<D>] = {};
        load_vec<D>(w.end.gamma + column, gamma);
        if constexpr (!S::RMS)
            load_vec<D>(w.end.beta + column, beta);
        moments x[ITEMS][EACH];
        scaling k[ITEMS];
        send_moments(w, v, w.mailbox(at.strip, 0, at.rank) + row);
        group::template take_moments<CHUNKS, BELOW>(
            w, x, w.mailbox(at.strip, at.rank, S::lane() % CHUNKS) + row);
        group::template join<CHUNKS>(w, k, x);
#pragma unroll
        for (int r = 0; r < ITEMS; r++)
#pragma unroll
            for (int e = 0; e < VEC<D>; e++)
                v[r][e] = (v[r][e] * k[r].factor + k[r].shift) * gamma[e] + beta[e];
    }
};

} // namespace fp::hopper_gemm

#endif
