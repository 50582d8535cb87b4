/* What the experiments with e4m3 share: its values on the host, and drawn tensors. */
#pragma once

#include "../latency/latency.cuh"

#include <cmath>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

/* The value of a code; NaN for 0x7f and 0xff. */
inline float e4m3_value(uint8_t code)
{
    const int exponent = code >> 3 & 15, fraction = code & 7;
    const float size =
        exponent == 0 ? ldexpf((float)fraction, -9) : ldexpf((float)(8 + fraction), exponent - 10);
    if ((code & 0x7f) == 0x7f)
        return NAN;
    return code & 0x80 ? -size : size;
}

/* The code next to a number; of two as near the even one; 448 or -448 for all beyond. */
inline uint8_t e4m3_code(float x)
{
    const uint8_t sign = std::signbit(x) ? 0x80 : 0;
    const float size = fabsf(x);
    if (std::isnan(x))
        return 0x7f;
    if (size >= 448)
        return sign | 0x7e;
    int exponent = 0;
    frexpf(size, &exponent); /* size < 2^exponent */
    const int unit = size < 1.0f / 64 ? -9 : exponent - 4;
    /* With a fraction of 16 units the next binade begins, whose code is the next one, too. */
    const int units = (int)rintf(ldexpf(size, -unit));
    return sign | (uint8_t)(units + (unit + 9) * 8);
}

/* Numbers near the normal distribution, from a hash of their place. */
__device__ inline float drawn(uint64_t place, uint32_t seed)
{
    uint64_t h = (place + 1) * 0x9e3779b97f4a7c15ull + seed * 0xd1b54a32d192ed03ull;
    float sum = 0;
    for (int i = 0; i < 2; i++) {
        h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
        h = (h ^ h >> 27) * 0x94d049bb133111ebull;
        h ^= h >> 31;
        for (int part = 0; part < 64; part += 16)
            sum += (float)(h >> part & 0xffff) / 65536 - 0.5f;
    }
    return sum * 1.2247449f; /* of 8 uniform numbers, each of variance 1/12 */
}

template <typename T> __global__ void draw(T *out, size_t count, float deviation, uint32_t seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        out[i] = T(drawn(i, seed) * deviation);
}

/* A tensor of drawn elements on the device. */
template <typename T> T *drawn_tensor(size_t count, float deviation, uint32_t seed)
{
    T *out;
    CHECK(cudaMalloc(&out, count * sizeof(T)));
    draw<<<1024, 256>>>(out, count, deviation, seed);
    CHECK(cudaGetLastError());
    return out;
}

template <typename T> std::vector<T> downloaded(const T *from, size_t count)
{
    std::vector<T> out(count);
    CHECK(cudaMemcpy(out.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
}
