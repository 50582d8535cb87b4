/* Storage types, 16-byte access, asynchronous copies, reductions and the grid barrier.  It includes
 * no header of CUDA, so that NVRTC compiles it fast. */
#ifndef FUSEPLAN_CUDA_COMMON_CUH
#define FUSEPLAN_CUDA_COMMON_CUH

#include "abi.h"

#define FP_DEVICE __device__ __forceinline__

namespace fp
{

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

/* Rows and columns of a block of the mask; rows of a block that one warp takes; threads of four
 * warps. */
constexpr int BLOCK = FP_BLOCK, WARP_ROWS = 16, FOUR_WARPS = 128;

/* ---- storage types ------------------------------------------------------------------------------
 *
 * elem: what memory holds.  lanes: how many lanes of a warp share a row of a 16-row fragment (4
 * where tensor cores do the work, 8 where FFMA does).  b_pad: elements that keep the loads of a
 * (k,n) tile free of bank conflicts. */

struct fp16 {
    using elem = u16;
    static constexpr int lanes = 4, b_pad = 8;
    static FP_DEVICE u32 pack(float lo, float hi)
    {
        u32 r;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
        return r;
    }
    static FP_DEVICE void unpack(u32 r, float &lo, float &hi)
    {
        asm("{ .reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }"
            : "=f"(lo), "=f"(hi)
            : "r"(r));
    }
    static FP_DEVICE void mma(float (&c)[2][2], const u32 (&a)[4], u32 b0, u32 b1)
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[1][0]), "+f"(c[1][1])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

struct bf16 {
    using elem = u16;
    static constexpr int lanes = 4, b_pad = 8;
    static FP_DEVICE u32 pack(float lo, float hi)
    {
        u32 r;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
        return r;
    }
    static FP_DEVICE void unpack(u32 r, float &lo, float &hi)
    {
        lo = __uint_as_float(r << 16);
        hi = __uint_as_float(r & 0xffff0000u);
    }
    static FP_DEVICE void mma(float (&c)[2][2], const u32 (&a)[4], u32 b0, u32 b1)
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[1][0]), "+f"(c[1][1])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

struct tf32 {
    using elem = float;
    static constexpr int lanes = 4, b_pad = 8;
    /* Rounds to nearest; the tensor cores would truncate. */
    static FP_DEVICE u32 round(float x)
    {
        u32 r;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
        return r;
    }
    static FP_DEVICE void mma(float (&c)[2][2], const u32 (&a)[4], u32 b0, u32 b1)
    {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[1][0]), "+f"(c[1][1])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
};

struct fp32 {
    using elem = float;
    static constexpr int lanes = 8, b_pad = 4;
};

template <class D> using elem = typename D::elem;
template <class D> constexpr bool is_half = sizeof(elem<D>) == 2;

/* Elements in 16 bytes; the unit in which rows are read and written. */
template <class D> constexpr int VEC = 16 / sizeof(elem<D>);

template <class D> FP_DEVICE void unpack_vec(uint4 r, float (&v)[VEC<D>])
{
    if constexpr (is_half<D>) {
        D::unpack(r.x, v[0], v[1]);
        D::unpack(r.y, v[2], v[3]);
        D::unpack(r.z, v[4], v[5]);
        D::unpack(r.w, v[6], v[7]);
    } else {
        v[0] = __uint_as_float(r.x);
        v[1] = __uint_as_float(r.y);
        v[2] = __uint_as_float(r.z);
        v[3] = __uint_as_float(r.w);
    }
}

template <class D> FP_DEVICE void load_vec(const elem<D> *p, float (&v)[VEC<D>])
{
    unpack_vec<D>(*reinterpret_cast<const uint4 *>(p), v);
}

template <class D> FP_DEVICE uint4 pack_vec(const float (&v)[VEC<D>])
{
    if constexpr (is_half<D>)
        return make_uint4(D::pack(v[0], v[1]), D::pack(v[2], v[3]), D::pack(v[4], v[5]),
                          D::pack(v[6], v[7]));
    return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                      __float_as_uint(v[3]));
}

template <class D> FP_DEVICE void store_vec(elem<D> *p, const float (&v)[VEC<D>])
{
    *reinterpret_cast<uint4 *>(p) = pack_vec<D>(v);
}

template <class D> FP_DEVICE void store_pair(elem<D> *p, float lo, float hi)
{
    if constexpr (is_half<D>)
        *reinterpret_cast<u32 *>(p) = D::pack(lo, hi);
    else
        *reinterpret_cast<float2 *>(p) = make_float2(lo, hi);
}

template <class D> FP_DEVICE float load_one(const elem<D> *p)
{
    float x = *p, none;
    if constexpr (is_half<D>)
        D::unpack(*p, x, none);
    return x;
}

template <class D> FP_DEVICE void store_one(elem<D> *p, float x)
{
    if constexpr (is_half<D>)
        *p = static_cast<u16>(D::pack(x, 0.0f));
    else
        *p = x;
}

/* ---- asynchronous copies --------------------------------------------------------------------- */

FP_DEVICE u32 shared_address(const void *p)
{
    return static_cast<u32>(__cvta_generic_to_shared(p));
}

/* 16 bytes to shared memory, or 16 zero bytes; src must be a valid address in either case. */
FP_DEVICE void copy_async(void *dst, const void *src, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(dst)),
                 "l"(src), "r"(valid ? 16 : 0)
                 : "memory");
}

FP_DEVICE void copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `pending` of this thread's groups are incomplete. */
template <int pending> FP_DEVICE void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/* ---- fast mathematics ------------------------------------------------------------------------ */

FP_DEVICE float exp2_fast(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/* Two values in fp16, and what GELU multiplies them by: 1/2 + 1/2 tanh(c0 x + c1 x^3), in fp16,
 * which a large x leaves at 0 or 1.  A value below fp16's range becomes its least number, as minus
 * infinity times 0 is no number. */
struct gelu_parts {
    u32 x, factor;
};
FP_DEVICE gelu_parts gelu_parts_of(float x, float y)
{
    gelu_parts g;
    asm("{ .reg .b32 p;\n"
        "cvt.rn.f16x2.f32 %0, %3, %2;\n"
        "max.NaN.f16x2 %0, %0, %4;\n"
        "mul.f16x2 p, %0, %0;\n"
        "fma.rn.f16x2 p, p, %5, %6;\n"
        "mul.f16x2 p, p, %0;\n"
        "tanh.approx.f16x2 p, p;\n"
        "fma.rn.f16x2 %1, p, %7, %7; }"
        : "=&r"(g.x), "=r"(g.factor)
        : "f"(x), "f"(y), "r"(0xfbfffbff), "r"(0x28912891), "r"(0x3a623a62), "r"(0x38003800));
    return g;
}

/* GELU of two values for half types. */
FP_DEVICE void gelu_pair(float &x, float &y)
{
    float f, g;
    fp16::unpack(gelu_parts_of(x, y).factor, f, g);
    x *= f;
    y *= g;
}

/* The same as elements of fp16: the values are rounded before the product as well as after it, as
 * they are where GELU is an operator of its own. */
FP_DEVICE u32 gelu_packed(float x, float y)
{
    gelu_parts g = gelu_parts_of(x, y);
    asm("mul.f16x2 %0, %0, %1;" : "+r"(g.x) : "r"(g.factor));
    return g.x;
}

/* x and y times 1/2 + tanh(unit x)/2 for half types; unit: two times in fp16. */
FP_DEVICE void sigmoid_pair(float &x, float &y, u32 unit)
{
    u32 r;
    asm("{ .reg .b32 p; cvt.rn.f16x2.f32 p, %2, %1; mul.f16x2 p, p, %3;\n"
        "tanh.approx.f16x2 p, p; fma.rn.f16x2 %0, p, %4, %4; }"
        : "=r"(r)
        : "f"(x), "f"(y), "r"(unit), "r"(0x38003800));
    float f, g;
    fp16::unpack(r, f, g);
    x *= f;
    y *= g;
}

constexpr float LOG2_E = 1.4426950408889634f;

/* sqrt(W) by Newton's method. */
template <int W, int STEPS = 16>
constexpr double root = (root<W, STEPS - 1> + W / root<W, STEPS - 1>) / 2;
template <int W> constexpr double root<W, 0> = W;

/* 1 / sqrt(W), by which scores are scaled. */
template <int W> constexpr float inverse_root = static_cast<float>(1 / root<W>);

/* A masked score: finite, so that differences are never NaN. */
constexpr float MASKED = -1e30f;

/* Reductions over `width` neighbouring lanes, a power of two; every lane gets the result. */
template <int width> FP_DEVICE float lanes_sum(float x)
{
#pragma unroll
    for (int d = width / 2; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

template <int width> FP_DEVICE float lanes_max(float x)
{
#pragma unroll
    for (int d = width / 2; d > 0; d /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

/* ---- between thread blocks ------------------------------------------------------------------- */

FP_DEVICE u32 load_acquire(const u32 *p)
{
    u32 r;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(r) : "l"(p) : "memory");
    return r;
}

/* All threads of a cooperative launch wait for each other; each then sees what the others wrote
 * before.  Once all have arrived, the top bit of *sync has flipped and its other bits are as
 * before, so that it needs no reset and serves later launches of any grid size. */
FP_DEVICE void grid_barrier(u32 *sync)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        u32 old = atomicAdd(sync, blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u);
        while (((old ^ load_acquire(sync)) & 0x80000000u) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

/* Whether this thread block is the last of `count` to arrive at the counter.  The last one sees
 * what the others wrote before they arrived, and leaves the counter at 0. */
FP_DEVICE bool last_to_arrive(u32 *counter, u32 count)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(counter, count - 1) == count - 1;
    __syncthreads();
    bool result = last;
    __threadfence();
    return result;
}

/* ---- between launches ------------------------------------------------------------------------
 *
 * A kernel may be launched before the one in front of it has ended: its thread blocks begin when
 * all of that one have returned, whose results may not be in memory yet, or, if fp_args.early is
 * set, when all of that one have begun.  What it does before await_dependencies() may read what no
 * segment writes (arguments, lists, weights) and nothing else: what makes a call's lists has ended,
 * since the first segment never begins early.  Every thread that reads or writes a
 * tensor, the workspace or fp_args.sync calls await_dependencies() before.
 *
 * Who launches sets fp_args.early if a multiprocessor holds one thread block of the next kernel.
 * Smaller thread blocks that begin beside others gather on the few multiprocessors that have room,
 * and stay there: on an H200 plans became slower by up to 48 %.  So a launch of no more thread
 * blocks than multiprocessors asks for more shared memory than it uses. */

FP_DEVICE void begin_next(const fp_args &a)
{
#if __CUDA_ARCH__ >= 900
    if (a.early != 0)
        asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Brings the line of 128 bytes that holds *p into the caches. */
FP_DEVICE void fetch_line(const void *p)
{
    asm volatile("prefetch.global.L1 [%0];" ::"l"(p));
}

FP_DEVICE void await_dependencies()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* ---- token rows ------------------------------------------------------------------------------ */

/* The first row of a sequence in tensors of token rows. */
FP_DEVICE i64 first_row(const fp_args &a, int batch)
{
    return a.offset ? a.offset[batch] : static_cast<i64>(batch) * a.seq_len;
}

/* How many token rows are computed.  Tiles may run over, up to a.tokens. */
FP_DEVICE int live_tokens(const fp_args &a)
{
    return a.live ? *a.live : a.tokens;
}

template <class D> FP_DEVICE elem<D> *elements(void *memory)
{
    return static_cast<elem<D> *>(memory);
}

template <class D> FP_DEVICE const elem<D> *elements(const void *memory)
{
    return static_cast<const elem<D> *>(memory);
}

template <class D> FP_DEVICE elem<D> *tensor(const fp_args &a, int t)
{
    return elements<D>(a.tensor[t]);
}

template <class D> FP_DEVICE const elem<D> *weight(const fp_args &a, int w)
{
    return elements<D>(a.weight[w]);
}

/* A weight that is a table. */
FP_DEVICE const float *table(const fp_args &a, int w)
{
    return static_cast<const float *>(a.weight[w]);
}

} // namespace fp

#endif
