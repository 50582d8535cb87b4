/* Finish: what the warps of hopper_attention.cuh that compute do with the context of a tile. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_FINISH_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_FINISH_CUH

#include "hopper_attention_compute.cuh"

namespace fp::hopper_attention
{

/* How warpgroups or thread blocks that share the keys of a tile join their partial results: the
 * first one adds up what the others leave in shared memory. */
template <class S> struct join {
    using D = typename S::D;
    static constexpr int W = S::W, G = S::G, SHARES = S::SHARES, CLUSTER = S::CLUSTER;

    typename S::smem &s;

    static FP_DEVICE void leave_partial(const fragment<D, S::CONTEXT> &o, const row_state &state,
                                        float4 *to)
    {
#pragma unroll
        for (int p = 0; p < W / 8; p++)
            to[p * FOUR_WARPS] = make_float4(o[p][0][0], o[p][0][1], o[p][1][0], o[p][1][1]);
        to[W / 8 * FOUR_WARPS] =
            make_float4(state.top[0], state.top[1], state.sum[0], state.sum[1]);
    }

    /* from: an address in the shared memory of any thread block of the cluster. */
    static FP_DEVICE void add_partial(fragment<D, S::CONTEXT> &o, row_state &state, u32 from)
    {
        constexpr u32 STEP = FOUR_WARPS * sizeof(float4);
        const float4 x = load_cluster(from + W / 8 * STEP);
        const float top[2] = {x.x, x.y}, sum[2] = {x.z, x.w};
        float mine[2], other[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float most = fmaxf(top[r], state.top[r]), down = S::shift(most);
            mine[r] = exp2_fast(state.top[r] * S::unit - down);
            other[r] = exp2_fast(top[r] * S::unit - down);
            state.top[r] = most;
            state.sum[r] = state.sum[r] * mine[r] + sum[r] * other[r];
        }
#pragma unroll
        for (int p = 0; p < W / 8; p++) {
            const float4 y = load_cluster(from + static_cast<u32>(p) * STEP);
            o[p][0][0] = o[p][0][0] * mine[0] + y.x * other[0];
            o[p][0][1] = o[p][0][1] * mine[0] + y.y * other[0];
            o[p][1][0] = o[p][1][0] * mine[1] + y.z * other[1];
            o[p][1][1] = o[p][1][1] * mine[1] + y.w * other[1];
        }
    }

    /* The warpgroup of the second share leaves its partial result; the warpgroup of the first share
     * adds it up. */
    FP_DEVICE void add_shares(fragment<D, S::CONTEXT> &o, row_state &state, int group,
                              int share) const
    {
        const int tid = static_cast<int>(threadIdx.x) % FOUR_WARPS;
        auto area = [&](int of) {
            return s.join + ((of - 1) * G + group) * S::JOIN * FOUR_WARPS + tid;
        };
        if (share > 0)
            leave_partial(o, state, area(share));
        S::meet(group); /* one instruction for both: compute-sanitizer takes two for an error */
        if (share == 0)
#pragma unroll 1
            for (int of = 1; of < SHARES; of++)
                add_partial(o, state, shared_address(area(of)));
    }

    /* Likewise among thread blocks.  What the others leave lies where their keys were. */
    FP_DEVICE void add_cluster(fragment<D, S::CONTEXT> &o, row_state &state) const
    {
        static_assert(CLUSTER == 1 || S::JOIN * FOUR_WARPS * sizeof(float4) <= sizeof(s.k),
                      "the keys' place holds it");
        float4 *area = reinterpret_cast<float4 *>(s.k) + threadIdx.x;
        const int rank = cluster_rank<CLUSTER>();
        if (rank > 0) {
            S::meet(0); /* all warps have read the keys */
            leave_partial(o, state, area);
        }
        cluster_arrive();
        cluster_wait();
        if (rank == 0)
#pragma unroll 1
            for (u32 of = 1; of < CLUSTER; of++)
                add_partial(o, state, cluster_address(shared_address(area), of));
        cluster_arrive(); /* shared memory is there until all have read it */
        cluster_wait();   /* rank 0 does so for racecheck alone, which hangs if some do not */
    }
};

FP_DEVICE u32 load_shared(u32 at)
{
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}

/* How rows are stored: with v's bias, rounded, and joined with what the first part of the mask has
 * stored. */
template <class S> struct store {
    using D = typename S::D;
    using T = elem<D>;
    static constexpr int W = S::W, PANELS = S::PANELS, PANEL = S::PANEL;
    static constexpr bool ORDERED = S::ORDERED;

    const fp_args &a;
    const fp_attention &io;
    typename S::smem &s;

    /* Where rows of a query block go. */
    struct place {
        u32 tokens;     /* of the block's rows, in shared memory; 0: in order from `first` on */
        int first, end; /* end: of the rows that exist */
        FP_DEVICE int token(int row) const
        {
            return tokens ? static_cast<int>(load_shared(tokens + 4 * row)) : first + row;
        }
        FP_DEVICE bool exists(int token) const
        {
            return static_cast<u32>(token) < static_cast<u32>(end);
        }
    };

    FP_DEVICE place find_place(const tile_item &item, int tile, int group) const
    {
        const int block = item.block + group;
        return {ORDERED ? shared_address(&s.token[tile][group * BLOCK]) : 0, block * BLOCK,
                S::JOINED || block < a.mask.blocks ? item.length : 0};
    }

    /* ---- joining two parts ------------------------------------------------------------------- */

    /* log2 of each row's sum, (B,H,S); MASKED where a row has no key. */
    FP_DEVICE float *logs(const tile_item &item) const
    {
        return a.workspace + static_cast<i64>(item.batch * a.heads + item.head) * a.seq_len;
    }

    static FP_DEVICE float log_sum(const row_state &state, float sum, int r)
    {
        return sum > 0.0f ? S::shift(state.top[r]) + __log2f(sum) : MASKED;
    }

    /* What becomes of a lane's rows: their context by `factor`, v's bias by `own`, and what the
     * first part stored by `first`. */
    struct shares {
        float factor[2], own[2], first[2];
    };

    /* The first part: leaves the logarithms for the second. */
    FP_DEVICE void store_logs(const row_state &state, const float (&sums)[2], const place &to,
                              const tile_item &item, int row, int lane) const
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int token = to.token(row + r * 8);
            if (lane % 4 == 0 && to.exists(token))
                logs(item)[token] = log_sum(state, sums[r], r);
        }
    }

    /* The second part: weighs its rows against the first part's. */
    FP_DEVICE void weigh(shares &by, const row_state &state, const float (&sums)[2],
                         const place &to, const tile_item &item, int row) const
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int token = to.token(row + r * 8);
            const float own = log_sum(state, sums[r], r);
            const float first = to.exists(token) ? __ldcg(logs(item) + token) : MASKED;
            const float most = fmaxf(own, first);
            const float x = own > 0.5f * MASKED ? exp2_fast(own - most) : 0.0f;
            const float y = first > 0.5f * MASKED ? exp2_fast(first - most) : 0.0f;
            const float inverse = x + y > 0.0f ? __fdividef(1.0f, x + y) : 0.0f;
            by.own[r] = x * inverse, by.first[r] = y * inverse;
            by.factor[r] *= by.own[r];
        }
    }

    /* ---- a warp's 16 rows of the result ------------------------------------------------------ */

    /* Eight elements of row r of the warp, in shared memory where q was, and in device memory. */
    struct eight {
        unsigned char *here;
        T *there;
        bool exists;
    };

    static FP_DEVICE eight find_eight(unsigned char *rows, T *out, i64 step, const place &to, int r,
                                      int panel, int warp, int lane)
    {
        const int token = to.token(warp * WARP_ROWS + r);
        return {rows + panel * PANEL + r * 128 + ((lane % 8) ^ (r % 8)) * 16,
                out + token * step + panel * 64 + lane % 8 * 8,
                to.exists(token) && S::has(panel, lane % 8)};
    }

    /* Fetches what the first part stored. */
    static FP_DEVICE void fetch_rows(unsigned char *rows, T *out, i64 step, const place &to,
                                     int warp, int lane)
    {
#pragma unroll
        for (int i = 0; i < WARP_ROWS / 4 * PANELS; i++) {
            eight e =
                find_eight(rows, out, step, to, i / PANELS * 4 + lane / 8, i % PANELS, warp, lane);
            copy_16(shared_address(e.here), e.exists ? e.there : out, e.exists);
        }
    }

    static FP_DEVICE void store_rows(unsigned char *rows, T *out, i64 step, const place &to,
                                     int warp, int lane)
    {
#pragma unroll
        for (int i = 0; i < WARP_ROWS / 4 * PANELS; i++) {
            eight e =
                find_eight(rows, out, step, to, i / PANELS * 4 + lane / 8, i % PANELS, warp, lane);
            if (e.exists)
                *reinterpret_cast<uint4 *>(e.there) = *reinterpret_cast<const uint4 *>(e.here);
        }
    }

    /* As e4m3, in the order of hopper_gemm_pairs.cuh: 16 columns of a row for a lane. */
    FP_DEVICE void store_e4m3(const unsigned char *rows, unsigned char *out, i64 step,
                              const place &to, int warp, int lane) const
    {
        constexpr int GROUPS = W / 16;
        static_assert(!S::OUT_E4M3 || (W % 16 == 0 && S::MERGE),
                      "groups of 16 columns of a token's row");
        const u32 factors = a.e4m3.factors;
#pragma unroll
        for (int i = lane; i < WARP_ROWS * GROUPS; i += 32) {
            const int r = i / GROUPS, chunk = i % GROUPS * 2,
                      token = to.token(warp * WARP_ROWS + r);
            const unsigned char *from = rows + chunk / 8 * PANEL + r * 128;
            const uint4 x = *reinterpret_cast<const uint4 *>(from + (chunk % 8 ^ r % 8) * 16),
                        y = *reinterpret_cast<const uint4 *>(from + (chunk % 8 + 1 ^ r % 8) * 16);
            if (to.exists(token))
                *reinterpret_cast<uint4 *>(out + token * step + chunk * 8) =
                    make_uint4(e4m3::pack<D>(x.x, y.x, factors), e4m3::pack<D>(x.y, y.y, factors),
                               e4m3::pack<D>(x.z, y.z, factors), e4m3::pack<D>(x.w, y.w, factors));
        }
    }

    /* The result, rounded, where q was.  joins: what the first part stored is there. */
    FP_DEVICE void round_context(const fragment<D, S::CONTEXT> &o, const shares &by, bool joins,
                                 unsigned char *rows, const u16 *bias, int lane)
    {
        /* Two columns of eight at a time: a lane gives the address of row lane % 16 of one. */
#pragma unroll
        for (int p = 0; p < W / 8; p += 2) {
            unsigned char *at =
                rows + p / 8 * PANEL + lane % 16 * 128 + ((p % 8 + lane / 16) ^ (lane % 8)) * 16;
            u32 x[4];
            if (joins)
                load_matrix(x, at);
#pragma unroll
            for (int i = 0; i < (W % 16 == 0 || p + 1 < W / 8 ? 2 : 1); i++) {
                float b[2] = {0.0f, 0.0f};
                if constexpr (S::BIAS)
                    D::unpack(*reinterpret_cast<const u32 *>(bias + (p + i) * 8), b[0], b[1]);
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    float y[2] = {o[p + i][r][0] * by.factor[r] + by.own[r] * b[0],
                                  o[p + i][r][1] * by.factor[r] + by.own[r] * b[1]};
                    if (joins) {
                        float z[2];
                        D::unpack(x[2 * i + r], z[0], z[1]);
                        y[0] += by.first[r] * z[0], y[1] += by.first[r] * z[1];
                    }
                    x[2 * i + r] = D::pack(y[0], y[1]);
                }
            }
            store_matrix(shared_address(at), x);
        }
        __syncwarp();
    }

    FP_DEVICE void run(const fragment<D, S::CONTEXT> &o, const row_state &state, int tile,
                       int group)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) % FOUR_WARPS / 32;
        const tile_item &item = s.item[tile];
        const bool in_parts = ORDERED && a.tiles.parts > 1, joins = in_parts && item.part > 0;
        const place to = find_place(item, tile, group);
        unsigned char *rows = s.q[tile][group] + warp * WARP_ROWS * 128;
        const i64 batch = item.batch, head = item.head, step = S::MERGE ? a.heads * W : W;
        const i64 first = S::MERGE ? (first_row(a, item.batch) * a.heads + head) * W
                                   : (batch * a.heads + head) * a.seq_len * W;
        T *out = elements<D>(*io.out) + first;
        if (joins) {
            part_counter<S>{a}.await_first(item);
            fetch_rows(rows, out, step, to, warp, lane);
        }
        const float sums[2] = {S::FOLDS ? o[S::CONTEXT / 8 - 1][0][0] : lanes_sum<4>(state.sum[0]),
                               S::FOLDS ? o[S::CONTEXT / 8 - 1][1][0] : lanes_sum<4>(state.sum[1])};
        shares by = {};
#pragma unroll
        for (int r = 0; r < 2; r++) {
            by.factor[r] = sums[r] > 0.0f ? __fdividef(1.0f, sums[r]) : 0.0f;
            by.own[r] = sums[r] > 0.0f ? 1.0f : 0.0f;
        }
        if (joins) {
            weigh(by, state, sums, to, item, warp * WARP_ROWS + lane / 4);
            copy_commit();
            copy_wait<0>();
            __syncwarp();
        } else if (in_parts) {
            store_logs(state, sums, to, item, warp * WARP_ROWS + lane / 4, lane);
        }
        round_context(o, by, joins, rows, s.bias[tile][1] + lane % 4 * 2, lane);
        bool half = true;
        if constexpr (S::OUT_E4M3)
            half = in_parts && !joins; /* the first part hands its rows to the second */
        if (half)
            store_rows(rows, out, step, to, warp, lane);
        if constexpr (S::OUT_E4M3)
            if (!half)
                store_e4m3(rows, static_cast<unsigned char *>(a.e4m3.out) + first, step, to, warp,
                           lane);
        __syncwarp();
        if (in_parts)
            part_counter<S>{a}.arrive(item);
    }
};

/* o, state: what a warpgroup has computed of its rows. */
template <class S>
FP_DEVICE void finish(const fp_args &a, const fp_attention &io, const compute<S> &by,
                      fragment<typename S::D, S::CONTEXT> &o, row_state &state, int tile)
{
    const join<S> joins{by.s};
    if constexpr (S::CLUSTER > 1)
        joins.add_cluster(o, state);
    if constexpr (S::SHARES > 1)
        joins.add_shares(o, state, by.group, by.share);
    else if constexpr (!S::QREG)
        S::meet(by.group); /* before the context takes q's place */
    if (by.first == 0)
        store<S>{a, io, by.s}.run(o, state, tile, by.group);
}

} // namespace fp::hopper_attention

#endif
