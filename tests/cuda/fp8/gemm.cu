/* The GEMMs of BERT-base with operands of e4m3 and results of fp16.
 *
 *   0    (M,768) x (768,2304)
 *   7    (M,768) x (768,768)
 *   10   (M,768) x (768,3072)
 *   12   (M,3072) x (3072,768)
 *   10-11      with GELU, whose result is fp16 or e4m3
 *   7-8, 12-13 with a residual of fp16, ten times the products' size
 *   7-9, 12-14 with a residual of their size and a layernorm; cuBLASLt's are without it
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
#include "gemm_right.cuh"

#include <memory>

enum { ROUNDS = 21 };
constexpr float DEVIATION = 4, HALF_WEIGHT = 1.0f / 32;

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

/* AS: RESIDUAL or NORM. */
template <ending AS> static std::vector<contender> all_with_residual(const problem &p)
{
    return {
        ours<true, 128, 192, 128, 2, 1, 1, false, AS>(p, "128x192"),
        ours<true, 128, 192, 128, 1, 2, 1, false, AS>(p, "128x192_cooperative"),
        ours<true, 128, 128, 128, 2, 1, 1, false, AS>(p, "128x128"),
        ours<true, 128, 256, 128, 1, 2, 1, false, AS>(p, "128x256_cooperative"),
        ours<true, 64, 192, 128, 2, 1, 1, false, AS>(p, "64x192"),
        ours<false, 128, 192, 128, 2, 1, 1, false, AS>(p, "128x192"),
        ours<false, 128, 192, 128, 1, 2, 1, false, AS>(p, "128x192_cooperative"),
        ours<false, 128, 128, 128, 2, 1, 1, false, AS>(p, "128x128"),
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
                                 : as == RESIDUAL ? all_with_residual<RESIDUAL>(p)
                                 : as == NORM     ? all_with_residual<NORM>(p)
                                                  : all_of_ours(p);
    const ending theirs = as == NORM ? RESIDUAL : as;
    add_cublas(all, p, "cuBLASLt e4m3 fast", true, true, theirs, stream);
    if (as == GELU)
        add_cublas(all, p, "cuBLASLt e4m3 fast, e4m3 out", true, true, GELU_E4M3, stream);
    if (as == PLAIN)
        add_cublas(all, p, "cuBLASLt e4m3 promoted", true, false, PLAIN, stream);
    add_cublas(all, p, "cuBLASLt fp16", false, false, theirs, stream);
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
    __half *large = drawn_tensor<__half>(p.columns, ten * DEVIATION * DEVIATION * ALPHA, 5),
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

static const shape shapes[] = {
    {"0-0", 2304, 768, PLAIN},      {"7-7", 768, 768, PLAIN},   {"10-10", 3072, 768, PLAIN},
    {"12-12", 768, 3072, PLAIN},    {"10-11", 3072, 768, GELU}, {"7-8", 768, 768, RESIDUAL},
    {"12-13", 768, 3072, RESIDUAL}, {"7-9", 768, 768, NORM},    {"12-14", 768, 3072, NORM}};

/* Returns what print_table() does. */
static double measure_shape(const shape &s, int rows, cudaStream_t stream)
{
    const size_t in = (size_t)rows * s.inner, weight = (size_t)s.inner * s.columns,
                 out = (size_t)rows * s.columns;
    const float size = sqrtf((float)s.inner) * (s.as == NORM ? 1 : 10);
    unsigned *sync;
    CHECK(cudaMalloc(&sync, SYNC_BYTES));
    CHECK(cudaMemset(sync, 0, SYNC_BYTES));
    const problem p = {s.name,
                       rows,
                       s.columns,
                       s.inner,
                       drawn_tensor<__nv_fp8_e4m3>(in, DEVIATION, 1),
                       drawn_tensor<__nv_fp8_e4m3>(weight, DEVIATION, 2),
                       drawn_tensor<__half>(in, 1, 3),
                       drawn_tensor<__half>(weight, HALF_WEIGHT, 4),
                       nullptr,
                       drawn_tensor<__half>(out, size * DEVIATION * DEVIATION * ALPHA, 7),
                       drawn_tensor<__half>(out, size * HALF_WEIGHT, 8),
                       drawn_tensor<__half>(s.columns, 1, 10),
                       drawn_tensor<__half>(s.columns, 1, 11),
                       sync,
                       drawn_tensor<__half>(out, 0, 9)};
    CHECK(cudaDeviceSynchronize());
    const double over = measure(p, s.as, stream);
    for (const void *tensor :
         {(const void *)p.codes, (const void *)p.weight_codes, (const void *)p.in,
          (const void *)p.weight, (const void *)p.residual, (const void *)p.half_residual,
          (const void *)p.gamma, (const void *)p.beta, (const void *)p.sync, (const void *)p.out})
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
