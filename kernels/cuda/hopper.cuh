/* Instructions of Hopper (sm_90a) that GEMMs and attention share: mbarriers, copies of the tensor
 * memory accelerator (TMA), clusters, and what their thread blocks exchange.  wgmma.cuh has the
 * products.
 *
 * wgmma and TMA reach shared memory through the async proxy, which needs proxy_fence() after writes
 * of ordinary instructions and of cp.async, and before TMA writes where such instructions have
 * read. */
#ifndef FUSEPLAN_CUDA_HOPPER_CUH
#define FUSEPLAN_CUDA_HOPPER_CUH

#include "mma.cuh"

namespace fp
{

template <bool which, class A, class B> struct either_of {
    using type = A;
};
template <class A, class B> struct either_of<false, A, B> {
    using type = B;
};
template <bool which, class A, class B> using either = typename either_of<which, A, B>::type;

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

/* What this thread has read, written or waited for in shared memory comes before what wgmma and TMA
 * do there after the next mbarrier. */
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

/* The same without the fence of all memory that a release is: the others need to see nothing that
 * was written before, or another way makes it visible (mbarrier_fence_init(), an mbarrier). */
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

/* Copies bytes of this thread block's shared memory to an address of another one's, and counts them
 * on its mbarrier; both are those of cluster_address(). */
FP_DEVICE void shared_copy(u32 to, u32 from, int bytes, u32 mbarrier)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "r"(from), "r"(bytes), "r"(mbarrier)
                 : "memory");
}

/* Arrives at an mbarrier by its cluster_address(), after this thread's products have read what the
 * mbarrier guards.  It orders no stores of this thread for other thread blocks: a release for the
 * cluster becomes a fence of all memory, which costs as much as a step of the inner dimension. */
FP_DEVICE void mbarrier_arrive_cluster(u32 at)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(at) : "memory");
}

/* ---- words in memory, by which thread blocks exchange numbers ------------------------------- */

FP_DEVICE u64 load_relaxed(const u64 *p)
{
    u64 r;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(r) : "l"(p) : "memory");
    return r;
}

/* The same where `valid`, else `otherwise`.  There is no branch, after which the compiler would
 * wait for each of several loads before it asks for the next one. */
FP_DEVICE u64 load_relaxed_if(bool valid, const u64 *p, u64 otherwise)
{
    u64 r = otherwise;
    asm volatile("{ .reg .pred valid;\n"
                 "setp.ne.u32 valid, %2, 0;\n"
                 "@valid ld.relaxed.gpu.global.u64 %0, [%1]; }"
                 : "+l"(r)
                 : "l"(p), "r"(static_cast<u32>(valid))
                 : "memory");
    return r;
}

FP_DEVICE void store_relaxed(u64 *p, u64 x)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
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

FP_DEVICE void load_matrix_transposed(u32 (&r)[4], u32 from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
}

FP_DEVICE void store_matrix_transposed(u32 to, const u32 (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
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

/* 4 bytes; zeros if not valid. */
FP_DEVICE void copy_4(u32 to, const void *from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from),
                 "r"(valid ? 4 : 0)
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

/* Of a tensor map of four dimensions, the first of a box of all of the last two. */
FP_DEVICE void box_load_dealt(u32 to, const fp_map *map, int column, int row, u32 mbarrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %4}], [%5];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(0), "r"(mbarrier)
                 : "memory");
}

/* The same for what nothing reads again: L2 drops it before other lines.  The policy is the one
 * that createpolicy makes for evict_first.  Source: TMA::CacheHintSm90 of CUTLASS. */
FP_DEVICE void box_load_dropped(u32 to, const fp_map *map, int column, int row, u32 mbarrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(mbarrier), "l"(0x12f0000000000000ull)
                 : "memory");
}

/* box_load(), to this place of every thread block of the cluster whose bit is set, and counted on
 * the mbarrier of each. */
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

/* Ends a group of this thread's stores. */
FP_DEVICE void box_stores_end()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until this thread's groups of stores have read shared memory, all but the last PENDING. */
template <int PENDING> FP_DEVICE void box_stores_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* Copies bytes to shared memory, and counts them on an mbarrier; addresses and bytes are multiples
 * of 16. */
FP_DEVICE void bulk_load(u32 to, const void *from, int bytes, u32 mbarrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(mbarrier)
                 : "memory");
}

/* Bytes from an address on; both are multiples of 16. */
FP_DEVICE void fetch_into_l2(const void *from, int bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
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

} // namespace fp

#endif
