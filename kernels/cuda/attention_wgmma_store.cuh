/* How the warps of attention_wgmma.cuh that compute store their rows: with v's bias, rounded, and
 * joined with what the first part of the mask has stored. */
#ifndef FUSEPLAN_CUDA_ATTENTION_WGMMA_STORE_CUH
#define FUSEPLAN_CUDA_ATTENTION_WGMMA_STORE_CUH

#include "attention_wgmma_shape.cuh"

namespace fp
{

FP_DEVICE u32 load_shared(u32 at)
{
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}

template <class S> struct attention_store {
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

    FP_DEVICE place find_place(const int *item, int tile, int group) const
    {
        const int block = item[3] + group;
        return {ORDERED ? shared_address(&s.token[tile][group * BLOCK]) : 0, block * BLOCK,
                block < a.mask.blocks ? item[4] : 0};
    }

    /* ---- joining two parts ------------------------------------------------------------------- */

    /* log2 of each row's sum, (B,H,S); MASKED where a row has no key. */
    FP_DEVICE float *logs(const int *item) const
    {
        return a.workspace + static_cast<i64>(item[1] * a.heads + item[2]) * a.seq_len;
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
                              const int *item, int row, int lane) const
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int token = to.token(row + r * 8);
            if (lane % 4 == 0 && to.exists(token))
                logs(item)[token] = log_sum(state, sums[r], r);
        }
    }

    /* The second part: weighs its rows against those of the first. */
    FP_DEVICE void weigh(shares &by, const row_state &state, const float (&sums)[2],
                         const place &to, const int *item, int row) const
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
                out + token * step + panel * 64 + lane % 8 * 8, to.exists(token)};
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

    /* The result, rounded, where q was.  joins: what the first part stored is there. */
    FP_DEVICE void round_context(const fragment<D, W> &o, const shares &by, bool joins,
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
            for (int i = 0; i < 2; i++) {
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

    FP_DEVICE void store(const fragment<D, W> &o, const row_state &state, int tile, int group)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int warp = static_cast<int>(threadIdx.x) % FOUR_WARPS / 32;
        const int *item = s.item[tile];
        const bool in_parts = ORDERED && a.tiles.parts > 1, joins = in_parts && item[5] > 0;
        const place to = find_place(item, tile, group);
        unsigned char *rows = s.q[tile][group] + warp * WARP_ROWS * 128;
        const i64 batch = item[1], head = item[2], step = S::MERGE ? a.heads * W : W;
        T *out = elements<D>(*io.out);
        out = S::MERGE ? out + (first_row(a, item[1]) * a.heads + head) * W
                       : out + (batch * a.heads + head) * a.seq_len * W;
        if (joins) {
            part_counter<S>{a}.await_first(item);
            fetch_rows(rows, out, step, to, warp, lane);
        }
        const float sums[2] = {lanes_sum<4>(state.sum[0]), lanes_sum<4>(state.sum[1])};
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
        store_rows(rows, out, step, to, warp, lane);
        __syncwarp();
        if (in_parts)
            part_counter<S>{a}.arrive(item);
    }
};

} // namespace fp

#endif
