/* The sums of gemm_tma.cuh where the thread blocks of a cluster share K (SPLIT > 1).
 *
 * Each thread block owns OWN rows of the cluster's tile.  It gets the sums of these rows from all,
 * adds them up and runs the epilogue, and the layernorm if one follows. */
#ifndef FUSEPLAN_CUDA_GEMM_TMA_SPLIT_CUH
#define FUSEPLAN_CUDA_GEMM_TMA_SPLIT_CUH

#include "gemm_tma_norm.cuh"

namespace fp
{

/* W: gemm_norms */
template <class W> struct gemm_splits : W {
    using D = typename W::D;
    using S = typename W::S;
    using tile = typename W::tile;
    using sums = typename W::sums;
    using W::a, W::n, W::end, W::s;
    using W::BM, W::BN, W::SPLIT, W::MI, W::NORM;
    using W::first_tile, W::part, W::warp_row, W::send_moments, W::normalise_chunk;
    using W::W;

    /* Where a thread block keeps the sums of its rows that the cluster's block number
     * `from` sent. */
    static constexpr int OWN = BM / SPLIT;

    FP_DEVICE u32 sums_at(int from, int row, int column) const
    {
        return shared_address(s.out) + ((from * OWN + row) * S::LDS + column) * 4;
    }

    /* Each row of sums goes to the thread block that owns it, and is counted on its mbarrier. */
    FP_DEVICE void send_sums(sums &c, int member) const
    {
        const u32 here = shared_address(&s.done[0]);
        if (threadIdx.x == 0)
            mbarrier_expect(here, BM * BN * 4);
        __syncwarp();
#pragma unroll
        for (int m = 0; m < MI; m++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int row = warp_row(member, m) + fragment_row<D>(r), owner = row / OWN;
                const u32 to =
                    cluster_address(sums_at(part(), row % OWN, fragment_col<D>(0)), owner);
                const u32 arrived = cluster_address(here, owner);
#pragma unroll
                for (int p = 0; p < BN / 8; p++)
                    send_cluster(to + p * 32, c[m][p][r][0], c[m][p][r][1], arrived);
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

    /* 16 bytes of a row of the sums: where they are in the tile, and in memory. */
    struct chunk {
        int row, within, to, column;
        bool valid;
    };

    static constexpr int CHUNKS = BN / VEC<D>, ADDERS = S::CONSUMERS * FOUR_WARPS,
                         ITEMS = (OWN * CHUNKS + ADDERS - 1) / ADDERS;

    FP_DEVICE chunk chunk_of(const tile &t, int item) const
    {
        const int number = item * ADDERS + static_cast<int>(threadIdx.x);
        const int row = number / CHUNKS, within = number % CHUNKS * VEC<D>,
                  m = t.m0 + part() * OWN + row;
        const bool valid = row < OWN && m < a.tokens && t.n0 + within < n;
        return {row, within, m, t.n0 + within, valid};
    }

    /* Bias and residual of the chunks are on their way while sums arrive. */
    FP_DEVICE void add_parts(const tile &t) const
    {
        uint4 bias[ITEMS], residual[ITEMS];
        float v[ITEMS][VEC<D>];
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const chunk at = chunk_of(t, i);
            bias[i] = residual[i] = make_uint4(0, 0, 0, 0);
            if (at.valid && end.bias != nullptr)
                bias[i] = *reinterpret_cast<const uint4 *>(end.bias + at.column);
            if (at.valid && end.residual != nullptr)
                residual[i] = *reinterpret_cast<const uint4 *>(
                    end.residual + static_cast<i64>(at.to) * n + at.column);
        }
        mbarrier_wait(shared_address(&s.done[0]), 0);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const chunk at = chunk_of(t, i);
            float x[VEC<D>];
            unpack_vec<D>(bias[i], v[i]);
            unpack_vec<D>(residual[i], x);
#pragma unroll
            for (int e = 0; e < VEC<D>; e++)
                v[i][e] += x[e];
            if (at.row < OWN)
                add_sums(v[i], at.row, at.within);
            if (NORM != NORM_NONE && at.row < OWN)
                send_moments(v[i], first_tile(), part() * OWN + at.row);
        }
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const chunk at = chunk_of(t, i);
            if (NORM != NORM_NONE && at.row < OWN)
                normalise_chunk(v[i], first_tile(), part() * OWN + at.row, at.column);
            end.activation.at(0, 0, v[i]);
            if (at.valid)
                store_vec<D>(end.store.place(at.to, at.column), v[i]);
        }
    }

    /* What all thread blocks of the cluster have summed of 16 bytes of a row. */
    FP_DEVICE void add_sums(float (&v)[VEC<D>], int r, int within) const
    {
#pragma unroll
        for (int from = 0; from < SPLIT; from++)
#pragma unroll
            for (int e = 0; e < VEC<D>; e += 4) {
                float4 y;
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(y.x), "=f"(y.y), "=f"(y.z), "=f"(y.w)
                             : "r"(sums_at(from, r, within + e))
                             : "memory");
                v[e] += y.x, v[e + 1] += y.y, v[e + 2] += y.z, v[e + 3] += y.w;
            }
    }
};

} // namespace fp

#endif
