/* How long products take while other warps run instructions of one kind.
 *
 * Two warpgroups multiply 64x128x16 without a pause, eight times an iteration, which occupies the
 * tensor cores for 1024 cycles.  Each thread of two others runs 96 instructions of a kind in that
 * time.  Prints cycles an iteration of these alone, and of all.
 *
 *   nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a -I kernels/cuda -I kernels \
 *     -o beside_products tests/cuda/beside_products.cu */
#include <cstdio>

#include "hopper.cuh"
#include "wgmma.cuh"

using namespace fp;

enum { ITERATIONS = 300, COLUMNS = 128, MULTIPROCESSORS = 132, SHARED = 65536, VALUES = 32 };

__device__ float sink; /* of what nobody reads */

__device__ void multiply(unsigned char *shared)
{
    fragment<fp16, COLUMNS> c = {};
    const u64 a = wgmma_matrix(shared_address(shared), 1024, 1024),
              b = wgmma_matrix(shared_address(shared) + 16384, 1024, 1024);
#pragma unroll 1
    for (int n = 0; n < ITERATIONS; n++) {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 8; i++)
            wgmma<fp16, COLUMNS>::nt(c, a + i % 4 * 2, b + i % 4 * 2);
        wgmma_commit();
        wgmma_wait<0>();
        pin(c);
    }
    if (c[0][0][0] == 12345.678f)
        sink = c[0][0][0];
}

template <class Kind> __device__ void compute()
{
    typename Kind::type v[VALUES], y, z;
    for (int i = 0; i < VALUES; i++)
        v[i] = threadIdx.x + i;
    y = threadIdx.x * 3, z = threadIdx.x * 5;
#pragma unroll 1
    for (int n = 0; n < ITERATIONS; n++)
#pragma unroll
        for (int i = 0; i < 3 * VALUES; i++)
            Kind::run(v[i % VALUES], y, z);
    for (int i = 0; i < VALUES; i++)
        if (v[i] == 12345)
            sink = v[i];
}

#define KIND(name, TYPE, letter, text)                                                             \
    struct name {                                                                                  \
        using type = TYPE;                                                                         \
        static __device__ void run(TYPE &v, TYPE y, TYPE z)                                        \
        {                                                                                          \
            asm volatile(text ";" : "+" letter(v) : letter(y), letter(z));                         \
        }                                                                                          \
    };
KIND(add_f32, float, "f", "add.f32 %0, %0, %1")
KIND(fma_f32, float, "f", "fma.rn.f32 %0, %0, %1, %2")
KIND(max_f32, float, "f", "max.f32 %0, %0, %1")
KIND(ex2, float, "f", "ex2.approx.ftz.f32 %0, %0")
KIND(add_f16x2, u32, "r", "add.rn.f16x2 %0, %0, %1")
KIND(fma_f16x2, u32, "r", "fma.rn.f16x2 %0, %0, %1, %2")
KIND(mad_u32, u32, "r", "mad.lo.u32 %0, %0, %1, %2")
KIND(add_u32, u32, "r", "add.u32 %0, %0, %1")
KIND(max_s32, int, "r", "max.s32 %0, %0, %1")
KIND(lop3, u32, "r", "lop3.b32 %0, %0, %1, %2, 0x96")
struct cvt_f16x2 {
    using type = u32;
    static __device__ void run(u32 &v, u32 y, u32)
    {
        v = fp16::pack(__uint_as_float(v), __uint_as_float(y));
    }
};

template <class Kind, bool MULTIPLIES>
__global__ void __launch_bounds__(512, 1) run(long long *cycles)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    for (int i = threadIdx.x; i < SHARED / 4; i += 512)
        reinterpret_cast<u32 *>(shared)[i] = 0x2c003c00 ^ (i * 2654435761u & 0x83ff83ff);
    proxy_fence();
    __syncthreads();
    const long long before = clock64();
    if (threadIdx.x >= 256)
        compute<Kind>();
    else if (MULTIPLIES)
        multiply(shared);
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x == 0)
        *cycles = clock64() - before;
}

template <class Kind, bool MULTIPLIES> double measure()
{
    long long *device, cycles = 0;
    cudaMalloc(&device, sizeof(cycles));
    cudaFuncSetAttribute(run<Kind, MULTIPLIES>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         SHARED);
    for (int i = 0; i < 2; i++)
        run<Kind, MULTIPLIES><<<MULTIPROCESSORS, 512, SHARED>>>(device);
    cudaMemcpy(&cycles, device, sizeof(cycles), cudaMemcpyDeviceToHost);
    cudaFree(device);
    return static_cast<double>(cycles) / ITERATIONS;
}

template <class Kind> void row(const char *name)
{
    printf("%-10s %6.0f %6.0f\n", name, measure<Kind, false>(), measure<Kind, true>());
}

int main()
{
    row<add_f32>("add_f32");
    row<fma_f32>("fma_f32");
    row<max_f32>("max_f32");
    row<ex2>("ex2");
    row<cvt_f16x2>("cvt_f16x2");
    row<add_f16x2>("add_f16x2");
    row<fma_f16x2>("fma_f16x2");
    row<mad_u32>("mad_u32");
    row<add_u32>("add_u32");
    row<max_s32>("max_s32");
    row<lop3>("lop3");
    return cudaGetLastError() != cudaSuccess;
}
