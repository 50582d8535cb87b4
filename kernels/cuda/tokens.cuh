/* Stages on token rows, and the views and epilogues that GEMMs share with them.
 *
 * A view says where row r, column k of an input is in memory.  An epilogue `at(row, col, v)`
 * changes 16 bytes of a row and passes them to the next; the last one stores them or leaves them in
 * v. */
#ifndef FUSEPLAN_CUDA_TOKENS_CUH
#define FUSEPLAN_CUDA_TOKENS_CUH

#include "heads.cuh"

#define FP_FUNCTION FP_DEVICE
#define FP_ERF      erff
#define FP_EXP(x)   fp::exp2_fast((x)*fp::LOG2_E)
#include "activations.h"

namespace fp
{

/* ---- views ----------------------------------------------------------------------------------- */

/* (B,S,columns) */
template <class D> struct token_view {
    static constexpr bool in_rows = true; /* row after row */
    const elem<D> *x;
    int columns;

    FP_DEVICE const elem<D> *row(int r) const
    {
        return x + static_cast<i64>(r) * columns;
    }
    FP_DEVICE i64 col(int k) const
    {
        return k;
    }
};

/* ---- epilogues ------------------------------------------------------------------------------- */

struct keep {
    template <class V> FP_DEVICE void at(int, int, V &) const
    {
    }
    template <class D> static FP_DEVICE u32 packed(float x, float y)
    {
        return D::pack(x, y);
    }
    template <class D> static FP_DEVICE u32 packed_for_e4m3(float x, float y)
    {
        return D::pack(x, y);
    }
};

template <class D> struct store_tokens {
    static constexpr bool in_rows = true;
    static constexpr int turned = 0; /* the size of heads that are turned first */
    elem<D> *out;
    int columns;

    FP_DEVICE elem<D> *place(int row, int col) const
    {
        return out + static_cast<i64>(row) * columns + col;
    }
    FP_DEVICE void at(int row, int col, float (&v)[VEC<D>]) const
    {
        store_vec<D>(place(row, col), v);
    }
};

template <class D, class Next> struct add_bias {
    const elem<D> *bias; /* (columns) */
    Next next;

    FP_DEVICE void at(int row, int col, float (&v)[VEC<D>]) const
    {
        float b[VEC<D>];
        load_vec<D>(bias + col, b);
#pragma unroll
        for (int i = 0; i < VEC<D>; i++)
            v[i] += b[i];
        next.at(row, col, v);
    }
};

template <class D, class Next> struct add_residual {
    const elem<D> *residual; /* (B,S,columns) */
    int columns;
    Next next;

    FP_DEVICE void at(int row, int col, float (&v)[VEC<D>]) const
    {
        float x[VEC<D>];
        load_vec<D>(residual + static_cast<i64>(row) * columns + col, x);
#pragma unroll
        for (int i = 0; i < VEC<D>; i++)
            v[i] += x[i];
        next.at(row, col, v);
    }
};

/* Of a function x (1/2 + tanh(c x)/2): c, two times in fp16. */
template <class Function> constexpr u32 tanh_unit = 0;

/* An activation of two neighbours, and of two as elements. */
template <class D, class Function> struct activation {
    static FP_DEVICE void pair(float &x, float &y)
    {
        if constexpr (is_half<D> && tanh_unit<Function> != 0)
            sigmoid_pair(x, y, tanh_unit<Function>);
        else
            x = Function::of(x), y = Function::of(y);
    }
    static FP_DEVICE u32 packed(float x, float y)
    {
        pair(x, y);
        return D::pack(x, y);
    }
};

/* The same where the elements become e4m3. */
template <class D, class Function> struct activation_for_e4m3 : activation<D, Function> {
};

template <class D, class Function, class Next> struct apply {
    using function = activation<D, Function>;
    Next next;

    FP_DEVICE void at(int row, int col, float (&v)[VEC<D>]) const
    {
#pragma unroll
        for (int i = 0; i < VEC<D>; i += 2)
            activation<D, Function>::pair(v[i], v[i + 1]);
        next.at(row, col, v);
    }
    template <class> static FP_DEVICE u32 packed(float x, float y)
    {
        return activation<D, Function>::packed(x, y);
    }
    template <class> static FP_DEVICE u32 packed_for_e4m3(float x, float y)
    {
        return activation_for_e4m3<D, Function>::packed(x, y);
    }
};

#define X(id, name)                                                                                \
    struct name##_function {                                                                       \
        static FP_DEVICE float of(float x)                                                         \
        {                                                                                          \
            return fp_##name(x);                                                                   \
        }                                                                                          \
    };                                                                                             \
    template <class D, class Next> using apply_##name = apply<D, name##_function, Next>;
FP_ACTIVATIONS(X)
#undef X

template <> constexpr u32 tanh_unit<silu_function> = 0x38003800;       /* 1/2 */
template <> constexpr u32 tanh_unit<quick_gelu_function> = 0x3acf3acf; /* 1.702/2 */

/* GELU of half types: by tanh, which is one instruction. */
template <> struct activation<bf16, gelu_function> {
    static FP_DEVICE void pair(float &x, float &y)
    {
        gelu_pair(x, y);
    }
    static FP_DEVICE u32 packed(float x, float y)
    {
        pair(x, y);
        return bf16::pack(x, y);
    }
};
template <> struct activation<fp16, gelu_function> {
    static FP_DEVICE void pair(float &x, float &y)
    {
        gelu_pair(x, y);
    }
    static FP_DEVICE u32 packed(float x, float y)
    {
        return gelu_packed(x, y);
    }
};

template <> struct activation<bf16, gelu_tanh_function> : activation<bf16, gelu_function> {
};
template <> struct activation<fp16, gelu_tanh_function> : activation<fp16, gelu_function> {
};

/* Of e4m3, which keeps three bits of a fraction: x times 1/2 + x p(x^2), kept within 0 and 1, where
 * the polynomial is beyond from |x| = 3.03 on.  tanh has an eighth of the lanes that multiply.
 * Errors, see tests/codegen/check_gelu.c, are at most 0.0038, of normal numbers 6e-4 of the
 * results' norm; those of gelu_packed() 0.0025 and 4e-4. */
template <> struct activation_for_e4m3<fp16, gelu_function> {
    static FP_DEVICE u32 packed(float x, float y)
    {
        u32 r;
        asm("{ .reg .b32 t, p;\n"
            "cvt.rn.satfinite.f16x2.f32 %0, %2, %1;\n"
            "mul.f16x2 t, %0, %0;\n"
            "fma.rn.f16x2 p, t, %3, %4; fma.rn.f16x2 p, p, t, %5;\n"
            "fma.rn.f16x2 p, p, t, %6; fma.rn.f16x2 p, p, t, %7;\n"
            "fma.rn.sat.f16x2 p, p, %0, %8;\n"
            "mul.f16x2 %0, %0, p; }"
            : "=&r"(r)
            : "f"(x), "f"(y), "r"(0x01410141), "r"(0x90e490e4), "r"(0x201c201c), "r"(0xac11ac11),
              "r"(0x365d365d), "r"(0x38003800));
        return r;
    }
};

template <>
struct activation_for_e4m3<fp16, gelu_tanh_function> : activation_for_e4m3<fp16, gelu_function> {
};

/* Columns 2c and 2c+1 to column c: function(first) * second. */
template <class D, class Function, class Next> struct gate {
    Next next; /* stores (B,S,columns/2) */

    FP_DEVICE void at(int row, int col, float (&v)[VEC<D>]) const
    {
        elem<D> *p = next.place(row, col / 2);
#pragma unroll
        for (int i = 0; i < VEC<D>; i += 4) {
            activation<D, Function>::pair(v[i], v[i + 2]);
            store_pair<D>(p + i / 2, v[i] * v[i + 1], v[i + 2] * v[i + 3]);
        }
    }
};

/* ---- elementwise stage ----------------------------------------------------------------------- */

template <class D, class View, class Epilogue>
FP_DEVICE void elementwise(const fp_args &a, int columns, const View &in, const Epilogue &out)
{
    int width = columns / VEC<D>;
    i64 total = static_cast<i64>(live_tokens(a)) * width;
    for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < total;
         i += static_cast<i64>(gridDim.x) * blockDim.x) {
        int row = static_cast<int>(i / width);
        int col = static_cast<int>(i % width) * VEC<D>;
        float v[VEC<D>];
        load_vec<D>(in.row(row) + in.col(col), v);
        out.at(row, col, v);
    }
}

/* ---- norms of rows --------------------------------------------------------------------------- */

/* RMS: the mean is not taken away, and there is no beta. */
template <class D, bool RMS = false> struct norm_weights {
    const elem<D> *gamma, *beta; /* (columns) */
    elem<D> *out;                /* (B,S,columns) */
    int columns;
    float eps;
};

template <class D, bool RMS>
FP_DEVICE void norm_store(const norm_weights<D, RMS> &n, int row, int col, float (&v)[VEC<D>],
                          float mean, float inverse)
{
    float g[VEC<D>], b[VEC<D>] = {};
    load_vec<D>(n.gamma + col, g);
    if constexpr (!RMS)
        load_vec<D>(n.beta + col, b);
#pragma unroll
    for (int i = 0; i < VEC<D>; i++)
        v[i] = (v[i] - mean) * inverse * g[i] + b[i];
    store_vec<D>(n.out + static_cast<i64>(row) * n.columns + col, v);
}

/* One warp normalises one row: the mean first, then the squared distances from it.  Rows of up to
 * 1024 elements stay in registers, longer ones are read three times. */
template <class D, bool RMS, class View, class Before>
FP_DEVICE void norm_row(const norm_weights<D, RMS> &n, int row, const View &in,
                        const Before &before)
{
    constexpr int CHUNKS = 32 / VEC<D>;
    const int first = static_cast<int>(threadIdx.x % 32) * VEC<D>;
    const float share = 1.0f / static_cast<float>(n.columns);
    const elem<D> *x = in.row(row);

    if (n.columns <= 1024) {
        float v[CHUNKS][VEC<D>];
        float sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            int col = first + c * 32 * VEC<D>;
            if (col < n.columns) {
                load_vec<D>(x + in.col(col), v[c]);
                before.at(row, col, v[c]);
#pragma unroll
                for (int i = 0; i < VEC<D>; i++)
                    sum += v[c][i];
            }
        }
        float mean = RMS ? 0.0f : lanes_sum<32>(sum) * share;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if (first + c * 32 * VEC<D> < n.columns)
#pragma unroll
                for (int i = 0; i < VEC<D>; i++)
                    squares += (v[c][i] - mean) * (v[c][i] - mean);
        float inverse = rsqrtf(lanes_sum<32>(squares) * share + n.eps);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if (first + c * 32 * VEC<D> < n.columns)
                norm_store(n, row, first + c * 32 * VEC<D>, v[c], mean, inverse);
        return;
    }

    float v[VEC<D>], sum = 0.0f, squares = 0.0f;
    for (int col = first; !RMS && col < n.columns; col += 32 * VEC<D>) {
        load_vec<D>(x + in.col(col), v);
        before.at(row, col, v);
#pragma unroll
        for (int i = 0; i < VEC<D>; i++)
            sum += v[i];
    }
    float mean = RMS ? 0.0f : lanes_sum<32>(sum) * share;
    for (int col = first; col < n.columns; col += 32 * VEC<D>) {
        load_vec<D>(x + in.col(col), v);
        before.at(row, col, v);
#pragma unroll
        for (int i = 0; i < VEC<D>; i++)
            squares += (v[i] - mean) * (v[i] - mean);
    }
    float inverse = rsqrtf(lanes_sum<32>(squares) * share + n.eps);
    for (int col = first; col < n.columns; col += 32 * VEC<D>) {
        load_vec<D>(x + in.col(col), v);
        before.at(row, col, v);
        norm_store(n, row, col, v, mean, inverse);
    }
}

/* before: what happens to a row first; epilogues that end in keep, e.g. bias and residual.  gamma
 * and beta are on their way while the kernel waits for the one in front of it. */
template <class D, bool RMS, class View, class Before>
FP_DEVICE void norm_rows(const fp_args &a, const norm_weights<D, RMS> &n, const View &in,
                         const Before &before)
{
    constexpr int LINE = 128 / sizeof(elem<D>);
    for (int col = threadIdx.x * LINE; col < n.columns; col += blockDim.x * LINE) {
        fetch_line(n.gamma + col);
        if constexpr (!RMS)
            fetch_line(n.beta + col);
    }
    await_dependencies();
    int warps = blockDim.x / 32, live = live_tokens(a);
    for (int m = blockIdx.x * warps + threadIdx.x / 32; m < live; m += gridDim.x * warps)
        norm_row(n, m, in, before);
}

} // namespace fp

#endif
