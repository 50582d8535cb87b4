/* wgmma, the products of a warpgroup on Hopper (sm_90a), and the descriptors of its operands.
 *
 * A warpgroup is four warps.  wgmma multiplies asynchronously: between wgmma_commit() and the
 * wgmma_wait() that covers it the sums belong to the hardware. */
#ifndef FUSEPLAN_CUDA_WGMMA_CUH
#define FUSEPLAN_CUDA_WGMMA_CUH

#include "mma.cuh"

namespace fp
{

FP_DEVICE void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

FP_DEVICE void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int pending> FP_DEVICE void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/* The compiler moves no use of these registers across a pin: wgmma reads and writes them without
 * the compiler's knowledge until wgmma_wait() returns. */
template <class F> FP_DEVICE void pin(F &f)
{
    constexpr int N = sizeof(F) / sizeof(float);
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(reinterpret_cast<float *>(&f)[i])::"memory");
}

template <int N> FP_DEVICE void pin(u32 (&f)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+r"(f[i][0]), "+r"(f[i][1]), "+r"(f[i][2]), "+r"(f[i][3])::"memory");
}

/* The descriptor of a matrix in shared memory in the swizzle of lines of 128 or 64 bytes; strides
 * in bytes.  See PTX ISA, "Matrix descriptor". */
template <int LINE = 128> FP_DEVICE u64 wgmma_matrix(u32 address, int leading, int stride)
{
    static_assert(LINE == 128 || LINE == 64, "lines that the kernels use");
    return (static_cast<u64>(address & 0x3ffff) >> 4) | static_cast<u64>(leading >> 4) << 16 |
           static_cast<u64>(stride >> 4) << 32 | (LINE == 128 ? 1ull : 2ull) << 62;
}

/* A thread holds four sums of each eight columns; the instruction names the registers of all. */
#define FP_REGISTERS_16  "%0, %1, %2, %3, %4, %5, %6, %7"
#define FP_REGISTERS_32  FP_REGISTERS_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define FP_REGISTERS_48  FP_REGISTERS_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define FP_REGISTERS_64  FP_REGISTERS_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define FP_REGISTERS_72  FP_REGISTERS_64 ", %32, %33, %34, %35"
#define FP_REGISTERS_80  FP_REGISTERS_72 ", %36, %37, %38, %39"
#define FP_REGISTERS_96  FP_REGISTERS_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define FP_REGISTERS_104 FP_REGISTERS_96 ", %48, %49, %50, %51"
#define FP_REGISTERS_128                                                                           \
    FP_REGISTERS_104                                                                               \
    ", %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FP_REGISTERS_144                                                                           \
    FP_REGISTERS_128                                                                               \
    ", %64, %65, %66, %67, %68, %69, %70, %71"
#define FP_REGISTERS_192                                                                           \
    FP_REGISTERS_144                                                                               \
    ", %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "                               \
    "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define FP_REGISTERS_256                                                                           \
    FP_REGISTERS_192                                                                               \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "                       \
    "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, "                     \
    "%120, %121, %122, %123, %124, %125, %126, %127"

/* MODE: "+f" for sums that are added to, "=f" for sums that are written. */
#define FP_SUMS_OF_8(MODE, i)  MODE(c[i][0][0]), MODE(c[i][0][1]), MODE(c[i][1][0]), MODE(c[i][1][1])
#define FP_SUMS_OF_16(MODE, i) FP_SUMS_OF_8(MODE, i), FP_SUMS_OF_8(MODE, i + 1)
#define FP_SUMS_OF_32(MODE, i) FP_SUMS_OF_16(MODE, i), FP_SUMS_OF_16(MODE, i + 2)
#define FP_SUMS_16(MODE)       FP_SUMS_OF_16(MODE, 0)
#define FP_SUMS_32(MODE)       FP_SUMS_OF_32(MODE, 0)
#define FP_SUMS_48(MODE)       FP_SUMS_32(MODE), FP_SUMS_OF_16(MODE, 4)
#define FP_SUMS_64(MODE)       FP_SUMS_32(MODE), FP_SUMS_OF_32(MODE, 4)
#define FP_SUMS_72(MODE)       FP_SUMS_64(MODE), FP_SUMS_OF_8(MODE, 8)
#define FP_SUMS_80(MODE)       FP_SUMS_64(MODE), FP_SUMS_OF_16(MODE, 8)
#define FP_SUMS_96(MODE)       FP_SUMS_64(MODE), FP_SUMS_OF_32(MODE, 8)
#define FP_SUMS_104(MODE)      FP_SUMS_96(MODE), FP_SUMS_OF_8(MODE, 12)
#define FP_SUMS_128(MODE)      FP_SUMS_96(MODE), FP_SUMS_OF_32(MODE, 12)
#define FP_SUMS_144(MODE)      FP_SUMS_128(MODE), FP_SUMS_OF_16(MODE, 16)
#define FP_SUMS_192(MODE)      FP_SUMS_144(MODE), FP_SUMS_OF_32(MODE, 18), FP_SUMS_OF_16(MODE, 22)
#define FP_SUMS_256(MODE)      FP_SUMS_192(MODE), FP_SUMS_OF_32(MODE, 24), FP_SUMS_OF_32(MODE, 28)

/* One instruction.  TYPES: k and the types.  ADDS: "1" adds to the sums, "0" overwrites them.  A,
 * B: the numbers of the operands a and b, which follow the sums.  FLAGS: 1, 1 and, of half types,
 * TRANS: whether b (and a from shared memory) is read transposed. */
#define FP_WGMMA_OF(TYPES, N, ADDS, MODE, A, B, FLAGS, ...)                                        \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " ADDS ", 0;\n"                                   \
                 "wgmma.mma_async.sync.aligned.m64n" #N TYPES " {" FP_REGISTERS_##N                \
                 " }, " A ", " B ", p, " FLAGS "; }"                                               \
                 : FP_SUMS_##N(MODE)                                                               \
                 : __VA_ARGS__                                                                     \
                 : "memory")
#define FP_WGMMA(TYPE, N, ADDS, MODE, A, B, TRANS, ...)                                            \
    FP_WGMMA_OF("k16.f32." TYPE "." TYPE, N, ADDS, MODE, A, B, "1, 1, " TRANS, __VA_ARGS__)

/* Products with a (64, 16) in shared memory by rows of k, or in registers in the layout of a
 * fragment:
 *   nn      c (64, N) += a b (16, N)     b by rows of n: weights, v
 *   nt      c (64, N) += a b^T           b (N, 16) by rows of k: k of attention
 *   nt_set  c (64, N) = a b^T
 *   tt      c (64, N) += a^T b^T         a (16, 64) by rows of n: weights; b (N, 16): input */
template <class D, int N> struct wgmma;

/* Products with a in shared memory, and with a in registers. */
#define FP_WGMMA_SHARED(name, TYPE, N, ADDS, MODE, A, B, TRANS)                                    \
    static FP_DEVICE void name(sums &c, u64 a, u64 b)                                              \
    {                                                                                              \
        FP_WGMMA(TYPE, N, ADDS, MODE, A, B, TRANS, "l"(a), "l"(b));                                \
    }
#define FP_WGMMA_ROWS(name, TYPE, N, ADDS, MODE, A, B, TRANS)                                      \
    static FP_DEVICE void name(sums &c, const rows &a, u64 b)                                      \
    {                                                                                              \
        FP_WGMMA(TYPE, N, ADDS, MODE, A, B, TRANS, "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),     \
                 "l"(b));                                                                          \
    }

/* A, B: operands a and b of a product from shared memory; AR, BR: of one with a in registers. */
#define FP_WGMMA_STRUCT(D, TYPE, N, A, B, AR, BR)                                                  \
    template <> struct wgmma<D, N> {                                                               \
        using sums = fragment<D, N>;                                                               \
        using rows = u32[4];                                                                       \
        FP_WGMMA_SHARED(nn, TYPE, N, "1", "+f", A, B, "0, 1")                                      \
        FP_WGMMA_SHARED(nt, TYPE, N, "1", "+f", A, B, "0, 0")                                      \
        FP_WGMMA_SHARED(tt, TYPE, N, "1", "+f", A, B, "1, 0")                                      \
        FP_WGMMA_SHARED(nt_set, TYPE, N, "0", "=f", A, B, "0, 0")                                  \
        FP_WGMMA_ROWS(nn, TYPE, N, "1", "+f", AR, BR, "1")                                         \
        FP_WGMMA_ROWS(nt, TYPE, N, "1", "+f", AR, BR, "0")                                         \
        FP_WGMMA_ROWS(nt_set, TYPE, N, "0", "=f", AR, BR, "0")                                     \
    };
#define FP_WGMMA_OF_HALVES(N, A, B, AR, BR)                                                        \
    FP_WGMMA_STRUCT(fp16, "f16", N, A, B, AR, BR)                                                  \
    FP_WGMMA_STRUCT(bf16, "bf16", N, A, B, AR, BR)
FP_WGMMA_OF_HALVES(16, "%8", "%9", "{%8, %9, %10, %11}", "%12")
FP_WGMMA_OF_HALVES(32, "%16", "%17", "{%16, %17, %18, %19}", "%20")
FP_WGMMA_OF_HALVES(48, "%24", "%25", "{%24, %25, %26, %27}", "%28")
FP_WGMMA_OF_HALVES(64, "%32", "%33", "{%32, %33, %34, %35}", "%36")
FP_WGMMA_OF_HALVES(72, "%36", "%37", "{%36, %37, %38, %39}", "%40")
FP_WGMMA_OF_HALVES(80, "%40", "%41", "{%40, %41, %42, %43}", "%44")
FP_WGMMA_OF_HALVES(96, "%48", "%49", "{%48, %49, %50, %51}", "%52")
FP_WGMMA_OF_HALVES(104, "%52", "%53", "{%52, %53, %54, %55}", "%56")
FP_WGMMA_OF_HALVES(128, "%64", "%65", "{%64, %65, %66, %67}", "%68")
FP_WGMMA_OF_HALVES(144, "%72", "%73", "{%72, %73, %74, %75}", "%76")
FP_WGMMA_OF_HALVES(192, "%96", "%97", "{%96, %97, %98, %99}", "%100")
FP_WGMMA_OF_HALVES(256, "%128", "%129", "{%128, %129, %130, %131}", "%132")

struct e4m3 {
    /* Two pairs of D, times factors, become x[0], x[1], y[0], y[1], at most 448 in size. */
    template <class D> static FP_DEVICE u32 pack_in_order(u32 x, u32 y, u32 factors);
    /* The same in the order x[0], y[0], x[1], y[1]. */
    template <class D> static FP_DEVICE u32 pack(u32 x, u32 y, u32 factors);

    /* By fp32: there is no conversion of pairs of bf16, which are the upper halves of these. */
    static FP_DEVICE u32 pack_floats(float a, float b, float c, float d)
    {
        u32 r;
        asm("{ .reg .b16 x, y;\n"
            "cvt.rn.satfinite.e4m3x2.f32 x, %2, %1; cvt.rn.satfinite.e4m3x2.f32 y, %4, %3;\n"
            "mov.b32 %0, {x, y}; }"
            : "=r"(r)
            : "f"(a), "f"(b), "f"(c), "f"(d));
        return r;
    }
    static FP_DEVICE void scaled(u32 x, u32 factors, float &lo, float &hi)
    {
        asm("mul.bf16x2 %0, %0, %1;" : "+r"(x) : "r"(factors));
        bf16::unpack(x, lo, hi);
    }
};

template <> FP_DEVICE u32 e4m3::pack_in_order<fp16>(u32 x, u32 y, u32 factors)
{
    u32 r;
    asm("{ .reg .b32 x, y; .reg .b16 a, b;\n"
        "mul.f16x2 x, %1, %3; mul.f16x2 y, %2, %3;\n"
        "cvt.rn.satfinite.e4m3x2.f16x2 a, x; cvt.rn.satfinite.e4m3x2.f16x2 b, y;\n"
        "mov.b32 %0, {a, b}; }"
        : "=r"(r)
        : "r"(x), "r"(y), "r"(factors));
    return r;
}

template <> FP_DEVICE u32 e4m3::pack<fp16>(u32 x, u32 y, u32 factors)
{
    return __byte_perm(pack_in_order<fp16>(x, y, factors), 0, 0x3120);
}

template <> FP_DEVICE u32 e4m3::pack_in_order<bf16>(u32 x, u32 y, u32 factors)
{
    float a[2], b[2];
    scaled(x, factors, a[0], a[1]);
    scaled(y, factors, b[0], b[1]);
    return pack_floats(a[0], a[1], b[0], b[1]);
}

template <> FP_DEVICE u32 e4m3::pack<bf16>(u32 x, u32 y, u32 factors)
{
    float a[2], b[2];
    scaled(x, factors, a[0], a[1]);
    scaled(y, factors, b[0], b[1]);
    return pack_floats(a[0], b[0], a[1], b[1]);
}

/* Products of e4m3, always by rows of k: a (64, 32), b (N, 32).  Sums are as those of fp16.
 * nt_from: overwrites them where adds is 0. */
#define FP_WGMMA_E4M3(N, A, B, ADDS)                                                               \
    template <> struct wgmma<e4m3, N> {                                                            \
        static FP_DEVICE void nt(fragment<fp16, N> &c, u64 a, u64 b)                               \
        {                                                                                          \
            FP_WGMMA_OF("k32.f32.e4m3.e4m3", N, "1", "+f", A, B, "1, 1", "l"(a), "l"(b));          \
        }                                                                                          \
        static FP_DEVICE void nt_from(fragment<fp16, N> &c, u64 a, u64 b, int adds)                \
        {                                                                                          \
            FP_WGMMA_OF("k32.f32.e4m3.e4m3", N, ADDS, "+f", A, B, "1, 1", "l"(a), "l"(b),          \
                        "r"(adds));                                                                \
        }                                                                                          \
    };
FP_WGMMA_E4M3(16, "%8", "%9", "%10")
FP_WGMMA_E4M3(64, "%32", "%33", "%34")
FP_WGMMA_E4M3(96, "%48", "%49", "%50")
FP_WGMMA_E4M3(128, "%64", "%65", "%66")
FP_WGMMA_E4M3(144, "%72", "%73", "%74")
FP_WGMMA_E4M3(192, "%96", "%97", "%98")
FP_WGMMA_E4M3(256, "%128", "%129", "%130")

} // namespace fp

#endif
