/* Stamps: when the thread blocks of a kernel came to its steps.
 *
 * This text stands in front of the source of a stamped kernel, whose first parameter has a place
 * for each thread block.  Below it calls of a few functions become calls that leave the time, too;
 * the kernels' own text stays as it is.  The host reads the first part. */
#ifndef FUSEPLAN_CUDA_STAMPS_H
#define FUSEPLAN_CUDA_STAMPS_H

enum fp_stamp {
    FP_STAMP_BEGUN,  /* its first thread is there */
    FP_STAMP_WAITED, /* the first warp knows that the kernel in front has ended */
    FP_STAMP_FIRST,  /* what the first product needs is there */
    FP_STAMP_SUMS,   /* the last product is complete */
    FP_STAMP_END,    /* the last warp ends */
    FP_STAMPS
};

/* Of a thread block; zeros before the launch. */
struct fp_stamps {
    unsigned long long multiprocessor, ns; /* its number; the GPU's clock at FP_STAMP_BEGUN */
    unsigned long long at[FP_STAMPS]; /* cycles of the multiprocessor's clock, complements of those
                                         of a first warp's; 0: a step that the kernel lacks */
};

#ifdef __CUDACC__
#include "wgmma.cuh"

namespace fp
{

static __shared__ fp_stamps *stamps_of_block;

/* The warp does not wait for memory. */
FP_DEVICE void keep_largest(fp_stamp step, u64 time)
{
    if (threadIdx.x % 32 == 0)
        asm volatile("red.global.max.u64 [%0], %1;" ::"l"(&stamps_of_block->at[step]), "l"(time)
                     : "memory");
}

/* The time of the last warp, and of the first one. */
FP_DEVICE void stamp_last(fp_stamp step)
{
    keep_largest(step, static_cast<u64>(clock64()));
}
FP_DEVICE void stamp_first(fp_stamp step)
{
    keep_largest(step, ~static_cast<u64>(clock64()));
}

/* From the beginning of a kernel to its end. */
struct stamped_kernel {
    FP_DEVICE explicit stamped_kernel(fp_stamps *of_grid)
    {
        fp_stamps *own = of_grid + blockIdx.x;
        stamps_of_block = own; /* all threads store the same */
        if (threadIdx.x == 0) {
            u32 multiprocessor;
            asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(own->ns));
            own->at[FP_STAMP_BEGUN] = static_cast<u64>(clock64());
            own->multiprocessor = multiprocessor;
        }
    }
    FP_DEVICE ~stamped_kernel()
    {
        stamp_last(FP_STAMP_END);
    }
};

FP_DEVICE void stamped_await_dependencies()
{
    await_dependencies();
    stamp_first(FP_STAMP_WAITED);
}

/* It comes before each step's products. */
FP_DEVICE void stamped_wgmma_fence()
{
    stamp_first(FP_STAMP_FIRST);
    wgmma_fence();
}

template <int pending> FP_DEVICE void stamped_wgmma_wait()
{
    wgmma_wait<pending>();
    if (pending == 0)
        stamp_last(FP_STAMP_SUMS);
}

} // namespace fp

#define await_dependencies stamped_await_dependencies
#define wgmma_fence        stamped_wgmma_fence
#define wgmma_wait         stamped_wgmma_wait
#endif

#endif
