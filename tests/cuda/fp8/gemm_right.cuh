/* Whether results of GEMMs are right: some of their rows, against sums in double. */
#pragma once

#include "gemm_ours.cuh"

#include <functional>
#include <string>

enum { SAMPLES = 32 }; /* rows */

struct contender {
    std::string name;
    bool e4m3, ours;
    ending as;
    std::function<void(cudaStream_t)> launch;
    double error, along;
    std::vector<float> us;
    cudaGraphExec_t exec;
};

inline float value(__nv_fp8_e4m3 x)
{
    return e4m3_value(x.__x);
}

inline float value(__half x)
{
    return __half2float(x);
}

inline int sampled_row(const problem &p, int i)
{
    return (int)((long)p.rows * i / SAMPLES) + i % 16;
}

/* by_rows: the weight is (columns, inner), else (inner, columns). */
template <typename T>
std::vector<double> right(const problem &p, const T *in, const T *weight, bool by_rows)
{
    const std::vector<T> elements = downloaded(weight, (size_t)p.inner * p.columns);
    std::vector<double> of_k(p.columns), out((size_t)SAMPLES * p.columns);
    std::vector<std::vector<T>> rows;
    for (int i = 0; i < SAMPLES; i++)
        rows.push_back(downloaded(in + (size_t)sampled_row(p, i) * p.inner, p.inner));
    for (int k = 0; k < p.inner; k++) {
        for (int n = 0; n < p.columns; n++)
            of_k[n] =
                value(elements[by_rows ? (size_t)n * p.inner + k : (size_t)k * p.columns + n]);
        for (int i = 0; i < SAMPLES; i++) {
            const double x = value(rows[i][k]) * (double)(by_rows ? ALPHA : 1);
            for (int n = 0; n < p.columns; n++)
                out[(size_t)i * p.columns + n] += x * of_k[n];
        }
    }
    return out;
}

/* The sums of both types, of the sampled rows. */
struct exact {
    std::vector<double> e4m3, half;

    explicit exact(const problem &p)
        : e4m3(right(p, p.codes, p.weight_codes, true)), half(right(p, p.in, p.weight, false))
    {
    }
};

inline bool failed; /* a result was wrong */

inline double gelu(double x)
{
    return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

/* A row of the result, as numbers.  Ours of e4m3 has the order of hopper_gemm_store.cuh. */
inline std::vector<double> row_of(const contender &c, const problem &p, int row)
{
    const size_t at = (size_t)row * p.columns;
    std::vector<double> out;
    if (c.as != GELU_E4M3) {
        for (__half x : downloaded((const __half *)p.out + at, p.columns))
            out.push_back(value(x));
        return out;
    }
    const auto codes = downloaded((const __nv_fp8_e4m3 *)p.out + at, p.columns);
    for (int n = 0; n < p.columns; n++)
        out.push_back(value(codes[c.ours ? n / 16 * 16 + n % 8 * 2 + n % 16 / 8 : n]) / FACTOR);
    return out;
}

/* How far a result is from what it should be; of e4m3, from the cell of what would become it. */
inline double distance(ending as, double got, double want)
{
    if (as != GELU_E4M3)
        return got - want;
    const double size = std::max(fabs(got) * FACTOR, 1.0 / 64),
                 half_step = ldexp(1.0, ilogb(size) - 4) / FACTOR;
    return std::copysign(std::max(fabs(got - want) - half_step, 0.0), got - want);
}

inline void normalise(std::vector<double> &row, const problem &p)
{
    const std::vector<__half> gamma = downloaded(p.gamma, p.columns),
                              beta = downloaded(p.beta, p.columns);
    const double count = (double)row.size();
    double mean = 0, squares = 0;
    for (double x : row)
        mean += x / count;
    for (double x : row)
        squares += (x - mean) * (x - mean);
    for (size_t n = 0; n < row.size(); n++)
        row[n] = (row[n] - mean) / sqrt(squares / count + EPS) * value(gamma[n]) + value(beta[n]);
}

/* What row i of the samples should be. */
inline std::vector<double> wanted_row(const contender &c, const problem &p, const exact &sums,
                                      int i)
{
    const double *from = &(c.e4m3 ? sums.e4m3 : sums.half)[(size_t)i * p.columns];
    const __half *residual = c.e4m3 ? p.residual : p.half_residual;
    std::vector<double> row(from, from + p.columns);
    std::vector<__half> added(p.columns, __float2half(0));
    if (p.bias != nullptr)
        added = downloaded(p.bias, p.columns);
    if (c.as == RESIDUAL || c.as == NORM)
        added = downloaded(residual + (size_t)sampled_row(p, i) * p.columns, p.columns);
    for (int n = 0; n < p.columns; n++) {
        row[n] += value(added[n]);
        row[n] = c.as < GELU ? row[n] : gelu(row[n]);
    }
    if (c.as == NORM)
        normalise(row, p);
    return row;
}

/* Returns whether the result is right. */
inline bool judge(contender &c, const problem &p, const exact &sums, cudaStream_t stream)
{
    const double most = c.e4m3 ? 2e-2 : c.as < NORM ? 1e-3 : 3e-3;
    double off = 0, along = 0, norm = 0;
    CHECK(cudaMemset(p.out, 0xff, (size_t)p.rows * p.columns * (c.as == GELU_E4M3 ? 1 : 2)));
    c.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < SAMPLES; i++) {
        const std::vector<double> got = row_of(c, p, sampled_row(p, i)),
                                  want = wanted_row(c, p, sums, i);
        for (int n = 0; n < p.columns; n++) {
            const double d = distance(c.as, got[n], want[n]);
            off += d * d;
            along += d * want[n];
            norm += want[n] * want[n];
        }
    }
    c.error = sqrt(off / norm);
    c.along = along / norm;
    if (c.error < most)
        return true;
    printf("\nWRONG: %s, %s, %d rows: the error is %.1e, more than %.1e\n", c.name.c_str(), p.name,
           p.rows, c.error, most);
    failed = true;
    return false;
}
