/* hog: takes all of a GPU's memory that is free, says so and holds it until its input ends. */
#include "bench/worker/cuda_driver_int.h"

#include <unistd.h>

/* Returns the bytes taken: as much as can be had in pieces of `piece` bytes. */
static size_t take(const struct cuda_driver *cu, size_t piece)
{
    unsigned long long memory;
    size_t taken = 0;
    while (cu->cuMemAlloc(&memory, piece) == CUDA_SUCCESS)
        taken += piece;
    return taken;
}

int main(void)
{
    struct status st = STATUS_INIT;
    const struct cuda_driver *cu;
    struct CUctx_st *context;
    int device;
    if (cuda_driver_open(&cu, &st) != 0 ||
        cuda_check(cu, cu->cuDeviceGet(&device, 0), STATUS_ENVIRONMENT, "no GPU", &st) != 0 ||
        cuda_check(cu, cu->cuDevicePrimaryCtxRetain(&context, device), STATUS_ENVIRONMENT,
                   "no context", &st) != 0 ||
        cuda_check(cu, cu->cuCtxSetCurrent(context), STATUS_ENVIRONMENT, "no context", &st) != 0) {
        fprintf(stderr, "hog: %s\n", st.message);
        return EXIT_FAILURE;
    }
    size_t taken = 0;
    for (size_t piece = (size_t)1 << 30; piece >= (size_t)1 << 21; piece /= 2)
        taken += take(cu, piece);
    printf("holding %zu MiB\n", taken >> 20);
    fflush(stdout);
    char byte;
    return read(STDIN_FILENO, &byte, 1) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
