/* Memory of a GPU, and what the calls of CUDA's runtime return. */
#include "launch.h"

/* ---- errors ---------------------------------------------------------------------------------- */

int encoder_check(cudaError_t error, const char *what)
{
    enum encoder_status status = error == cudaErrorInsufficientDriver ? ENCODER_OLD_DRIVER
                                 : error == cudaErrorNoDevice         ? ENCODER_NO_DEVICE
                                 : error == cudaErrorMemoryAllocation ? ENCODER_NO_MEMORY
                                                                      : ENCODER_DEVICE_FAILED;
    if (error == cudaSuccess)
        return ENCODER_OK;
    cudaGetLastError(); /* forget it: the caller's next check is not about this */
    return encoder_fail(status, "%s: %s", what, cudaGetErrorString(error));
}

/* ---- memory ---------------------------------------------------------------------------------- */

int encoder_device_allocate(size_t bytes, void **out)
{
    return encoder_check(cudaMalloc(out, bytes), "cannot allocate GPU memory");
}

void encoder_device_free(void *memory)
{
    if (!encoder_is_forked() && cudaFree(memory) != cudaSuccess)
        cudaGetLastError(); /* the caller's next check is not about this */
}

int encoder_device_copy(void *to, const void *from, size_t bytes, bool from_device)
{
    return encoder_check(
        cudaMemcpy(to, from, bytes,
                   from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice),
        "cannot copy to the GPU");
}

int encoder_device_read(void *to, const void *from, size_t bytes)
{
    return encoder_check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost),
                         "cannot copy from the GPU");
}
