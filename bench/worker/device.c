#include "bench/worker/worker_int.h"

static const struct device_ops *const devices[TARGET_COUNT] = {
    [TARGET_CPU] = &device_cpu,
    [TARGET_CUDA] = &device_cuda,
};

const struct device_ops *device_ops_of(enum target_kind kind)
{
    return devices[kind];
}
