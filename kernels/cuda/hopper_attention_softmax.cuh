/* The softmax of hopper_attention.cuh, online and with lazy maxima, on a lane's part of a fragment:
 * two rows of a warp's 16, and of each the columns of its lane. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_SOFTMAX_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_SOFTMAX_CUH

#include "hopper_attention_work.cuh"

namespace fp::hopper_attention
{

FP_DEVICE u32 load_shared_16(u32 at)
{
    unsigned short x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(at) : "memory");
    return x;
}

FP_DEVICE float load_shared_float(u32 at)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
    return x;
}

/* x, by an instruction where a copy would do: ptxas moves copies to where products read them.
 * zero: 0, which ptxas must not know. */
FP_DEVICE float written_here(float x, u32 zero)
{
    float y;
    asm("or.b32 %0, %1, %2;" : "=f"(y) : "f"(x), "r"(zero));
    return y;
}

template <class S> struct softmax {
    using D = typename S::D;
    static constexpr int W = S::W, LAZY = 8, LEAST = -0x7fffffff - 1;
    static constexpr float MUCH = LAZY / S::unit; /* of scores, which have yet to be scaled */

    /* c: with FOLDS, what the first scores are added to. */
    static FP_DEVICE void clear(fragment<D, BLOCK> &c, fragment<D, S::CONTEXT> &o, row_state &state)
    {
        if constexpr (S::FOLDS)
#pragma unroll
            for (int i = 0; i < BLOCK / 8; i++)
                c[i][0][0] = c[i][0][1] = c[i][1][0] = c[i][1][1] = 0.0f;
#pragma unroll
        for (int i = 0; i < S::CONTEXT / 8; i++)
            o[i][0][0] = o[i][0][1] = o[i][1][0] = o[i][1][1] = 0.0f;
        state.top[0] = state.top[1] = MASKED;
        state.start[0] = state.start[1] = -S::shift(MASKED);
        state.limit[0] = state.limit[1] = LEAST;
        state.sum[0] = state.sum[1] = 0.0f;
    }

    /* at: the numbers of the tile's distances.  Scores that have yet to be scaled have these scaled
     * back.  A lane's second row is 8 behind its first, and shares two thirds of the numbers. */
    static FP_DEVICE void add_score_bias(fragment<D, BLOCK> &c, u32 at, int group)
    {
        constexpr float root = S::FOLDS ? LOG2_E : 1.0f / inverse_root<W>;
        const u32 tid = threadIdx.x;
        const u32 row = group * BLOCK + tid % FOUR_WARPS / 32 * WARP_ROWS + tid % 32 / 4 + 8;
        at += (tid % 4 * 16 + S::G * BLOCK - 1 - row) * 4;
#pragma unroll
        for (int i = 0; i < 24; i++) {
            const float x = load_shared_float(at + 4 * i) * root;
            if (i < 16)
                c[i / 2][1][i % 2] += x;
            if (i >= 8)
                c[i / 2 - 4][0][i % 2] += x;
        }
    }

    /* at: the group's row words.  A lane's 16 keys are neighbours (block_copy::place).  Returns
     * their bits of the first row, and above them of the second. */
    static FP_DEVICE u32 mask(fragment<D, BLOCK> &c, u32 at)
    {
        const u32 tid = threadIdx.x;
        u32 all = 0;
        at += tid % FOUR_WARPS / 32 * (WARP_ROWS * 8) + tid % 32 / 4 * 8 + tid % 4 * 2;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const u32 kept = load_shared_16(at + 64 * r);
            all |= kept << 16 * r;
#pragma unroll
            for (int i = 0; i < 16; i++)
                c[i / 2][r][i % 2] = kept & (1u << i) ? c[i / 2][r][i % 2] : MASKED;
        }
        return all;
    }

    /* Whether the maximum of any of the warp's rows may have grown by more than LAZY.  Of bits, as
     * the largest of three integers is one instruction: among these, floats that are not negative
     * have their order, and all others are less. */
    static FP_DEVICE bool grows(const fragment<D, BLOCK> &c, const row_state &state)
    {
        bool grown = false;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            int most = __float_as_int(c[0][r][0]);
#pragma unroll
            for (int p = 0; p < 8; p++) {
                if (p > 0)
                    most = max(most, __float_as_int(c[p][r][0]));
                most = max(most, __float_as_int(c[p][r][1]));
            }
            grown |= most >= state.limit[r];
        }
        return __any_sync(0xffffffffu, grown);
    }

    /* Whether the maximum of any of the warp's rows did grow by more than LAZY. */
    static FP_DEVICE bool exceeds(const fragment<D, BLOCK> &c, const row_state &state)
    {
        const float top[2] = {most(c, 0), most(c, 1)};
        return exceed(top, state);
    }

    static FP_DEVICE bool exceed(const float (&top)[2], const row_state &state)
    {
        return __any_sync(0xffffffffu,
                          top[0] > state.top[0] + MUCH || top[1] > state.top[1] + MUCH);
    }

    static FP_DEVICE float most(const fragment<D, BLOCK> &c, int r)
    {
        float top = c[0][r][0];
#pragma unroll
        for (int p = 0; p < 8; p++)
            top = fmaxf(top, fmaxf(c[p][r][0], c[p][r][1]));
        return top;
    }

    /* Raises the maxima to those of all lanes, if any grew by more than LAZY; earlier sums, and the
     * context, shrink. */
    static FP_DEVICE void raise(fragment<D, BLOCK> &c, row_state &state, fragment<D, S::CONTEXT> &o)
    {
        if constexpr (S::FOLDS)
            raise_shifts(c, state, o);
        else
            raise_tops(c, state, o);
    }

    static FP_DEVICE void raise_tops(const fragment<D, BLOCK> &c, row_state &state,
                                     fragment<D, S::CONTEXT> &o)
    {
        float top[2] = {most(c, 0), most(c, 1)}, by[2];
        if (!exceed(top, state))
            return;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            top[r] = fmaxf(state.top[r], lanes_max<4>(top[r]));
            if (S::JOINED && !(top[r] > state.top[r] + MUCH)) {
                by[r] = 1.0f; /* that others grew, of another sequence, changes no bit */
                continue;
            }
            state.start[r] = -S::shift(top[r]);
            by[r] = exp2_fast(state.top[r] * S::unit + state.start[r]);
            state.top[r] = top[r];
            state.limit[r] = top[r] + MUCH < 0.0f ? LEAST : __float_as_int(top[r] + MUCH);
            state.sum[r] *= by[r];
        }
        scale_rows(o, by);
    }

    /* FOLDS: c is shifted already.  A row is shifted further by its largest score, if that is above
     * 0 or the row's first; earlier sums, and the context, shrink. */
    static FP_DEVICE void raise_shifts(fragment<D, BLOCK> &c, row_state &state,
                                       fragment<D, S::CONTEXT> &o)
    {
        float by[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const bool first = state.limit[r] < 0;
            const float top = lanes_max<4>(most(c, r)), more = first ? top : fmaxf(top, 0.0f);
            const bool any = top > 0.5f * MASKED;
            if (any)
                state.limit[r] = __float_as_int(static_cast<float>(LAZY));
            by[r] = first ? 0.0f : exp2_fast(-more);
            const float shift = any ? more : 0.0f;
            state.start[r] -= shift;
#pragma unroll
            for (int p = 0; p < BLOCK / 8; p++)
                c[p][r][0] -= shift, c[p][r][1] -= shift;
        }
        scale_rows(o, by);
    }

    /* Masked scores become p = 2^(S::unit*score + start).  All in one block, so that sums and
     * conversions fill the time between two 2^x.  zero: 0, see soften_shifted(). */
    static FP_DEVICE void soften(u32 (&to)[4][4], fragment<D, BLOCK> &c, row_state &state, u32 zero)
    {
        if constexpr (S::FOLDS)
            soften_shifted(to, c, state, zero);
        else
            soften_scores(to, c, state);
    }

    static FP_DEVICE void soften_scores(u32 (&to)[4][4], fragment<D, BLOCK> &c, row_state &state)
    {
        float sum[2][2];
#pragma unroll
        for (int p = 0; p < 8; p++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    c[p][r][e] = exp2_fast(c[p][r][e] * S::unit + state.start[r]);
                    sum[r][e] = p == 0 ? c[p][r][e] : sum[r][e] + c[p][r][e];
                }
                to[p / 2][p % 2 * 2 + r] = D::pack(c[p][r][0], c[p][r][1]);
            }
        state.sum[0] += sum[0][0] + sum[0][1];
        state.sum[1] += sum[1][0] + sum[1][1];
    }

    /* FOLDS: products have scaled and shifted c, which becomes what the next ones begin with. */
    static FP_DEVICE void soften_shifted(u32 (&to)[4][4], fragment<D, BLOCK> &c,
                                         const row_state &state, u32 zero)
    {
#pragma unroll
        for (int p = 0; p < 8; p++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                to[p / 2][p % 2 * 2 + r] = D::pack(exp2_fast(c[p][r][0]), exp2_fast(c[p][r][1]));
                c[p][r][0] = written_here(state.start[r], zero);
                c[p][r][1] = written_here(state.start[r], zero);
            }
    }

    static FP_DEVICE void scale_rows(fragment<D, S::CONTEXT> &o, const float (&by)[2])
    {
#pragma unroll
        for (int p = 0; p < S::CONTEXT / 8; p++)
#pragma unroll
            for (int r = 0; r < 2; r++)
                o[p][r][0] *= by[r], o[p][r][1] *= by[r];
    }
};

} // namespace fp::hopper_attention

#endif
