/* The GEMMs of BERT-base with operands of e4m3 and results of fp16.
 *
 *   0    (M,768) x (768,2304)
 *   7    (M,768) x (768,768)
 *   10   (M,768) x (768,3072)
 *   12   (M,3072) x (3072,768)
 *   10-11      with GELU, whose result is fp16 or e4m3
 *   7-8, 12-13 with a residual of fp16, ten times the products' size
 *
 * By hopper_gemm.cuh's kernel in several tiles, beside the same kernel with operands of fp16, and
 * beside cuBLASLt in both types, with sums of e4m3 that are fast (as the tensor cores have them) or
 * promoted to fp32.  All take turns.  Operands are drawn, near the normal distribution; those of
 * e4m3 have a deviation of 4, and results are sums / 512.
 *
 * Prints for each the time of a launch, of many one after the other, and the error of some rows
 * against sums in double: of the norm, and along the exact result (less than 0: towards 0).  Of a
 * result in e4m3 it is the distance from the cell of numbers that would become it.  Then the same
 * errors where a bias of ten times the sums' size is in the sums from the beginning. */
#include "gemm_cublas.cuh"

#include <memory>
#include <string>

enum { ROUNDS = 21, SAMPLES = 32 };
constexpr float DEVIATION = 4, HALF_WEIGHT = 1.0f / 32;

struct contender {
    std::string name;
    bool e4m3, ours;
    ending as;
    std::function<void(cudaStream_t)> launch;
    double error, along;
    std::vector<float> us;
    cudaGraphExec_t exec;
};

/* ---- what is right ----------------------------------------------------------------------------
 */

static float value(__nv_fp8_e4m3 x)
{
    return e4m3_value(x.__x);
}

static float value(__half x)
{
    return __half2float(x);
}

static int sampled_row(const problem &p, int i)
{
    return (int)((long)p.rows * i / SAMPLES) + i % 16;
}

/* by_rows: the weight is (columns, inner), else (inner, columns). */
template <typename T>
static std::vector<double> right(const problem &p, const T *in, const T *weight, bool by_rows)
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

static bool failed; /* a result was wrong */

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

/* A row of the result, as numbers.  Ours of e4m3 has the order of hopper_gemm_store.cuh. */
static std::vector<double> row_of(const contender &c, const problem &p, int row)
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
static double distance(ending as, double got, double want)
{
    if (as != GELU_E4M3)
        return got - want;
    const double size = std::max(fabs(got) * FACTOR, 1.0 / 64),
                 half_step = ldexp(1.0, ilogb(size) - 4) / FACTOR;
    return std::copysign(std::max(fabs(got - want) - half_step, 0.0), got - want);
}

/* Returns whether the result is right. */
static bool judge(contender &c, const problem &p, const exact &sums, cudaStream_t stream)
{
    const std::vector<double> &want = c.e4m3 ? sums.e4m3 : sums.half;
    const double most = c.e4m3 ? 2e-2 : c.as < GELU ? 1e-3 : 3e-3;
    double off = 0, along = 0, norm = 0;
    CHECK(cudaMemset(p.out, 0xff, (size_t)p.rows * p.columns * (c.as == GELU_E4M3 ? 1 : 2)));
    c.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < SAMPLES; i++) {
        const int row = sampled_row(p, i);
        const std::vector<double> got = row_of(c, p, row);
        std::vector<__half> added(p.columns, __float2half(0));
        if (p.bias != nullptr)
            added = downloaded(p.bias, p.columns);
        if (c.as == RESIDUAL)
            added = downloaded((c.e4m3 ? p.residual : p.half_residual) + (size_t)row * p.columns,
                               p.columns);
        for (int n = 0; n < p.columns; n++) {
            const double sum =
                want[(size_t)i * p.columns + n] + value(added[n]) * (double)(c.e4m3 ? ALPHA : 1);
            const double y = c.as < GELU ? sum : gelu(sum), d = distance(c.as, got[n], y);
            off += d * d;
            along += d * y;
            norm += y * y;
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

/* ---- who takes part ---------------------------------------------------------------------------
 */

template <bool E4M3, int ROWS, int COLUMNS, int STEP_BYTES, int TEAMS, int GROUPS, int CLUSTER = 1,
          bool SWAP = false, ending ENDING = PLAIN>
static contender ours(const problem &p, const char *name, bool early = true)
{
    using tile = tile_of<E4M3, ROWS, COLUMNS, STEP_BYTES, TEAMS, GROUPS, CLUSTER, SWAP, ENDING>;
    return {std::string(E4M3 ? "e4m3 " : "fp16 ") + name, E4M3, true, ENDING,
            [p, early](cudaStream_t stream) { launch_tile<tile>(p, early, stream); }};
}

/* With GELU, and a result of fp16 or of e4m3. */
static std::vector<contender> all_with_gelu(const problem &p)
{
    return {
        ours<true, 128, 192, 128, 2, 1, 1, false, GELU>(p, "128x192, fp16 out"),
        ours<true, 128, 192, 128, 2, 1, 1, false, GELU_E4M3>(p, "128x192, e4m3 out"),
        ours<true, 128, 128, 128, 2, 1, 1, false, GELU>(p, "128x128, fp16 out"),
        ours<true, 128, 128, 128, 2, 1, 1, false, GELU_E4M3>(p, "128x128, e4m3 out"),
        ours<true, 64, 192, 128, 2, 1, 1, false, GELU>(p, "64x192, fp16 out"),
        ours<true, 64, 192, 128, 2, 1, 1, false, GELU_E4M3>(p, "64x192, e4m3 out"),
        ours<false, 128, 192, 128, 2, 1, 1, false, GELU>(p, "128x192, fp16 out"),
    };
}

static std::vector<contender> all_with_residual(const problem &p)
{
    return {
        ours<true, 128, 192, 128, 2, 1, 1, false, RESIDUAL>(p, "128x192"),
        ours<true, 128, 192, 128, 1, 2, 1, false, RESIDUAL>(p, "128x192_cooperative"),
        ours<true, 128, 128, 128, 2, 1, 1, false, RESIDUAL>(p, "128x128"),
        ours<true, 128, 256, 128, 1, 2, 1, false, RESIDUAL>(p, "128x256_cooperative"),
        ours<true, 64, 192, 128, 2, 1, 1, false, RESIDUAL>(p, "64x192"),
        ours<false, 128, 192, 128, 2, 1, 1, false, RESIDUAL>(p, "128x192"),
        ours<false, 128, 192, 128, 1, 2, 1, false, RESIDUAL>(p, "128x192_cooperative"),
        ours<false, 128, 128, 128, 2, 1, 1, false, RESIDUAL>(p, "128x128"),
    };
}

static std::vector<contender> all_of_ours(const problem &p)
{
    std::vector<contender> all = {
        ours<true, 128, 192, 128, 2, 1>(p, "128x192"),
        ours<true, 128, 192, 128, 2, 1>(p, "128x192, plain launches", false),
        ours<true, 128, 192, 128, 1, 2>(p, "128x192_cooperative"),
        ours<true, 128, 128, 128, 2, 1>(p, "128x128"),
        ours<true, 128, 128, 128, 2, 1, 2>(p, "128x128, clusters of 2"),
        ours<true, 128, 256, 128, 1, 2>(p, "128x256_cooperative"),
        ours<true, 256, 128, 128, 1, 2>(p, "256x128_cooperative"),
        ours<true, 64, 192, 128, 2, 1>(p, "64x192"),
        ours<false, 128, 192, 128, 2, 1>(p, "128x192"),
        ours<false, 128, 192, 128, 1, 2>(p, "128x192_cooperative"),
        ours<false, 128, 128, 128, 2, 1>(p, "128x128"),
    };
    if (p.rows <= 1024) {
        all.push_back(ours<true, 64, 128, 128, 2, 1>(p, "64x128"));
        all.push_back(ours<true, 96, 192, 128, 2, 1, 1, true>(p, "96x192_swap_pingpong"));
        all.push_back(ours<false, 64, 128, 128, 2, 1>(p, "64x128"));
        all.push_back(ours<false, 96, 192, 128, 2, 1, 1, true>(p, "96x192_swap_pingpong"));
    }
    return all;
}

/* Adds nothing where cuBLASLt has no algorithm. */
static void add_cublas(std::vector<contender> &all, const problem &p, const char *name, bool e4m3,
                       bool fast, ending as, cudaStream_t stream)
{
    auto product = std::make_shared<cublas_product>(p, e4m3, fast, as);
    if (product->tune(stream))
        all.push_back(
            {name, e4m3, false, as, [product](cudaStream_t s) { CHECK_BLAS(product->run(s)); }});
    else
        printf("\n%s, %s: none\n", p.name, name);
}

static std::vector<contender> all_of(const problem &p, ending as, cudaStream_t stream)
{
    std::vector<contender> all = as == GELU       ? all_with_gelu(p)
                                 : as == RESIDUAL ? all_with_residual(p)
                                                  : all_of_ours(p);
    add_cublas(all, p, "cuBLASLt e4m3 fast", true, true, as, stream);
    if (as == GELU)
        add_cublas(all, p, "cuBLASLt e4m3 fast, e4m3 out", true, true, GELU_E4M3, stream);
    if (as == PLAIN)
        add_cublas(all, p, "cuBLASLt e4m3 promoted", true, false, PLAIN, stream);
    add_cublas(all, p, "cuBLASLt fp16", false, false, as, stream);
    return all;
}

/* ---- the table --------------------------------------------------------------------------------
 */

static void time_all(std::vector<contender> &all, const problem &p, cudaStream_t stream)
{
    const int launches = p.rows > 1024 ? 60 : 200;
    for (contender &c : all)
        c.exec = record(stream, launches, c.launch);
    for (int round = 0; round <= ROUNDS; round++)
        for (contender &c : all) {
            const float ms = timed(stream, [&] { CHECK(cudaGraphLaunch(c.exec, stream)); });
            if (round > 0)
                c.us.push_back(ms * 1000 / (float)launches);
        }
    for (contender &c : all)
        CHECK(cudaGraphExecDestroy(c.exec));
}

/* Returns the time of the fastest tile of ours with e4m3 over cuBLASLt's. */
static double print_table(const std::vector<contender> &all, const problem &p)
{
    float rival = 0, best = INFINITY;
    for (const contender &c : all) {
        const float us = quantile(c.us, 0.5);
        if (c.name == "cuBLASLt e4m3 fast")
            rival = us;
        else if (c.e4m3 && c.name.rfind("cuBLASLt", 0) != 0)
            best = std::min(best, us);
    }
    printf("\n| %s, %d rows | us (10 %%, 90 %%) | TFLOP/s | over cuBLASLt e4m3 | error | along |\n"
           "|---|---|---|---|---|---|\n",
           p.name, p.rows);
    for (const contender &c : all) {
        const double us = quantile(c.us, 0.5);
        printf("| %s | %.2f (%.2f, %.2f) | %.0f | %.3f | %.2e | %+.1e |\n", c.name.c_str(), us,
               quantile(c.us, 0.1), quantile(c.us, 0.9), 2e-6 * p.rows * p.columns * p.inner / us,
               us / rival, c.error, c.along);
    }
    return best / rival;
}

/* Returns what print_table() does. */
static double measure(problem p, ending as, cudaStream_t stream)
{
    const exact sums(p);
    std::vector<contender> all = all_of(p, as, stream);
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](contender &c) { return !judge(c, p, sums, stream); }),
              all.end());
    time_all(all, p, stream);
    const double over = print_table(all, p);
    if (p.rows != 1024 || as != PLAIN)
        return over;
    const float ten = 10 * sqrtf((float)p.inner);
    __half *large = drawn_tensor<__half>(p.columns, ten * DEVIATION * DEVIATION, 5),
           *small = drawn_tensor<__half>(p.columns, ten * HALF_WEIGHT, 6);
    p.bias = large;
    contender e4m3 = ours<true, 128, 192, 128, 2, 1>(p, "");
    judge(e4m3, p, sums, stream);
    p.bias = small;
    contender half = ours<false, 128, 192, 128, 2, 1>(p, "");
    judge(half, p, sums, stream);
    printf("With a bias in the sums of 10 times their size: e4m3 128x192 %.2e, along %+.1e; fp16 "
           "%.2e, %+.1e\n",
           e4m3.error, e4m3.along, half.error, half.along);
    CHECK(cudaFree(large));
    CHECK(cudaFree(small));
    return over;
}

/* Operators with their columns and inner dimension. */
struct shape {
    const char *name;
    int columns, inner;
    ending as;
};

static const shape shapes[] = {{"0-0", 2304, 768, PLAIN},     {"7-7", 768, 768, PLAIN},
                               {"10-10", 3072, 768, PLAIN},   {"12-12", 768, 3072, PLAIN},
                               {"10-11", 3072, 768, GELU},    {"7-8", 768, 768, RESIDUAL},
                               {"12-13", 768, 3072, RESIDUAL}};

/* Returns what print_table() does. */
static double measure_shape(const shape &s, int rows, cudaStream_t stream)
{
    const size_t in = (size_t)rows * s.inner, weight = (size_t)s.inner * s.columns,
                 out = (size_t)rows * s.columns;
    const float ten = 10 * sqrtf((float)s.inner);
    const problem p = {s.name,
                       rows,
                       s.columns,
                       s.inner,
                       drawn_tensor<__nv_fp8_e4m3>(in, DEVIATION, 1),
                       drawn_tensor<__nv_fp8_e4m3>(weight, DEVIATION, 2),
                       drawn_tensor<__half>(in, 1, 3),
                       drawn_tensor<__half>(weight, HALF_WEIGHT, 4),
                       nullptr,
                       drawn_tensor<__half>(out, ten * DEVIATION * DEVIATION, 7),
                       drawn_tensor<__half>(out, ten * HALF_WEIGHT, 8),
                       drawn_tensor<__half>(out, 0, 9)};
    CHECK(cudaDeviceSynchronize());
    const double over = measure(p, s.as, stream);
    for (const void *tensor : {(const void *)p.codes, (const void *)p.weight_codes,
                               (const void *)p.in, (const void *)p.weight, (const void *)p.residual,
                               (const void *)p.half_residual, (const void *)p.out})
        CHECK(cudaFree((void *)tensor));
    return over;
}

int main()
{
    cudaStream_t stream;
    double logarithms = 0;
    int count = 0;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    CHECK(cudaStreamCreate(&stream));
    for (const shape &s : shapes)
        for (int rows : {1024, 4096, 16384}) {
            const double over = measure_shape(s, rows, stream);
            logarithms += s.as == PLAIN ? log(over) : 0;
            count += s.as == PLAIN;
        }
    printf("\nThe fastest e4m3 tile of each over cuBLASLt e4m3 fast, geometric mean of the bare "
           "GEMMs: %.3f\n",
           exp(logarithms / count));
    return failed;
}
