/* The norm in front of the first layer, where norms stand before: a kernel that runs before the
 * first segment. */
#include "elements.h"
#include "segment.h"

enum { THREADS_MAX = 1024 };

static __device__ float value(const fp_normalising &c, const void *array, long i)
{
    return element_load((enum encoder_dtype)c.dtype, array, (size_t)i);
}

/* The sum of x over the thread block. */
static __device__ float sum_of(float x)
{
    __shared__ float sums[THREADS_MAX];
    const int me = (int)threadIdx.x;
    __syncthreads();
    sums[me] = x;
    for (int step = (int)blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (me < step)
            sums[me] += sums[me + step];
    }
    __syncthreads();
    return sums[0];
}

/* A row a thread block, whose threads are a power of 2. */
extern "C" __global__ void encoder_normalise_rows(const __grid_constant__ fp_normalising c)
{
    const int rows = c.live != nullptr ? *c.live : c.rows, step = (int)blockDim.x;
    for (int row = (int)blockIdx.x; row < rows; row += (int)gridDim.x) {
        const long first = (long)row * c.columns;
        float mean = 0, square = 0;
        for (int i = (int)threadIdx.x; i < c.columns && !c.rms; i += step)
            mean += value(c, c.x, first + i);
        mean = sum_of(mean) / (float)c.columns;
        for (int i = (int)threadIdx.x; i < c.columns; i += step) {
            const float y = value(c, c.x, first + i) - mean;
            square += y * y;
        }
        const float scale = 1 / sqrtf(sum_of(square) / (float)c.columns + c.eps);
        for (int i = (int)threadIdx.x; i < c.columns; i += step) {
            float y = value(c, c.x, first + i);
            if (c.gamma != nullptr)
                y = (y - mean) * scale * value(c, c.gamma, i);
            if (c.gamma != nullptr && c.beta != nullptr)
                y += value(c, c.beta, i);
            element_store((enum encoder_dtype)c.dtype, c.n, (size_t)(first + i), y);
        }
    }
}
