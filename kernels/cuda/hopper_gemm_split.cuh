/* The sums of hopper_gemm.cuh where the thread blocks of a cluster share K (SPLIT > 1).
 *
 * Each thread block owns OWN rows of the cluster's tile.  It gets the sums of these rows from all,
 * adds them up and runs the epilogue, and the layernorm if one follows. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_SPLIT_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_SPLIT_CUH

#include "hopper_gemm_norm.cuh"

namespace fp
{

/* W: gemm_norms_swapped */
template <class W> struct gemm_splits : W {
    using D = typename W::D;
    using S = typename W::S;
    using tile = typename W::tile;
    using sums = typename W::sums;
    using W::a, W::n, W::end, W::s;
    using W::block, W::first_tile, W::meet, W::part, W::warp_row, W::normalise_chunks;
    using W::BM, W::BN, W::SPLIT, W::NORM;
    using W::W;

    static constexpr int OWN = BM / SPLIT, OWN_BYTES = OWN * S::LDS * 4;

    static_assert(SPLIT == 1 || S::STAGES * (S::A_BYTES + S::B_BYTES) >= SPLIT * OWN_BYTES,
                  "sums are sent from the ring's place");

    /* The sums of this thread block, in the place of the ring: those of a row of the tile. */
    FP_DEVICE u32 sums_here(int row) const
    {
        return shared_address(s.a) + row * (S::LDS * 4);
    }

    /* Where the sums of the rows that thread block `owner` owns come to from another one. */
    FP_DEVICE u32 sums_from(int from, int owner) const
    {
        return shared_address(s.out) + (from < owner ? from : from - 1) * OWN_BYTES;
    }

    /* Rows of sums go to the thread blocks that own them, in one copy for each. */
    FP_DEVICE void send_sums(sums &c) const
    {
        const int thread = static_cast<int>(threadIdx.x);
        const u32 here = shared_address(&s.done[0]);
        if (thread == 0)
            mbarrier_expect(here, (SPLIT - 1) * OWN_BYTES);
        meet(0); /* all have read the ring */
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const u32 to = sums_here(warp_row(0, 0) + fragment_row<D>(r)) + fragment_col<D>(0) * 4;
#pragma unroll
            for (int p = 0; p < BN / 8; p++) {
                const auto &x = block(c, 0, p)[r];
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + p * 32), "f"(x[0]),
                             "f"(x[1])
                             : "memory");
            }
        }
        proxy_fence();
        meet(0);
        if (thread == 0)
#pragma unroll 1
            for (int i = 1; i < SPLIT; i++) {
                const int owner = (part() + i) % SPLIT;
                shared_copy(cluster_address(sums_from(part(), owner), owner),
                            sums_here(owner * OWN), OWN_BYTES, cluster_address(here, owner));
            }
    }

    /* The weights that add_parts() reads are on their way to the caches. */
    FP_DEVICE void fetch_columns(int n0) const
    {
        constexpr int LINE_COLUMNS = 64;
        const int column = n0 + static_cast<int>(threadIdx.x) * LINE_COLUMNS;
        if (threadIdx.x >= (BN + LINE_COLUMNS - 1) / LINE_COLUMNS || column >= n)
            return;
        if (end.bias != nullptr)
            fetch_line(end.bias + column);
        if constexpr (NORM != NORM_NONE) {
            fetch_line(end.gamma + column);
            fetch_line(end.beta + column);
        }
    }

    /* CHUNKS neighbouring threads have a row, 16 bytes of the result each, and ITEMS rows in all,
     * each BELOW rows below the one before.  Those past the last whole row have none. */
    static constexpr int CHUNKS = BN / VEC<D>, BELOW = FOUR_WARPS / CHUNKS,
                         ITEMS = (OWN + BELOW - 1) / BELOW;

    static_assert(SPLIT == 1 || NORM == NORM_NONE || ITEMS == 1 || OWN % BELOW == 0,
                  "of a row that lanes add up together all have a part");

    /* Bias and residual are on their way while sums arrive. */
    FP_DEVICE void add_parts(const tile &t) const
    {
        const int thread = static_cast<int>(threadIdx.x), first = thread / CHUNKS,
                  within = thread % CHUNKS * VEC<D>;
        const int column = t.n0 + within, m0 = t.m0 + part() * OWN + first;
        /* From m0 down to the last row that is owned, and to the last one that is stored. */
        const int rows = first < BELOW ? OWN - first : 0;
        const int stored = column < n ? min(rows, a.tokens - m0) : 0;
        const i64 at = static_cast<i64>(m0) * n + column;
        uint4 bias = make_uint4(0, 0, 0, 0), residual[ITEMS];
        float v[ITEMS][VEC<D>];
        if (stored > 0 && end.bias != nullptr)
            bias = *reinterpret_cast<const uint4 *>(end.bias + column);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            residual[i] = make_uint4(0, 0, 0, 0);
            if (i * BELOW < stored && end.residual != nullptr)
                residual[i] = *reinterpret_cast<const uint4 *>(end.residual + at + i * BELOW * n);
        }
        mbarrier_wait(shared_address(&s.done[0]), 0);
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
                add_sums(v[i], first + i * BELOW, within);
        }
        if constexpr (NORM != NORM_NONE)
            if (rows > 0)
                normalise_chunks<BELOW>(v, first_tile(), part() * OWN + first, column);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            end.activation.at(0, 0, v[i]);
            if (i * BELOW < stored)
                store_vec<D>(end.store.place(m0 + i * BELOW, column), v[i]);
        }
    }

    /* What all thread blocks of the cluster have summed of 16 bytes of a row. */
    FP_DEVICE void add_sums(float (&v)[VEC<D>], int row, int column) const
    {
#pragma unroll
        for (int from = 0; from < SPLIT; from++) {
            const u32 sums = from == part() ? sums_here(part() * OWN) : sums_from(from, part());
#pragma unroll
            for (int e = 0; e < VEC<D>; e += 4) {
                float4 y;
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(y.x), "=f"(y.y), "=f"(y.z), "=f"(y.w)
                             : "r"(sums + (row * S::LDS + column + e) * 4)
                             : "memory");
                v[e] += y.x, v[e + 1] += y.y, v[e + 2] += y.z, v[e + 3] += y.w;
            }
        }
    }
};

} // namespace fp

#endif
