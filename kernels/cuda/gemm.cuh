/* out (tokens, N) = in (tokens, K) @ weight (K, N), tile by tile, with an epilogue.
 *
 * cp.async fills STAGES buffers of (BM, BK) and (BK, BN) ahead of the products; WM x WN warps share
 * a tile.  The accumulators pass through shared memory so that the epilogue sees 16 bytes of a row.
 * Any number of tokens; N and K multiples of 8.  With SPLIT > 1 several thread blocks share a
 * tile's K; the last to arrive adds the partial sums in order and runs the epilogue. */
#ifndef FUSEPLAN_CUDA_GEMM_CUH
#define FUSEPLAN_CUDA_GEMM_CUH

#include "gemm.h"
#include "mma.cuh"
#include "tokens.cuh"

namespace fp
{

struct gemm_size {
    int n, k;
};

/* How many row tiles take the same columns of the weight one after another, while these are
 * in L2. */
constexpr int RASTER = 8;

/* What a warp holds of a tile. */
template <class S> using gemm_sums = fragment<typename S::D, S::WARP_N>[S::MI];

template <class S, class View>
FP_DEVICE void gemm_tile(const fp_args &a, const gemm_size &g, const View &in,
                         const elem<typename S::D> *weight, int m0, int n0, int k_begin, int k_end,
                         typename S::buffers &pipe, gemm_sums<S> &c);

template <class D_, int BM_, int BN_, int STAGES_, int WM_, int WN_, int SPLIT_> struct gemm_shape {
    using D = D_;
    static constexpr int BM = BM_, BN = BN_, BK = FP_GEMM_STEP_BYTES / sizeof(elem<D>),
                         STAGES = STAGES_;
    static constexpr int WM = WM_, WN = WN_, THREADS = 32 * WM * WN, SPLIT = SPLIT_;
    static constexpr int WARP_M = BM / WM, WARP_N = BN / WN, MI = WARP_M / 16;
    static constexpr int LDA = BK + VEC<D>, LDB = BN + D::b_pad, LDS = WARP_N + 8;
    static constexpr int A_ROW = BK / VEC<D>, B_ROW = BN / VEC<D>; /* 16-byte chunks of a row */
    static constexpr int A_CHUNKS = BM * A_ROW / THREADS, B_CHUNKS = BK * B_ROW / THREADS;

    static_assert(BM % (16 * WM) == 0 && BN % (16 * WN) == 0, "warp tiles are 16m x 16n");
    static_assert(BM * A_ROW % THREADS == 0 && BK * B_ROW % THREADS == 0, "even share of a tile");
    static_assert(THREADS % A_ROW == 0, "a thread keeps its columns of the input");
    static_assert(STAGES >= 2, "one buffer is filled while another is used");

    struct buffers {
        alignas(16) elem<D> a[STAGES][BM * LDA];
        alignas(16) elem<D> b[STAGES][BK * LDB];
    };
    union smem {
        buffers pipe;
        alignas(16) float slab[WM * WN][16 * LDS]; /* 16 rows of a warp's tile on their way out */
    };
    static constexpr int ALIGN = 16;
    static_assert(sizeof(smem) ==
                      fp_gemm_tile_shared({BM, BN, WM, WN, STAGES}, sizeof(elem<D>), D::lanes == 4),
                  "what the host gives");

    template <class View>
    static FP_DEVICE void tile(const fp_args &a, const gemm_size &g, const View &in,
                               const elem<D> *weight, int m0, int n0, int k_begin, int k_end,
                               buffers &pipe, gemm_sums<gemm_shape> &c)
    {
        gemm_tile<gemm_shape>(a, g, in, weight, m0, n0, k_begin, k_end, pipe, c);
    }
};

/* after_tile() is called with the index of a row strip once one of its tiles is stored. */
struct nothing {
    template <class S> FP_DEVICE void after_tile(const fp_args &, int, u32 *, int) const
    {
    }
};

/* The thread block that stores a strip's last tile normalises the strip's rows. */
template <class D, class View, bool RMS = false> struct norm_strip {
    norm_weights<D, RMS> norm;
    View in;

    template <class S>
    FP_DEVICE void after_tile(const fp_args &a, int strip, u32 *counter, int tiles_n) const
    {
        if (!last_to_arrive(counter, tiles_n))
            return;
        int end = min((strip + 1) * S::BM, a.tokens);
        for (int m = strip * S::BM + threadIdx.x / 32; m < end; m += S::THREADS / 32)
            norm_row(norm, m, in, keep());
    }
};

template <class S, class View>
FP_DEVICE void gemm_tile(const fp_args &a, const gemm_size &g, const View &in,
                         const elem<typename S::D> *weight, int m0, int n0, int k_begin, int k_end,
                         typename S::buffers &pipe, gemm_sums<S> &c)
{
    using D = typename S::D;
    const int tid = threadIdx.x, warp = tid / 32;
    const int ac = tid % S::A_ROW * VEC<D>, ar = tid / S::A_ROW;

    /* What this thread copies in each step: rows, offsets, bits of rows inside the matrix. */
    const elem<D> *rows[S::A_CHUNKS];
    int offset[S::B_CHUNKS];
    u32 a_live = 0, b_live = 0;
#pragma unroll
    for (int i = 0; i < S::A_CHUNKS; i++) {
        int m = m0 + ar + i * (S::THREADS / S::A_ROW);
        a_live |= static_cast<u32>(m < a.tokens) << i;
        rows[i] = in.row(min(m, a.tokens - 1));
    }
#pragma unroll
    for (int i = 0; i < S::B_CHUNKS; i++) {
        int r = (tid + i * S::THREADS) / S::B_ROW, n = (tid + i * S::THREADS) % S::B_ROW * VEC<D>;
        b_live |= static_cast<u32>(n0 + n < g.n) << i;
        offset[i] = r * g.n + n;
    }
    const elem<D> *panel = weight + static_cast<i64>(k_begin) * g.n + n0;

    /* Steps are filled in order. */
    auto fill = [&](int slot, int k0) {
        const bool whole = k0 + S::BK <= k_end;
        const bool a_inside = k0 + ac < k_end;
        const i64 at = a_inside ? in.col(k0 + ac) : 0;
#pragma unroll
        for (int i = 0; i < S::A_CHUNKS; i++)
            copy_async(&pipe.a[slot][(ar + i * (S::THREADS / S::A_ROW)) * S::LDA + ac],
                       rows[i] + at, a_inside && (a_live >> i & 1));
#pragma unroll
        for (int i = 0; i < S::B_CHUNKS; i++) {
            int r = (tid + i * S::THREADS) / S::B_ROW,
                n = (tid + i * S::THREADS) % S::B_ROW * VEC<D>;
            bool valid = (b_live >> i & 1) && (whole || k0 + r < k_end);
            copy_async(&pipe.b[slot][r * S::LDB + n], valid ? panel + offset[i] : weight, valid);
        }
        panel += S::BK * g.n;
    };

#pragma unroll
    for (int s = 0; s < S::STAGES - 1; s++) {
        if (k_begin + s * S::BK < k_end)
            fill(s, k_begin + s * S::BK);
        copy_commit();
    }
    int slot = 0;
    for (int k = k_begin; k < k_end; k += S::BK) {
        copy_wait<S::STAGES - 2>();
        __syncthreads();
        const elem<D> *at_a = &pipe.a[slot][warp / S::WN * S::WARP_M * S::LDA];
        const elem<D> *at_b = &pipe.b[slot][warp % S::WN * S::WARP_N];
        /* The first products run while the addresses of the copies are computed. */
        constexpr int FIRST = 32 / sizeof(elem<D>);
        warp_tile<D>::template nn<S::MI, S::WARP_N, FIRST>(c, at_a, S::LDA, at_b, S::LDB);
        int ahead = k + (S::STAGES - 1) * S::BK;
        if (ahead < k_end)
            fill(slot == 0 ? S::STAGES - 1 : slot - 1, ahead);
        copy_commit();
        warp_tile<D>::template nn<S::MI, S::WARP_N, S::BK - FIRST>(c, at_a + FIRST, S::LDA,
                                                                   at_b + FIRST * S::LDB, S::LDB);
        slot = slot + 1 == S::STAGES ? 0 : slot + 1;
    }
    copy_wait<0>();
    __syncthreads();
}

/* Adds up the partial sums of a tile; true in the thread block that gets the total. */
template <class S> FP_DEVICE bool gemm_join(const fp_args &a, int tile, int part, gemm_sums<S> &c)
{
    constexpr int QUADS = S::BM * S::BN / S::THREADS / 4;
    float(&flat)[QUADS * 4] = reinterpret_cast<float(&)[QUADS * 4]>(c);
    float4 *mine = reinterpret_cast<float4 *>(a.workspace) +
                   static_cast<i64>(tile) * S::SPLIT * QUADS * S::THREADS + threadIdx.x;
#pragma unroll
    for (int i = 0; i < QUADS; i++)
        __stcg(mine + (part * QUADS + i) * S::THREADS,
               make_float4(flat[4 * i], flat[4 * i + 1], flat[4 * i + 2], flat[4 * i + 3]));
    if (!last_to_arrive(a.sync + FP_SYNC_TILES + tile, S::SPLIT))
        return false;
#pragma unroll
    for (int i = 0; i < QUADS * 4; i++)
        flat[i] = 0.0f;
#pragma unroll 1
    for (int s = 0; s < S::SPLIT; s++)
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            float4 x = __ldcg(mine + (s * QUADS + i) * S::THREADS);
            flat[4 * i] += x.x, flat[4 * i + 1] += x.y;
            flat[4 * i + 2] += x.z, flat[4 * i + 3] += x.w;
        }
    return true;
}

template <class S, class Epilogue>
FP_DEVICE void gemm_store(const fp_args &a, const gemm_size &g, int m0, int n0,
                          const gemm_sums<S> &c, float *slab, const Epilogue &out)
{
    using D = typename S::D;
    constexpr int CHUNKS = S::WARP_N / VEC<D>; /* of a row */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int base_m = m0 + warp / S::WN * S::WARP_M, base_n = n0 + warp % S::WN * S::WARP_N;

#pragma unroll
    for (int i = 0; i < S::MI; i++) {
#pragma unroll
        for (int p = 0; p < PAIRS<D, S::WARP_N>; p++)
#pragma unroll
            for (int r = 0; r < ROWS<D>; r++)
                *reinterpret_cast<float2 *>(slab + fragment_row<D>(r) * S::LDS +
                                            fragment_col<D>(p)) =
                    make_float2(c[i][p][r][0], c[i][p][r][1]);
        __syncwarp();
#pragma unroll
        for (int at = lane; at < 16 * CHUNKS; at += 32) {
            int row = at / CHUNKS, n = at % CHUNKS * VEC<D>, m = base_m + 16 * i + row;
            if (m < a.tokens && base_n + n < g.n) {
                float v[VEC<D>];
#pragma unroll
                for (int e = 0; e < VEC<D>; e++)
                    v[e] = slab[row * S::LDS + n + e];
                out.at(m, base_n + n, v);
            }
        }
        __syncwarp();
    }
}

template <class S, class View, class Epilogue, class After>
FP_DEVICE void gemm(const fp_args &a, const gemm_size &g, const View &in,
                    const elem<typename S::D> *weight, const Epilogue &out, const After &after,
                    void *shared)
{
    const u32 gap = (S::ALIGN - shared_address(shared) % S::ALIGN) % S::ALIGN;
    typename S::smem &smem =
        *reinterpret_cast<typename S::smem *>(static_cast<unsigned char *>(shared) + gap);
    const int tiles_m = (live_tokens(a) + S::BM - 1) / S::BM, tiles_n = (g.n + S::BN - 1) / S::BN;
    const int tiles = tiles_m * tiles_n;
    /* Each part of a split takes whole steps of BK. */
    const int part_k = ((g.k + S::BK - 1) / S::BK + S::SPLIT - 1) / S::SPLIT * S::BK;

    for (int t = blockIdx.x; t < tiles * S::SPLIT; t += gridDim.x) {
        int tile = t / S::SPLIT, part = t % S::SPLIT;
        int group = tile / (RASTER * tiles_n), first = group * RASTER;
        int height = min(RASTER, tiles_m - first), within = tile - first * tiles_n;
        int strip = first + within % height, m0 = strip * S::BM, n0 = within / height * S::BN;

        gemm_sums<S> c;
#pragma unroll
        for (int i = 0; i < S::MI; i++)
#pragma unroll
            for (int p = 0; p < PAIRS<typename S::D, S::WARP_N>; p++)
#pragma unroll
                for (int r = 0; r < ROWS<typename S::D>; r++)
                    c[i][p][r][0] = c[i][p][r][1] = 0.0f;
        S::tile(a, g, in, weight, m0, n0, part * part_k, min((part + 1) * part_k, g.k), smem.pipe,
                c);
        if (S::SPLIT == 1 || gemm_join<S>(a, tile, part, c)) {
            gemm_store<S>(a, g, m0, n0, c, smem.slab[threadIdx.x / 32], out);
            after.template after_tile<S>(a, strip, a.sync + FP_SYNC_TILES + tiles + strip, tiles_n);
        }
        __syncthreads();
    }
}

} // namespace fp

#endif
