/* How fast Hopper converts to e4m3, for epilogues that would store it.
 *
 * A warp's instructions depend on those of the round before alone, and nothing else is computed:
 *
 *   f16x2     two conversions of two fp16 values make a word
 *   f32       two conversions of two fp32 values make a word
 *   epilogue  as f16x2, after fp32 was rounded to fp16 and multiplied by a scale
 *   half      two fp32 values become fp16: what an epilogue does today
 *
 * Prints for 1 to 16 warps of a multiprocessor the cycles of a warp's word, the values that a
 * multiprocessor converts in a cycle, and the cycles of a tile of 128x192.  Before that all fp16
 * values and drawn fp32 values are compared with the host's conversion. */
#include "fp8.cuh"

#include <cstring>

enum { WIDTH = 8, ROUNDS = 512, LAUNCHES = 11, DRAWN = 1 << 22 };
enum kind { F16X2, F32, EPILOGUE, HALF, KINDS };

static const char *const names[KINDS] = {"e4m3x2.f16x2", "e4m3x2.f32", "f32, f16x2, e4m3x2",
                                         "f16x2.f32"};
static const int values_of[KINDS] = {4, 4, 4, 2}; /* of a word */

__device__ inline uint32_t e4m3_of_halves(uint32_t low, uint32_t high)
{
    uint32_t word;
    asm volatile("{ .reg .b16 l, h;\n"
                 "cvt.rn.satfinite.e4m3x2.f16x2 l, %1;\n"
                 "cvt.rn.satfinite.e4m3x2.f16x2 h, %2;\n"
                 "mov.b32 %0, {l, h}; }"
                 : "=r"(word)
                 : "r"(low), "r"(high));
    return word;
}

__device__ inline uint32_t e4m3_of_floats(float a, float b, float c, float d)
{
    uint32_t word;
    asm volatile("{ .reg .b16 l, h;\n"
                 "cvt.rn.satfinite.e4m3x2.f32 l, %2, %1;\n"
                 "cvt.rn.satfinite.e4m3x2.f32 h, %4, %3;\n"
                 "mov.b32 %0, {l, h}; }"
                 : "=r"(word)
                 : "f"(a), "f"(b), "f"(c), "f"(d));
    return word;
}

__device__ inline uint32_t halves(float a, float b)
{
    uint32_t word;
    asm volatile("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(word) : "f"(a), "f"(b));
    return word;
}

__device__ inline uint32_t scaled(uint32_t halves, uint32_t scale)
{
    uint32_t word;
    asm volatile("mul.f16x2 %0, %1, %2;" : "=r"(word) : "r"(halves), "r"(scale));
    return word;
}

template <int KIND> __global__ void convert(uint32_t *out, float *cycles, uint32_t scale)
{
    uint32_t a[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        a[i] = 0x3c003c00 + threadIdx.x * 77 + i * 1234567;
    __syncthreads();
    const long long from = clock64();
#pragma unroll 1
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t next[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            float x[4];
            for (int j = 0; j < 4; j++)
                x[j] = __uint_as_float(a[(i + j) % WIDTH]);
            if (KIND == F16X2)
                next[i] = e4m3_of_halves(a[i], a[(i + 1) % WIDTH]);
            else if (KIND == F32)
                next[i] = e4m3_of_floats(x[0], x[1], x[2], x[3]);
            else if (KIND == EPILOGUE)
                next[i] = e4m3_of_halves(scaled(halves(x[0], x[1]), scale),
                                         scaled(halves(x[2], x[3]), scale));
            else
                next[i] = halves(x[0], x[1]);
        }
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            a[i] = next[i];
    }
    __syncthreads();
    const long long to = clock64();
    uint32_t sum = 0;
    for (int i = 0; i < WIDTH; i++)
        sum ^= a[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    if (threadIdx.x == 0)
        cycles[blockIdx.x] = (float)(to - from);
}

template <int KIND> static void measure(int multiprocessors)
{
    uint32_t *out;
    float *cycles;
    CHECK(cudaMalloc(&out, multiprocessors * 512 * sizeof(uint32_t)));
    CHECK(cudaMalloc(&cycles, multiprocessors * sizeof(float)));
    for (int warps : {1, 4, 8, 16}) {
        std::vector<float> all;
        for (int i = 0; i < LAUNCHES; i++) {
            convert<KIND><<<multiprocessors, warps * 32>>>(out, cycles, 0x3c003c00);
            CHECK(cudaGetLastError());
            const std::vector<float> got = downloaded(cycles, multiprocessors);
            if (i > 0)
                all.insert(all.end(), got.begin(), got.end());
        }
        const double words = (double)ROUNDS * WIDTH, median = quantile(all, 0.5) / words;
        const double rate = warps * 32 * values_of[KIND] / median;
        printf("| %s | %d | %.2f (%.2f, %.2f) | %.1f | %.0f |\n", names[KIND], warps, median,
               quantile(all, 0.1) / words, quantile(all, 0.9) / words, rate, 128 * 192 / rate);
    }
    CHECK(cudaFree(out));
    CHECK(cudaFree(cycles));
}

/* ---- verification ------------------------------------------------------------------------------
 */

/* Words of four codes of four fp16 or fp32 values. */
__global__ void convert_halves(const uint32_t *in, uint32_t *out, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = e4m3_of_halves(in[i * 2], in[i * 2 + 1]);
}

__global__ void convert_floats(const float *in, uint32_t *out, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = e4m3_of_floats(in[i * 4], in[i * 4 + 1], in[i * 4 + 2], in[i * 4 + 3]);
}

static void compare(const std::vector<float> &values, const uint32_t *device_words,
                    const char *what)
{
    const std::vector<uint32_t> words = downloaded(device_words, values.size() / 4);
    for (size_t i = 0; i < values.size(); i++) {
        const uint8_t got = words[i / 4] >> i % 4 * 8 & 0xff, want = e4m3_code(values[i]);
        const bool same = want == 0x7f ? (got & 0x7f) == 0x7f : got == want;
        if (!same) {
            fprintf(stderr, "%s: %a becomes 0x%02x, not 0x%02x\n", what, values[i], got, want);
            exit(1);
        }
    }
    printf("%s: %zu values as on the host\n", what, values.size());
}

static void verify()
{
    std::vector<float> of_halves, floats(DRAWN);
    uint32_t *words, state = 1;
    __half *halves;
    float *singles;
    for (uint32_t i = 0; i < 1 << 16; i++) {
        const __half_raw raw = {(unsigned short)i};
        of_halves.push_back(__half2float(__half(raw)));
    }
    for (float &x : floats) {
        state = state * 1664525 + 1013904223;
        /* Most of them among e4m3's values: exponents 2^-16 to 2^15, and all others. */
        const uint32_t bits =
            state & 1 << 20 ? state : (state & 0x807fffff) | (111 + (state >> 24 & 31)) << 23;
        memcpy(&x, &bits, sizeof(x));
    }
    CHECK(cudaMalloc(&words, DRAWN));
    CHECK(cudaMalloc(&halves, (1 << 16) * sizeof(__half)));
    CHECK(cudaMalloc(&singles, DRAWN * sizeof(float)));
    std::vector<uint16_t> codes(1 << 16);
    for (size_t i = 0; i < codes.size(); i++)
        codes[i] = (uint16_t)i;
    CHECK(cudaMemcpy(halves, codes.data(), codes.size() * 2, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(singles, floats.data(), DRAWN * sizeof(float), cudaMemcpyHostToDevice));
    convert_halves<<<64, 256>>>((const uint32_t *)halves, words, 1 << 14);
    CHECK(cudaGetLastError());
    compare(of_halves, words, "fp16 to e4m3");
    convert_floats<<<DRAWN / 1024, 256>>>(singles, words, DRAWN / 4);
    CHECK(cudaGetLastError());
    compare(floats, words, "fp32 to e4m3");
    CHECK(cudaFree(words));
    CHECK(cudaFree(halves));
    CHECK(cudaFree(singles));
}

int main()
{
    int device, multiprocessors;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    verify();
    printf("\n| conversion | warps | cycles of a word (10 %%, 90 %%) | values a cycle | cycles of "
           "128x192 |\n|---|---|---|---|---|\n");
    measure<F16X2>(multiprocessors);
    measure<F32>(multiprocessors);
    measure<EPILOGUE>(multiprocessors);
    measure<HALF>(multiprocessors);
}
