/* Instructions of Hopper (sm_90a) that GEMMs and attention share: wgmma, the descriptors of its
 * operands, mbarriers, copies of the tensor memory accelerator (TMA), and clusters.
 *
 * A warpgroup is four warps.  wgmma multiplies asynchronously: between wgmma_commit() and the
 * wgmma_wait() that covers it the sums belong to the hardware.  It reads shared memory through the
 * async proxy, which needs proxy_fence() after writes of ordinary instructions and of cp.async. */
#ifndef FUSEPLAN_CUDA_HOPPER_CUH
#define FUSEPLAN_CUDA_HOPPER_CUH

#include "mma.cuh"

namespace fp
{

/* ---- mbarriers: `at` is an address in shared memory ------------------------------------------ */

FP_DEVICE void mbarrier_init(u32 at, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

FP_DEVICE void mbarrier_arrive(u32 at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

/* Arrives once all copies that this thread has issued have landed. */
FP_DEVICE void mbarrier_arrive_copies(u32 at)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at) : "memory");
}

/* One arrival for the warp, after all of its lanes have come here. */
FP_DEVICE void mbarrier_arrive_warp(u32 at)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        mbarrier_arrive(at);
}

/* Waits for the end of the phase with this parity; the first phase has parity 0. */
FP_DEVICE void mbarrier_wait(u32 at, u32 parity)
{
    asm volatile("{ .reg .pred p;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra again; }" ::"r"(at),
                 "r"(parity)
                 : "memory");
}

/* Arrives, and expects copies of that many bytes before the phase ends. */
FP_DEVICE void mbarrier_expect(u32 at, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}

/* The mbarriers that this thread has initialised become visible to copies. */
FP_DEVICE void mbarrier_fence_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Writes that this thread made or has waited for become visible to wgmma and to TMA. */
FP_DEVICE void proxy_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- clusters of thread blocks --------------------------------------------------------------- */

/* The number of this thread block in its cluster of SIZE. */
template <int SIZE> FP_DEVICE int cluster_rank()
{
    return static_cast<int>(blockIdx.x) % SIZE;
}

/* All threads of the cluster that have not returned arrive, and wait for one another.  What they
 * wrote to shared memory before they arrived is visible after they have waited. */
FP_DEVICE void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

/* The same for threads that have written nothing for the others but mbarriers, before
 * mbarrier_fence_init(): it spares the fence of all memory that a release is. */
FP_DEVICE void cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

FP_DEVICE void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The address of the same place in the shared memory of thread block `rank`. */
FP_DEVICE u32 cluster_address(u32 at, u32 rank)
{
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

FP_DEVICE float4 load_cluster(u32 at)
{
    float4 x;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
}

/* Writes two numbers to an address of another thread block, or of this one, and counts them on the
 * mbarrier of that thread block; both addresses are those of cluster_address(). */
FP_DEVICE void send_cluster(u32 to, float x, float y, u32 mbarrier)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 "
                 "[%0], {%1, %2}, [%3];" ::"r"(to),
                 "f"(x), "f"(y), "r"(mbarrier)
                 : "memory");
}

/* Arrives at an mbarrier by its cluster_address(), after this thread's products have read what the
 * mbarrier guards.  It orders no stores of this thread for other thread blocks: a release for the
 * cluster becomes a fence of all memory, which costs as much as a step of the inner dimension. */
FP_DEVICE void mbarrier_arrive_cluster(u32 at)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(at) : "memory");
}

/* ---- 8x8 matrices of 16-bit elements, four of a warp ----------------------------------------- */

FP_DEVICE void load_matrix(u32 (&r)[4], u32 from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
}

FP_DEVICE void store_matrix(u32 to, const u32 (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

/* ---- 16-byte copies to shared memory, as copy_async() with an address ------------------------ */

FP_DEVICE void copy_16(u32 to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

FP_DEVICE void copy_16(u32 to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
}

/* ---- TMA: one thread copies a box of a matrix in memory, which its tensor map describes ------ */

/* Fetches a tensor map, which takes longer than a copy's first bytes. */
FP_DEVICE void fetch_map(const fp_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* What lies outside of the matrix becomes 0. */
FP_DEVICE void box_load(u32 to, const fp_map *map, int column, int row, u32 mbarrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(mbarrier)
                 : "memory");
}

/* The same, to this place of every thread block of the cluster whose bit is set, and counted on the
 * mbarrier of each. */
FP_DEVICE void box_multicast(u32 to, const fp_map *map, int column, int row, u32 mbarrier,
                             u16 thread_blocks)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(mbarrier), "h"(thread_blocks)
                 : "memory");
}

/* What lies outside of the matrix is not stored. */
FP_DEVICE void box_store(const fp_map *map, int column, int row, u32 from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
                 "[%0, {%1, %2}], [%3];" ::"l"(map),
                 "r"(column), "r"(row), "r"(from)
                 : "memory");
}

/* Waits until this thread's stores have read shared memory. */
FP_DEVICE void box_stores_read()
{
    asm volatile("cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group.read 0;" ::
                     : "memory");
}

/* ---- registers: all threads of a warpgroup ask for their number ------------------------------ */

template <int count> FP_DEVICE void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count> FP_DEVICE void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

/* ---- wgmma ----------------------------------------------------------------------------------- */

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
#define FP_REGISTERS_64                                                                            \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FP_REGISTERS_96                                                                            \
    FP_REGISTERS_64                                                                                \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define FP_REGISTERS_128                                                                           \
    FP_REGISTERS_64                                                                                \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "           \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FP_REGISTERS_192                                                                           \
    FP_REGISTERS_128                                                                               \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define FP_REGISTERS_256                                                                           \
    FP_REGISTERS_192                                                                               \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "     \
    "%111, "                                                                                       \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "   \
    "%127"

/* MODE: "+f" for sums that are added to, "=f" for sums that are written. */
#define FP_SUMS_8(MODE, i) MODE(c[i][0][0]), MODE(c[i][0][1]), MODE(c[i][1][0]), MODE(c[i][1][1])
#define FP_SUMS_32(MODE, i)                                                                        \
    FP_SUMS_8(MODE, i), FP_SUMS_8(MODE, i + 1), FP_SUMS_8(MODE, i + 2), FP_SUMS_8(MODE, i + 3)
#define FP_SUMS_64(MODE)  FP_SUMS_32(MODE, 0), FP_SUMS_32(MODE, 4)
#define FP_SUMS_96(MODE)  FP_SUMS_64(MODE), FP_SUMS_32(MODE, 8)
#define FP_SUMS_128(MODE) FP_SUMS_64(MODE), FP_SUMS_32(MODE, 8), FP_SUMS_32(MODE, 12)
#define FP_SUMS_192(MODE) FP_SUMS_128(MODE), FP_SUMS_32(MODE, 16), FP_SUMS_32(MODE, 20)
#define FP_SUMS_256(MODE) FP_SUMS_192(MODE), FP_SUMS_32(MODE, 24), FP_SUMS_32(MODE, 28)

/* One instruction.  ADDS: "1" adds to the sums, "0" overwrites them.  A, B: the numbers of the
 * operands a and b, which follow the sums.  TRANS: whether b (and a from shared memory) is read
 * transposed. */
#define FP_WGMMA(TYPE, N, ADDS, MODE, A, B, TRANS, ...)                                            \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " ADDS ", 0;\n"                                   \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                   \
                 " {" FP_REGISTERS_##N " }, " A ", " B ", p, 1, 1, " TRANS "; }"                   \
                 : FP_SUMS_##N(MODE)                                                               \
                 : __VA_ARGS__                                                                     \
                 : "memory")
#define FP_WGMMA_ROWS(a) "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])

/* Products with a (64, 16) in shared memory by rows of k, or in registers in the layout of a
 * fragment:
 *   nn      c (64, N) += a b (16, N)     b by rows of n: weights, v
 *   nt      c (64, N) += a b^T           b (N, 16) by rows of k: k of attention
 *   nt_set  c (64, N) = a b^T */
template <class D, int N> struct wgmma;

/* A, B: operands a and b of a product from shared memory; AR, BR: of one with a in registers. */
#define FP_WGMMA_STRUCT(D, TYPE, N, A, B, AR, BR)                                                  \
    template <> struct wgmma<D, N> {                                                               \
        using sums = fragment<D, N>;                                                               \
        using rows = u32[4];                                                                       \
        static FP_DEVICE void nn(sums &c, u64 a, u64 b)                                            \
        {                                                                                          \
            FP_WGMMA(TYPE, N, "1", "+f", A, B, "0, 1", "l"(a), "l"(b));                            \
        }                                                                                          \
        static FP_DEVICE void nn(sums &c, const rows &a, u64 b)                                    \
        {                                                                                          \
            FP_WGMMA(TYPE, N, "1", "+f", AR, BR, "1", FP_WGMMA_ROWS(a), "l"(b));                   \
        }                                                                                          \
        static FP_DEVICE void nt(sums &c, u64 a, u64 b)                                            \
        {                                                                                          \
            FP_WGMMA(TYPE, N, "1", "+f", A, B, "0, 0", "l"(a), "l"(b));                            \
        }                                                                                          \
        static FP_DEVICE void nt(sums &c, const rows &a, u64 b)                                    \
        {                                                                                          \
            FP_WGMMA(TYPE, N, "1", "+f", AR, BR, "0", FP_WGMMA_ROWS(a), "l"(b));                   \
        }                                                                                          \
        static FP_DEVICE void nt_set(sums &c, u64 a, u64 b)                                        \
        {                                                                                          \
            FP_WGMMA(TYPE, N, "0", "=f", A, B, "0, 0", "l"(a), "l"(b));                            \
        }                                                                                          \
        static FP_DEVICE void nt_set(sums &c, const rows &a, u64 b)                                \
        {                                                                                          \
            FP_WGMMA(TYPE, N, "0", "=f", AR, BR, "0", FP_WGMMA_ROWS(a), "l"(b));                   \
        }                                                                                          \
    };
#define FP_WGMMA_64(D, TYPE)                                                                       \
    FP_WGMMA_STRUCT(D, TYPE, 64, "%32", "%33", "{%32, %33, %34, %35}", "%36")
#define FP_WGMMA_96(D, TYPE)                                                                       \
    FP_WGMMA_STRUCT(D, TYPE, 96, "%48", "%49", "{%48, %49, %50, %51}", "%52")
#define FP_WGMMA_128(D, TYPE)                                                                      \
    FP_WGMMA_STRUCT(D, TYPE, 128, "%64", "%65", "{%64, %65, %66, %67}", "%68")
#define FP_WGMMA_192(D, TYPE)                                                                      \
    FP_WGMMA_STRUCT(D, TYPE, 192, "%96", "%97", "{%96, %97, %98, %99}", "%100")
#define FP_WGMMA_256(D, TYPE)                                                                      \
    FP_WGMMA_STRUCT(D, TYPE, 256, "%128", "%129", "{%128, %129, %130, %131}", "%132")
FP_WGMMA_64(fp16, "f16")
FP_WGMMA_64(bf16, "bf16")
FP_WGMMA_96(fp16, "f16")
FP_WGMMA_96(bf16, "bf16")
FP_WGMMA_128(fp16, "f16")
FP_WGMMA_128(bf16, "bf16")
FP_WGMMA_192(fp16, "f16")
FP_WGMMA_192(bf16, "bf16")
FP_WGMMA_256(fp16, "f16")
FP_WGMMA_256(bf16, "bf16")

#undef FP_REGISTERS_64
#undef FP_REGISTERS_96
#undef FP_REGISTERS_128
#undef FP_REGISTERS_192
#undef FP_REGISTERS_256
#undef FP_SUMS_8
#undef FP_SUMS_32
#undef FP_SUMS_64
#undef FP_SUMS_96
#undef FP_SUMS_128
#undef FP_SUMS_192
#undef FP_SUMS_256
#undef FP_WGMMA
#undef FP_WGMMA_ROWS
#undef FP_WGMMA_STRUCT
#undef FP_WGMMA_64
#undef FP_WGMMA_96
#undef FP_WGMMA_128
#undef FP_WGMMA_192
#undef FP_WGMMA_256

} // namespace fp

#endif
