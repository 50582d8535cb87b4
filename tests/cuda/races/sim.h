#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>
struct dim {
    unsigned x;
};
extern dim threadIdx, blockIdx, blockDim, gridDim;
template <class T> struct alignas(2 * sizeof(T)) vector_2 {
    T x, y;
};
template <class T> struct alignas(4 * sizeof(T)) vector_4 {
    T x, y, z, w;
};
using int2 = vector_2<int>;
using int4 = vector_4<int>;
using uint2 = vector_2<unsigned>;
using uint4 = vector_4<unsigned>;
using float2 = vector_2<float>;
using float4 = vector_4<float>;
using std::max, std::min;
namespace sim
{
using u32 = unsigned;
using u64 = unsigned long long;
extern unsigned char *arena; /* shared memory: block b at b << 20 */
extern unsigned char *garena;
extern size_t gbytes; /* mutable global memory that is checked */
struct map {
    const unsigned char *base;
    long pitch;
    int rows, cols, elem, box_cols, box_rows, line;
};
/* core, sim.cpp */
void yield();
u64 collective(u64 x, int kind, u64 (&all)[32]);
void syncwarp();
void syncthreads();
void threadfence();
u32 atomic_inc(u32 *p, u32 last);
u32 atomic_add(u32 *p, u32 x);
u32 atomic_or(u32 *p, u32 x);
void mb_init(u32 at, u32 n);
void mb_arrive(u32 at);
void mb_arrive_cluster(u32 at);
void mb_arrive_copies(u32 at);
void mb_wait(u32 at, u32 parity);
void mb_expect(u32 at, u32 bytes);
void proxy_fence();
void cl_arrive_release();
void cl_arrive_relaxed();
void cl_wait();
void mapa_(u32 &to, u32 at, u32 rank);
void cp_async(u32 to, const void *from, int bytes, int valid);
void cp_commit();
void cp_wait(int n);
void bulk_s2s(u32 to, u32 from, int bytes, u32 mb);
void bulk_g2s(u32 to, const void *from, int bytes, u32 mb);
void tma(u32 to, const void *map, int col, int row, u32 mb, u32 mask, bool dealt);
void tma_store(const void *map, int col, int row, u32 from);
void bulk_commit();
void bulk_wait_read(int n);
void st_async(u32 to, float x, float y, u32 mb);
void grid_wait();
void bar(int id, int n);
u32 bar_or(int id, int n, u32 x);
void rd(const void *p, int n);
void wr(const void *p, int n); /* generic accesses */
void *ptr(u32 at);
void relaxed_begin();
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(int pending);
void wgmma_read(u32 at, int bytes);
void wgmma_log(int what, u64 x);
void log(int what, u64 a, u64 b = 0);
u32 block_base();
[[noreturn]] void fail(const char *fmt, ...);
/* launch */
struct launch {
    int blocks, threads, cluster;
    std::function<void(int)> body;
};
void run(std::vector<launch> launches, unsigned seed, std::function<std::string(u32)> name);
struct logged {
    int what;
    u64 a, b;
};
extern std::vector<std::vector<logged>> logs; /* by launch-global warp */
extern bool verbose;
extern long steps_run;
extern const char *track;
/* inline ops */
template <class T> inline void use1(const T &x)
{
    asm volatile("" ::"g"(x));
}
template <class... T> inline void use(const T &...x)
{
    (use1(x), ...);
}
inline void nop()
{
}
template <class... T> inline void zero(T &...x)
{
    ((x = T{}), ...);
}
template <class T, class U> inline void same(T &r, U a, U)
{
    r = a;
    asm volatile("" : "+r"(r));
}
inline void mapa(u32 &t, u32 at, u32 r)
{
    mapa_(t, at, r);
}
inline void cp_async16(u32 t, const void *f)
{
    cp_async(t, f, 16, 16);
}
inline void cp_async16s(u32 t, const void *f, int v)
{
    cp_async(t, f, 16, v);
}
inline void cp_async4s(u32 t, const void *f, int v)
{
    cp_async(t, f, 4, v);
}
inline void tma_load(u32 t, const void *m, int c, int r, u32 mb)
{
    tma(t, m, c, r, mb, 0, false);
}
inline void tma_hint(u32 t, const void *m, int c, int r, u32 mb, u64)
{
    tma(t, m, c, r, mb, 0, false);
}
inline void tma_dealt(u32 t, const void *m, int c, int r, int, u32 mb)
{
    tma(t, m, c, r, mb, 0, true);
}
inline void tma_multicast(u32 t, const void *m, int c, int r, u32 mb, u32 mask)
{
    tma(t, m, c, r, mb, mask, false);
}
inline void bar15(int n)
{
    bar(15, n);
}
inline void bar_sync(int id, int n)
{
    bar(id, n);
}
inline void bar_red(u32 &any, u32 bad, int n)
{
    any = bar_or(1, n, bad);
}
template <class T> inline void ld_any(T &x, u32 at)
{
    rd(ptr(at), sizeof(T));
    memcpy(&x, ptr(at), sizeof(T));
    if (sizeof(T) == 2)
        log(0x4d, (u64)x);
    else if constexpr (std::is_same_v<T, float>)
        log(0x53, (u64)(long long)x);
}
template <class T> inline void ld_v4(T &x, T &y, T &z, T &w, u32 at)
{
    rd(ptr(at), 16);
    T *p = (T *)ptr(at);
    x = p[0], y = p[1], z = p[2], w = p[3];
}
template <class T> inline void st_v4(u32 at, T x, T y, T z, T w)
{
    wr(ptr(at), 16);
    T *p = (T *)ptr(at);
    p[0] = x, p[1] = y, p[2] = z, p[3] = w;
}
template <class T> inline void st_v2(u32 at, T x, T y)
{
    wr(ptr(at), 8);
    T *p = (T *)ptr(at);
    p[0] = x, p[1] = y;
}
template <class T> inline void st_any(u32 at, T x)
{
    wr(ptr(at), sizeof(T));
    memcpy(ptr(at), &x, sizeof(T));
}
inline void pack64(u64 &m, u32 lo, u32 hi)
{
    m = (u64)hi << 32 | lo;
}
template <class R, class A, class B, class C> inline void mad_wide(R &r, A a, B b, C c)
{
    r = (R)((const unsigned char *)c + (long long)a * (long long)b);
}
inline void ldmatrix(u32 &a, u32 &b, u32 &c, u32 &d, u32 at)
{
    rd(ptr(at), 16);
    u32 *p = (u32 *)ptr(at);
    log('L', at, (u64)p[1] << 32 | p[0]);
    a = p[0], b = p[1], c = p[2], d = p[3];
}
inline void stmatrix(u32 at, u32 a, u32 b, u32 c, u32 d)
{
    wr(ptr(at), 16);
    u32 *p = (u32 *)ptr(at);
    p[0] = a, p[1] = b, p[2] = c, p[3] = d;
}
u64 ld_relaxed64(const u64 *p);
void st_relaxed(u64 *p, u64 x);
u32 ld_acquire32(const u32 *p);
inline void ld_relaxed(u64 &r, const u64 *p)
{
    r = ld_relaxed64(p);
}
inline void ld_relaxed_if(u64 &r, const u64 *p, u32 valid)
{
    if (valid)
        r = ld_relaxed64(p);
}
inline void ld_acquire(u32 &r, const u32 *p)
{
    r = ld_acquire32(p);
}
template <class T> inline T shfl(T x, int lane)
{
    u64 a[32], v = 0;
    memcpy(&v, &x, sizeof(T));
    collective(v, 1, a);
    memcpy(&x, &a[lane & 31], sizeof(T));
    return x;
}
template <class T> inline T shfl_xor(T x, int by)
{
    u64 a[32], v = 0;
    memcpy(&v, &x, sizeof(T));
    collective(v, 2, a);
    memcpy(&x, &a[(threadIdx.x % 32) ^ by], sizeof(T));
    return x;
}
inline u32 ballot(bool x)
{
    u64 a[32];
    collective(x, 3, a);
    u32 r = 0;
    for (int i = 0; i < 32; i++)
        r |= (u32)(a[i] != 0) << i;
    return r;
}
inline u32 reduce_or(u32 x)
{
    u64 a[32];
    collective(x, 4, a);
    u32 r = 0;
    for (int i = 0; i < 32; i++)
        r |= (u32)a[i];
    return r;
}
inline u32 cvta(const void *p)
{
    return (u32)((const unsigned char *)p - arena);
}
} // namespace sim
#define make_uint2(...)      (uint2{__VA_ARGS__})
#define make_uint4(...)      (uint4{__VA_ARGS__})
#define make_float2(...)     (float2{__VA_ARGS__})
#define make_float4(...)     (float4{__VA_ARGS__})
#define rsqrtf(x)            (1 / sqrtf(x))
#define atomicInc(p, last)   ::sim::atomic_inc(p, last)
#define atomicAdd(p, x)      ::sim::atomic_add(p, x)
#define atomicOr(p, x)       ::sim::atomic_or(p, x)
#define __fdividef(x, y)     ((x) / (y))
#define __uint_as_float(x)   __builtin_bit_cast(float, static_cast<unsigned>(x))
#define __float_as_uint(x)   __builtin_bit_cast(unsigned, static_cast<float>(x))
#define __int_as_float(x)    __builtin_bit_cast(float, static_cast<int>(x))
#define __float_as_int(x)    __builtin_bit_cast(int, static_cast<float>(x))
#define __byte_perm(x, y, s) (x)
#define __ldg(p)             (*(p))
#define __ldcg(p)            (*(p))
#define __log2f(x)           log2f(x)
#define __funnelshift_r(lo, hi, s)                                                                 \
    static_cast<unsigned>((((unsigned long long)(hi) << 32 | (unsigned)(lo)) >> ((s)&31)))
#define __shfl_sync(m, x, l)        ::sim::shfl(x, l)
#define __shfl_xor_sync(m, x, b)    ::sim::shfl_xor(x, b)
#define __ballot_sync(m, x)         ::sim::ballot(x)
#define __any_sync(m, x)            (::sim::ballot(x) != 0)
#define __all_sync(m, x)            (::sim::ballot(x) == ~0u)
#define __reduce_or_sync(m, x)      ::sim::reduce_or(x)
#define __nanosleep(n)              ::sim::yield()
#define __syncwarp()                ::sim::syncwarp()
#define __syncthreads()             ::sim::syncthreads()
#define __threadfence()             ::sim::threadfence()
#define __cvta_generic_to_shared(p) ::sim::cvta(p)
#define __CUDACC__
#define __CUDA_ARCH__ 900
#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __shared__      static
