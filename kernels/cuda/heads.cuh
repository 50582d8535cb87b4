/* Heads as columns of token rows: a view and epilogues as tokens.cuh says. */
#ifndef FUSEPLAN_CUDA_HEADS_CUH
#define FUSEPLAN_CUDA_HEADS_CUH

#include "common.cuh"

namespace fp
{

/* 16 bytes to memory at once.  nvcc makes four stores of an assignment where it knows too little of
 * the place, as in heads; they take four times as many requests of L2. */
FP_DEVICE void store_16(void *to, uint4 x)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x.x), "r"(x.y), "r"(x.z),
                 "r"(x.w)
                 : "memory");
}

/* (B,H,S,W) read as (B,S,H*W), which merges the heads. */
template <class D, int W> struct head_view {
    static constexpr bool in_rows = false;
    const elem<D> *x;
    int seq_len, heads;
    const int *unpacked; /* as in fp_args */

    FP_DEVICE const elem<D> *row(int r) const
    {
        if (unpacked)
            r = unpacked[r];
        return x + (static_cast<i64>(r / seq_len) * heads * seq_len + r % seq_len) * W;
    }
    FP_DEVICE i64 col(int k) const
    {
        return static_cast<i64>(k / W) * seq_len * W + k % W;
    }
};

/* Stores columns (q, k, v), each (H,W), to 3x(B,H,S,W). */
template <class D, int W> struct store_qkv {
    static constexpr bool in_rows = false;
    static constexpr int turned = 0;
    elem<D> *out;
    int batch, seq_len, heads;
    const int *unpacked; /* as in fp_args */

    struct token {
        int sequence, place;
    };
    FP_DEVICE token token_of(int row) const
    {
        if (unpacked)
            row = unpacked[row];
        return {row / seq_len, row % seq_len};
    }

    /* An element is so many after `out`, by its row and by its column. */
    FP_DEVICE i64 of_row(token t) const
    {
        return (static_cast<i64>(t.sequence) * heads * seq_len + t.place) * W;
    }
    FP_DEVICE i64 of_column(int col) const
    {
        int head = col / W; /* counts through q, k and v */
        i64 matrix = static_cast<i64>(head / heads) * batch * heads + head % heads;
        return matrix * seq_len * W + col % W;
    }
    FP_DEVICE elem<D> *place(int row, int col) const
    {
        return out + of_row(token_of(row)) + of_column(col);
    }
    FP_DEVICE void at(int row, int col, float (&v)[VEC<D>]) const
    {
        store_16(place(row, col), pack_vec<D>(v));
    }
};

/* ---- rotary embeddings -------------------------------------------------------------------- */

/* A pair of a head's columns, turned. */
FP_DEVICE void turn_pair(float &x, float &y, float cos, float sin)
{
    const float z = x * cos - y * sin;
    y = y * cos + x * sin;
    x = z;
}

/* Rotary embeddings of columns (q, k, v), each (H,W): q and k are turned by a table (S,W).  A token
 * has its place in its sequence. */
template <int W> struct rotation {
    const float *table;
    int seq_len, heads;
    const int *unpacked; /* as in fp_args */

    FP_DEVICE bool of_column(int col) const
    {
        return col < 2 * heads * W;
    }
    FP_DEVICE const float *of_place(int place) const
    {
        return table + static_cast<i64>(place) * W;
    }
    FP_DEVICE const float *of_row(int row) const
    {
        return of_place((unpacked ? unpacked[row] : row) % seq_len);
    }

    /* 16 bytes, from `col` on, of a row that has `at` in the table.  other: those W/2 columns away.
     */
    template <int N>
    static FP_DEVICE void turn(float (&v)[N], const float (&other)[N], int col, const float *at)
    {
        const float sign = col % W < W / 2 ? -1.0f : 1.0f;
        const float4 *pairs = reinterpret_cast<const float4 *>(at + col % (W / 2) * 2);
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            const float4 t = __ldg(pairs + i / 2);
            v[i] = v[i] * t.x + other[i] * (sign * t.y);
            v[i + 1] = v[i + 1] * t.z + other[i + 1] * (sign * t.w);
        }
    }
};

/* The same of q and k that turn() of hopper_gemm_store.cuh or hopper_gemm_split.cuh has turned. */
template <class D, int W> struct store_turned_qkv : store_qkv<D, W> {
    static constexpr int turned = W;
    const float *table; /* (S,W) */

    FP_DEVICE rotation<W> turns() const
    {
        return {table, this->seq_len, this->heads, this->unpacked};
    }
};

/* q and k turned.  A thread has one half of its pairs; the other half is in memory. */
template <class D, int W, class View, class Next> struct turn_heads {
    View in;
    const elem<D> *bias; /* (3A), in v already; null: none */
    rotation<W> turns;
    Next next;

    FP_DEVICE void at(int row, int col, float (&v)[VEC<D>]) const
    {
        if (turns.of_column(col)) {
            const int other = col % W < W / 2 ? col + W / 2 : col - W / 2;
            float x[VEC<D>], b[VEC<D>] = {};
            load_vec<D>(in.row(row) + in.col(other), x);
            if (bias)
                load_vec<D>(bias + other, b);
#pragma unroll
            for (int i = 0; i < VEC<D>; i++)
                x[i] += b[i];
            turns.turn(v, x, col, turns.of_row(row));
        }
        next.at(row, col, v);
    }
};

} // namespace fp

#endif
