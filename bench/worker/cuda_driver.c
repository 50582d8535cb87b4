#include "bench/worker/cuda_driver_int.h"
#include "bench/worker/nvidia_int.h"

#include <dlfcn.h>

int cuda_check(const struct cuda_driver *cu, int error, enum status_code code, const char *what,
               struct status *st)
{
    const char *name = "an unknown error", *text = "the driver says no more";
    if (error == CUDA_SUCCESS)
        return 0;
    cu->cuGetErrorName(error, &name);
    cu->cuGetErrorString(error, &text);
    return status_set(st, code, "%s: %s (%s)", what, text, name);
}

static int load(struct cuda_driver *cu, struct status *st)
{
    const struct shared_symbol symbols[] = {
#define X(name, symbol, parameters) {symbol, (void **)&cu->name},
        CUDA_FUNCTIONS(X)
#undef X
    };
    const char *missing;
    if (shared_open("libcuda.so.1", symbols, ARRAY_LEN(symbols), &missing))
        return 0;
    if (missing != NULL)
        return status_set(st, STATUS_ENVIRONMENT,
                          "the NVIDIA driver has no function %s: it is too old; install one for "
                          "CUDA 12 or later",
                          missing);
    return status_set(st, STATUS_ENVIRONMENT,
                      "no NVIDIA driver found (%s); install one, or use --target cpu", dlerror());
}

int cuda_driver_open(const struct cuda_driver **out, struct status *st)
{
    static struct cuda_driver cu;
    static bool ready;
    *out = NULL;
    if (!ready) {
        if (load(&cu, st) != 0)
            return -1;
        int error = cu.cuInit(0);
        if (error == CUDA_ERROR_NO_DEVICE)
            return status_set(st, STATUS_ENVIRONMENT,
                              "the NVIDIA driver sees no GPU; check nvidia-smi and "
                              "CUDA_VISIBLE_DEVICES, or use --target cpu");
        if (cuda_check(&cu, error, STATUS_ENVIRONMENT, "the NVIDIA driver does not start", st) != 0)
            return -1;
        ready = true;
    }
    *out = &cu;
    return 0;
}

void cuda_uuid(const struct cuda_driver *cu, int device, char out[64])
{
    unsigned char uuid[16] = {0};
    cu->cuDeviceGetUuid(uuid, device);
    int n = sprintf(out, "GPU");
    for (int i = 0; i < 16; i++)
        n += sprintf(out + n, "%s%02x", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                     uuid[i]);
}
