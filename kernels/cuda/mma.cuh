/* Products of small tiles held in shared memory, one warp each.
 *
 * A fragment is 16 rows by N columns spread over the lanes of a warp as float c[N/(2L)][L/2][2],
 * with L = D::lanes: element (p, r, e) of a lane is row lane/L + r*32/L, column 2L*p + 2*(lane%L) +
 * e. With L = 4 this is the accumulator of mma.m16n8; with L = 8 it suits FFMA: 4 rows and column
 * pairs.
 *
 *   nn   c (MI*16, N) += a (MI*16, K) b (K, N)       b as (k, n) rows: weights
 *   nt   c (16, N)    += a (16, K) b^T               b as (n, k) rows: q k^T
 *   pn   c (16, N)    += p (16, 64) b (64, N)        p a fragment in registers:
 *   probs v */
#ifndef FUSEPLAN_CUDA_MMA_CUH
#define FUSEPLAN_CUDA_MMA_CUH

#include "common.cuh"

namespace fp
{

template <class D> constexpr int ROWS = D::lanes / 2;
template <class D, int N> constexpr int PAIRS = N / (2 * D::lanes);

template <class D> FP_DEVICE int fragment_row(int r)
{
    return static_cast<int>(threadIdx.x % 32) / D::lanes + r * (32 / D::lanes);
}

template <class D> FP_DEVICE int fragment_col(int p)
{
    return 2 * D::lanes * p + 2 * static_cast<int>(threadIdx.x % D::lanes);
}

template <class D, int N> using fragment = float[PAIRS<D, N>][ROWS<D>][2];

/* Scratch in which fp32 turns a fragment of probabilities into rows: floats of a row, of a warp. */
constexpr int FFMA_LD = BLOCK + 4, FFMA_SCRATCH = WARP_ROWS * FFMA_LD;

FP_DEVICE void load_matrix(u32 (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

FP_DEVICE void load_matrix_transposed(u32 (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

/* fp16, bf16, tf32: tensor cores; one step takes 32 bytes of k. */
template <class D> struct warp_tile {
    using T = elem<D>;
    static constexpr int STEP = 32 / sizeof(T);

    static FP_DEVICE void round(u32 (&r)[4])
    {
        if constexpr (!is_half<D>) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                r[i] = D::round(__uint_as_float(r[i]));
        }
    }

    static FP_DEVICE void load_a(u32 (&r)[4], const T *a, int lda)
    {
        int lane = threadIdx.x % 32;
        load_matrix(r, a + (lane % 16) * lda + lane / 16 * VEC<D>);
        round(r);
    }

    /* Two neighbouring 8-column tiles of a (k, n) tile: r[0], r[1] and r[2], r[3]. */
    static FP_DEVICE void load_b(u32 (&r)[4], const T *b, int ldb)
    {
        int lane = threadIdx.x % 32;
        if constexpr (is_half<D>) {
            load_matrix_transposed(r, b + (lane % 16) * ldb + lane / 16 * 8);
        } else {
            const T *q = b + (lane % 4) * ldb + lane / 4;
            r[0] = D::round(q[0]);
            r[1] = D::round(q[4 * ldb]);
            r[2] = D::round(q[8]);
            r[3] = D::round(q[4 * ldb + 8]);
        }
    }

    template <int MI, int N, int K>
    static FP_DEVICE void nn(fragment<D, N> (&c)[MI], const T *a, int lda, const T *b, int ldb)
    {
#pragma unroll
        for (int k = 0; k < K; k += STEP) {
            u32 bf[N / 16][4];
#pragma unroll
            for (int n = 0; n < N / 16; n++)
                load_b(bf[n], b + k * ldb + 16 * n, ldb);
#pragma unroll
            for (int m = 0; m < MI; m++) {
                u32 af[4];
                load_a(af, a + 16 * m * lda + k, lda);
#pragma unroll
                for (int n = 0; n < N / 16; n++) {
                    D::mma(c[m][2 * n], af, bf[n][0], bf[n][1]);
                    D::mma(c[m][2 * n + 1], af, bf[n][2], bf[n][3]);
                }
            }
        }
    }

    template <int N, int K>
    static FP_DEVICE void nt(fragment<D, N> &c, const T *a, int lda, const T *b, int ldb)
    {
        int lane = threadIdx.x % 32;
        const T *row = b + (lane % 8 + lane / 16 * 8) * ldb + lane / 8 % 2 * VEC<D>;
#pragma unroll
        for (int k = 0; k < K; k += STEP) {
            u32 af[4];
            load_a(af, a + k, lda);
#pragma unroll
            for (int n = 0; n < N / 16; n++) {
                u32 bf[4];
                load_matrix(bf, row + 16 * n * ldb + k);
                round(bf);
                D::mma(c[2 * n], af, bf[0], bf[1]);
                D::mma(c[2 * n + 1], af, bf[2], bf[3]);
            }
        }
    }

    /* For fp16 and bf16 an accumulator has the layout of operand A.  For tf32 it has keys 2t and
     * 2t+1 in the place of columns t and t+4, so that b's rows are read in this order too. */
    template <int N>
    static FP_DEVICE void pn(fragment<D, N> &c, const fragment<D, BLOCK> &p, const T *b, int ldb,
                             float *)
    {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < BLOCK; k += STEP) {
            u32 af[4];
            if constexpr (is_half<D>) {
                af[0] = D::pack(p[k / 8][0][0], p[k / 8][0][1]);
                af[1] = D::pack(p[k / 8][1][0], p[k / 8][1][1]);
                af[2] = D::pack(p[k / 8 + 1][0][0], p[k / 8 + 1][0][1]);
                af[3] = D::pack(p[k / 8 + 1][1][0], p[k / 8 + 1][1][1]);
            } else {
                af[0] = D::round(p[k / 8][0][0]);
                af[1] = D::round(p[k / 8][1][0]);
                af[2] = D::round(p[k / 8][0][1]);
                af[3] = D::round(p[k / 8][1][1]);
            }
#pragma unroll
            for (int n = 0; n < N / 16; n++) {
                u32 bf[4];
                if constexpr (is_half<D>) {
                    load_b(bf, b + k * ldb + 16 * n, ldb);
                } else {
                    const T *q = b + (k + 2 * (lane % 4)) * ldb + 16 * n + lane / 4;
                    bf[0] = D::round(q[0]);
                    bf[1] = D::round(q[ldb]);
                    bf[2] = D::round(q[8]);
                    bf[3] = D::round(q[ldb + 8]);
                }
                D::mma(c[2 * n], af, bf[0], bf[1]);
                D::mma(c[2 * n + 1], af, bf[2], bf[3]);
            }
        }
    }
};

/* fp32: FFMA. */
template <> struct warp_tile<fp32> {
    template <int MI, int N, int K>
    static FP_DEVICE void nn(fragment<fp32, N> (&c)[MI], const float *a, int lda, const float *b,
                             int ldb)
    {
#pragma unroll 2
        for (int k = 0; k < K; k += 4) {
            float4 af[MI][4];
#pragma unroll
            for (int m = 0; m < MI; m++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    af[m][r] = *reinterpret_cast<const float4 *>(
                        a + (16 * m + fragment_row<fp32>(r)) * lda + k);
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int p = 0; p < PAIRS<fp32, N>; p++) {
                    float2 bf = *reinterpret_cast<const float2 *>(b + (k + i) * ldb +
                                                                  fragment_col<fp32>(p));
#pragma unroll
                    for (int m = 0; m < MI; m++)
#pragma unroll
                        for (int r = 0; r < 4; r++) {
                            float x = i == 0   ? af[m][r].x
                                      : i == 1 ? af[m][r].y
                                      : i == 2 ? af[m][r].z
                                               : af[m][r].w;
                            c[m][p][r][0] = fmaf(x, bf.x, c[m][p][r][0]);
                            c[m][p][r][1] = fmaf(x, bf.y, c[m][p][r][1]);
                        }
                }
            }
        }
    }

    template <int N, int K>
    static FP_DEVICE void nt(fragment<fp32, N> &c, const float *a, int lda, const float *b, int ldb)
    {
#pragma unroll 2
        for (int k = 0; k < K; k += 4) {
            float4 af[4];
#pragma unroll
            for (int r = 0; r < 4; r++)
                af[r] = *reinterpret_cast<const float4 *>(a + fragment_row<fp32>(r) * lda + k);
#pragma unroll
            for (int p = 0; p < PAIRS<fp32, N>; p++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float4 bf = *reinterpret_cast<const float4 *>(
                        b + (fragment_col<fp32>(p) + e) * ldb + k);
#pragma unroll
                    for (int r = 0; r < 4; r++) {
                        float x = c[p][r][e];
                        x = fmaf(af[r].x, bf.x, x);
                        x = fmaf(af[r].y, bf.y, x);
                        x = fmaf(af[r].z, bf.z, x);
                        c[p][r][e] = fmaf(af[r].w, bf.w, x);
                    }
                }
        }
    }

    /* scratch: FFMA_SCRATCH floats of this warp's own. */
    template <int N>
    static FP_DEVICE void pn(fragment<fp32, N> &c, const fragment<fp32, BLOCK> &p, const float *b,
                             int ldb, float *scratch)
    {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < PAIRS<fp32, BLOCK>; i++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                *reinterpret_cast<float2 *>(scratch + fragment_row<fp32>(r) * FFMA_LD +
                                            fragment_col<fp32>(i)) =
                    make_float2(p[i][r][0], p[i][r][1]);
        __syncwarp();
        nn<1, N, BLOCK>(reinterpret_cast<fragment<fp32, N>(&)[1]>(c), scratch, FFMA_LD, b, ldb);
    }
};

} // namespace fp

#endif
