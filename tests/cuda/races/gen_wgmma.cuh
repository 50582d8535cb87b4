#ifndef FUSEPLAN_CUDA_WGMMA_CUH
#define FUSEPLAN_CUDA_WGMMA_CUH
#include "mma.cuh"
namespace fp
{
FP_DEVICE void wgmma_fence()
{
    ::sim::wgmma_fence();
}
FP_DEVICE void wgmma_commit()
{
    ::sim::wgmma_commit();
}
template <int pending> FP_DEVICE void wgmma_wait()
{
    ::sim::wgmma_wait(pending);
}
template <class F> FP_DEVICE void pin(F &)
{
}
template <int LINE = 128> FP_DEVICE u64 wgmma_matrix(u32 address, int leading, int stride)
{
    return (static_cast<u64>(address & 0x3ffff) >> 4) | static_cast<u64>(leading >> 4) << 16 |
           static_cast<u64>(stride >> 4) << 32 | (LINE == 128 ? 1ull : 2ull) << 62;
}
inline u32 at_of(u64 m)
{
    return ::sim::block_base() + (u32)(m & 0x3fff) * 16;
}
/* rows x 32 bytes, by rows of k; logs the tag of the first row */
inline void read_rows(u64 m, int rows, int what)
{
    const u32 at = at_of(m), base = at & ~127u, co = at % 128 / 16;
    const u32 line = (m >> 62) == 1 ? 128 : 64;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 2; c++)
            ::sim::wgmma_read(base + r * line + (((co + c) ^ (r % 8)) & 7) * 16, 16);
    ::sim::wgmma_log(what, (u64)base << 32 | co);
}
/* 16 rows of k x n columns, panels `leading` bytes apart */
inline void read_columns(u64 m, int n, int what)
{
    const u32 at = at_of(m), line = (m >> 62) == 1 ? 128 : 64,
              leading = (u32)(m >> 16 & 0x3fff) * 16;
    const int per = line / 2;
    for (int p = 0; p * per < n; p++)
        for (int r = 0; r < 16; r++)
            ::sim::wgmma_read(at + p * leading + r * line, min((int)line, (n - p * per) * 2));
    ::sim::wgmma_log(what, (u64)at << 32);
}
struct e4m3 {
    template <class D> static u32 pack_in_order(u32 x, u32, u32)
    {
        return x;
    }
    template <class D> static u32 pack(u32 x, u32, u32)
    {
        return x;
    }
};
template <class D> struct half_of {
    using type = D;
};
template <> struct half_of<e4m3> {
    using type = fp16;
};
template <class D> using either_half = typename half_of<D>::type;
template <class D, int N> struct wgmma {
    using sums = fragment<either_half<D>, N>;
    using rows = u32[4];
    static void nn(sums &, u64 a, u64 b)
    {
        read_rows(a, 64, 'A');
        read_columns(b, N, 'b');
    }
    static void nt(sums &c, u64 a, u64 b)
    {
        read_rows(a, 64, 'A');
        read_rows(b, N, 'B');
    }
    static void nt_set(sums &c, u64 a, u64 b)
    {
        set(c);
        read_rows(a, 64, 'Q');
        read_rows(b, N, 'K');
    }
    static void tt(sums &, u64 a, u64 b)
    {
        read_columns(a, 64, 'a');
        read_rows(b, N, 'B');
    }
    static void nn(sums &, const rows &, u64 b)
    {
        read_columns(b, N, 'V');
    }
    static void nt(sums &, const rows &, u64 b)
    {
        read_rows(b, N, 'B');
    }
    static void nt_set(sums &c, const rows &, u64 b)
    {
        set(c);
        read_rows(b, N, 'K');
    }
    static void nt_from(sums &, u64 a, u64 b, int)
    {
        read_rows(a, 64, 'A');
        read_rows(b, N, 'B');
    }
    static void set(sums &c)
    {
        float x = (float)(rand() % 100);
        for (auto &i : c)
            for (auto &j : i)
                j[0] = j[1] = x;
    }
};
} // namespace fp
#endif
