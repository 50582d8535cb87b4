/* Kernels of one breath: the GEMMs of a BERT-base layer at 16 or 32 rows, in fp16.
 *
 * Four dependent kernels a layer, 48 layers with the weights of 12, 96 thread blocks each:
 *
 *   0   (M,768) x (768,2304)
 *   7   (M,768) x (768,768), on the first 768 columns of 0's result
 *   10  (M,768) x (768,3072), GELU
 *   12  (M,3072) x (3072,768)
 *
 * Attention and layernorms are left out.  A thread block has 16 rows and N M/16/96 columns.  All of
 * its weight is on the way to shared memory before it waits, packed in the order of mma's
 * fragments.  Its warps share K.  A lane loads its part of the input from L2 into mma's registers:
 * K is permuted within 64, so that these are 16 bytes each.  Partial sums meet in shared memory.
 *
 * WORDS: an input word is there once it is not all ones, and a kernel waits for the one in front of
 * it before its end only.  EARLY: the next kernel may begin before this one's input is there.
 *
 * Prints the time, the error of the first layer against sums in double, and for each kernel the
 * mean time of its steps after the last store of the kernel in front. */
#include "latency.cuh"

#include <cmath>
#include <cuda_fp16.h>

enum { D = 768, F = 3072, LAYERS = 12, RUNS = 48, KERNELS = 4, BLOCKS = 96, ROWS = 16, WARPS = 12 };
enum { WORDS = 1, EARLY = 2 };
enum { BEGUN, WAITED, INPUT, WEIGHTS, SUMS, STORED, STAMPS };

/* ---- the kernel ------------------------------------------------------------------------------ */

__device__ inline uint4 load(const char *at)
{
    uint4 w;
    asm volatile("ld.relaxed.gpu.global.v4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
                 : "l"(at)
                 : "memory");
    return w;
}

__device__ inline bool is_empty(uint4 w)
{
    return w.x == ~0u || w.y == ~0u || w.z == ~0u || w.w == ~0u;
}

__device__ inline void stamp(long long *stamps, int index)
{
    if (stamps != nullptr && threadIdx.x == 0)
        stamps[blockIdx.x * STAMPS + index] = nanoseconds();
}

/* A lane's words of 64 columns: two of row lane / 4, two of row lane / 4 + 8. */
template <int STEPS>
__device__ inline void load_input(const half *in, int pitch, int flags, uint4 (&x)[STEPS][4])
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const char *at =
        (const char *)(in + (size_t)(lane / 4) * pitch + warp * STEPS * 64) + lane % 4 * 32;
#pragma unroll
    for (int i = 0; i < STEPS * 4; i++)
        x[i / 4][i % 4] = load(at + i / 4 * 128 + i % 2 * 16 + i % 4 / 2 * 16 * (size_t)pitch);
    for (bool all = !(flags & WORDS); !all;) {
        all = true;
#pragma unroll
        for (int i = 0; i < STEPS * 4; i++)
            if (is_empty(x[i / 4][i % 4])) {
                all = false;
                x[i / 4][i % 4] =
                    load(at + i / 4 * 128 + i % 2 * 16 + i % 4 / 2 * 16 * (size_t)pitch);
            }
    }
}

template <int STEPS, int TILES>
__device__ inline void multiply(const uint4 (&x)[STEPS][4], const uint2 *weight,
                                float (&sums)[TILES][4])
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < STEPS * 4; i++) { /* 16 of K each */
        const uint32_t *low = (const uint32_t *)&x[i / 4][0] + i % 4 * 2;
        const uint32_t *high = (const uint32_t *)&x[i / 4][2] + i % 4 * 2;
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const uint2 b = weight[((warp * STEPS * 4 + i) * TILES + t) * 32 + lane];
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                         "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(sums[t][0]), "+f"(sums[t][1]), "+f"(sums[t][2]), "+f"(sums[t][3])
                         : "r"(low[0]), "r"(high[0]), "r"(low[1]), "r"(high[1]), "r"(b.x),
                           "r"(b.y));
        }
    }
}

/* TILES: of 8 columns a thread block.  in (M, pitch), out (M, columns). */
template <int K, int TILES, bool GELU>
__global__ void __launch_bounds__(WARPS * 32)
    breath(const half *in, int pitch, const half *weight, const float *bias, half *out, int columns,
           int strips, int flags, long long *stamps)
{
    constexpr int BYTES = K * TILES * 16, ITEMS = (TILES * 2 + WARPS - 1) / WARPS;
    extern __shared__ __align__(128) char memory[];
    __shared__ uint64_t ready;
    auto parts = (float2(*)[TILES * 2][32])(memory + BYTES); /* (WARPS) */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int strip = blockIdx.x % strips, first = blockIdx.x / strips * TILES * 8 + lane % 4 * 2;
    stamp(stamps, BEGUN);
    if (threadIdx.x == 0) {
        barrier_init(&ready);
        barrier_expect(&ready, BYTES);
        bulk_copy(memory, (const char *)weight + (size_t)(blockIdx.x / strips) * BYTES, BYTES,
                  &ready);
    }
    float2 sum[ITEMS]; /* of the pairs of columns that this thread stores */
#pragma unroll
    for (int n = 0; n < ITEMS; n++)
        sum[n] = *(const float2 *)(bias + first + (n * WARPS + warp) % (TILES * 2) / 2 * 8);
    __syncthreads();
    if (flags & EARLY)
        asm volatile("griddepcontrol.launch_dependents;");
    if (!(flags & WORDS))
        asm volatile("griddepcontrol.wait;" ::: "memory");
    stamp(stamps, WAITED);
    uint4 x[K / 64 / WARPS][4];
    load_input(in + (size_t)strip * ROWS * pitch, pitch, flags, x);
    stamp(stamps, INPUT);
    if (!(flags & EARLY))
        asm volatile("griddepcontrol.launch_dependents;");
    barrier_wait(&ready, 0);
    stamp(stamps, WEIGHTS);
    float sums[TILES][4] = {};
    multiply(x, (const uint2 *)memory, sums);
#pragma unroll
    for (int t = 0; t < TILES * 2; t++)
        parts[warp][t][lane] = make_float2(sums[t / 2][t % 2 * 2], sums[t / 2][t % 2 * 2 + 1]);
    __syncthreads();
    stamp(stamps, SUMS);
#pragma unroll
    for (int n = 0; n < ITEMS && n * WARPS + warp < TILES * 2; n++) {
        const int t = n * WARPS + warp, row = strip * ROWS + t % 2 * 8 + lane / 4;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            sum[n].x += parts[w][t][lane].x;
            sum[n].y += parts[w][t][lane].y;
        }
        if (GELU)
            sum[n] = make_float2(0.5f * sum[n].x * (1 + erff(sum[n].x * 0.70710678f)),
                                 0.5f * sum[n].y * (1 + erff(sum[n].y * 0.70710678f)));
        *(half2 *)(out + (size_t)row * columns + first + t / 2 * 8) =
            __floats2half2_rn(sum[n].x, sum[n].y);
    }
    stamp(stamps, STORED);
    if (flags & WORDS)
        asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* ---- a model of drawn weights ---------------------------------------------------------------- */

static uint64_t state = 1;

static float drawn(float most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ((float)(state >> 40) / (1 << 24) * 2 - 1) * most;
}

struct matrix {
    int k, n;
    std::vector<half> weight; /* (k, n) */
    std::vector<float> bias;  /* (n) */
    half *packed;
    float *device_bias;
};

template <typename T> static T *uploaded(const std::vector<T> &values)
{
    T *to;
    CHECK(cudaMalloc(&to, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(to, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return to;
}

/* Packs the columns of a thread block together, in the order of mma's B fragments.  Of 64 rows
 * lane % 4 has 16 neighbours. */
static matrix make_matrix(int k, int n, int tiles)
{
    matrix m = {k, n, std::vector<half>((size_t)k * n), std::vector<float>(n)};
    for (half &w : m.weight)
        w = __float2half(drawn(0.06f));
    for (float &b : m.bias)
        b = drawn(0.1f);
    std::vector<half> packed;
    for (size_t at = 0; at < m.weight.size(); at++) {
        const int i = at % 4, lane = at / 4 % 32, t = at / 128 % tiles;
        const int step = at / 128 / tiles % (k / 16), group = (int)(at / 128 / tiles / (k / 16));
        const int row = step / 4 * 64 + lane % 4 * 16 + step % 4 * 4 + i;
        packed.push_back(m.weight[(size_t)row * n + (group * tiles + t) * 8 + lane / 4]);
    }
    m.packed = uploaded(packed);
    m.device_bias = uploaded(m.bias);
    return m;
}

/* What a kernel must give; in (rows, pitch). */
static std::vector<double> product(const std::vector<double> &in, int rows, const matrix &m,
                                   bool gelu)
{
    const size_t pitch = in.size() / rows;
    std::vector<double> out;
    for (int r = 0; r < rows; r++) {
        std::vector<double> sum(m.bias.begin(), m.bias.end());
        for (int k = 0; k < m.k; k++)
            for (int c = 0; c < m.n; c++)
                sum[c] += in[r * pitch + k] * (double)__half2float(m.weight[(size_t)k * m.n + c]);
        for (double s : sum)
            out.push_back(gelu ? 0.5 * s * (1 + erf(s / sqrt(2.))) : s);
    }
    return out;
}

/* ---- runs ------------------------------------------------------------------------------------ */

template <int M> struct model {
    static constexpr int STRIPS = M / ROWS; /* and tiles of 8 columns where N = 768 */
    static constexpr size_t LAYER = (size_t)M * (3 * D + D + F + D); /* results of a layer */
    std::vector<matrix> layers[LAYERS];
    half *x, *results; /* (M, D); (RUNS, LAYER) */
    std::vector<double> right;

    model()
    {
        for (auto &l : layers)
            l = {make_matrix(D, 3 * D, 3 * STRIPS), make_matrix(D, D, STRIPS),
                 make_matrix(D, F, 4 * STRIPS), make_matrix(F, D, STRIPS)};
        std::vector<half> values(M * D);
        for (half &v : values)
            v = __float2half(drawn(1));
        for (half v : values)
            right.push_back(__half2float(v));
        for (int k = 0; k < KERNELS; k++)
            right = product(right, M, layers[0][k], k == 2);
        x = uploaded(values);
        CHECK(cudaMalloc(&results, LAYER * RUNS * sizeof(half)));
    }

    template <int K, int TILES, bool GELU>
    void launch(cudaStream_t stream, bool first, const half *in, int pitch, const matrix &m,
                half *out, int flags, long long *stamps) const
    {
        auto kernel = breath<K, TILES, GELU>;
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = BLOCKS;
        config.blockDim = WARPS * 32;
        config.dynamicSmemBytes = K * TILES * 16 + WARPS * TILES * 512;
        config.stream = stream;
        config.attrs = &attribute;
        config.numAttrs = first ? 0 : 1;
        CHECK(cudaFuncSetAttribute((const void *)kernel,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)config.dynamicSmemBytes));
        CHECK(cudaFuncSetAttribute((const void *)kernel,
                                   cudaFuncAttributePreferredSharedMemoryCarveout, 100));
        CHECK(cudaLaunchKernelEx(&config, kernel, in, pitch, (const half *)m.packed,
                                 (const float *)m.device_bias, out, m.n, STRIPS, flags, stamps));
    }

    /* stamps (RUNS, KERNELS, BLOCKS, STAMPS), or null. */
    cudaGraphExec_t record(cudaStream_t stream, int flags, long long *stamps) const
    {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        const half *in = x;
        for (int run = 0; run < RUNS; run++) {
            const auto &m = layers[run % LAYERS];
            half *qkv = results + LAYER * run, *context = qkv + M * 3 * D, *wide = context + M * D,
                 *y = wide + M * F;
            auto at = [&](int k) {
                return stamps == nullptr ? nullptr
                                         : stamps + (size_t)(run * KERNELS + k) * BLOCKS * STAMPS;
            };
            launch<D, 3 * STRIPS, false>(stream, run == 0, in, D, m[0], qkv, flags, at(0));
            launch<D, STRIPS, false>(stream, false, qkv, 3 * D, m[1], context, flags, at(1));
            launch<D, 4 * STRIPS, true>(stream, false, context, D, m[2], wide, flags, at(2));
            launch<F, STRIPS, false>(stream, false, wide, F, m[3], y, flags, at(3));
            in = y;
        }
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        return exec;
    }

    float run(cudaStream_t stream, cudaGraphExec_t exec) const
    {
        CHECK(cudaMemsetAsync(results, 0xff, LAYER * RUNS * sizeof(half), stream));
        return timed(stream, [&] { CHECK(cudaGraphLaunch(exec, stream)); });
    }

    /* Of the first layer, as a share of its result's norm. */
    double error() const
    {
        std::vector<half> got(M * D);
        CHECK(cudaMemcpy(got.data(), results + LAYER - M * D, M * D * sizeof(half),
                         cudaMemcpyDeviceToHost));
        double off = 0, norm = 0;
        for (int i = 0; i < M * D; i++) {
            off += pow(__half2float(got[i]) - right[i], 2);
            norm += right[i] * right[i];
        }
        return sqrt(off / norm);
    }
};

static void print_steps(const std::vector<long long> &stamps)
{
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        double mean[STAMPS] = {}, last = 0;
        for (int run = 2; run < RUNS; run++) {
            const long long *mine = &stamps[(size_t)(run * KERNELS + kernel) * BLOCKS * STAMPS];
            const long long *before = mine - BLOCKS * STAMPS;
            long long from = 0, end = 0;
            for (int i = STORED; i < BLOCKS * STAMPS; i += STAMPS) {
                from = std::max(from, before[i]);
                end = std::max(end, mine[i]);
            }
            for (int i = 0; i < BLOCKS * STAMPS; i++)
                mean[i % STAMPS] += (double)(mine[i] - from) / BLOCKS / (RUNS - 2);
            last += (double)(end - from) / (RUNS - 2);
        }
        static const char *const names[] = {"0", "7", "10", "12"};
        printf("    %2s, ns: begun %.0f, waited %.0f, input %.0f, weights %.0f, sums %.0f, stored "
               "%.0f, the last thread "
               "block %.0f\n",
               names[kernel], mean[BEGUN], mean[WAITED], mean[INPUT], mean[WEIGHTS], mean[SUMS],
               mean[STORED], last);
    }
}

template <int M> static void experiment()
{
    const model<M> m;
    cudaStream_t stream;
    long long *stamps;
    std::vector<long long> got((size_t)RUNS * KERNELS * BLOCKS * STAMPS);
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&stamps, got.size() * sizeof(long long)));
    for (int flags = 0; flags < 4; flags++) {
        std::vector<float> us;
        cudaGraphExec_t exec = m.record(stream, flags, nullptr);
        for (int run = 0; run < 60; run++)
            us.push_back(m.run(stream, exec) * 1000 / RUNS);
        CHECK(cudaGraphExecDestroy(exec));
        printf("BREATH %d rows, %s, trigger %s: %.2f us a layer (10 %% %.2f, 90 %% %.2f), error "
               "%.1e\n",
               M, flags & WORDS ? "words" : "wait",
               flags & EARLY ? "at the start" : "with the input", quantile(us, 0.5),
               quantile(us, 0.1), quantile(us, 0.9), m.error());
        exec = m.record(stream, flags, stamps);
        for (int run = 0; run < 3; run++)
            m.run(stream, exec);
        CHECK(cudaGraphExecDestroy(exec));
        CHECK(
            cudaMemcpy(got.data(), stamps, got.size() * sizeof(long long), cudaMemcpyDeviceToHost));
        print_steps(got);
    }
}

int main()
{
    experiment<16>();
    experiment<32>();
}
