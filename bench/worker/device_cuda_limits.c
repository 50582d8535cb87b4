#include "bench/worker/device_cuda_int.h"

/* Peak floating-point operations of one multiprocessor in one clock, a multiply-add counting two:
 * of dense tensor core instructions that accumulate in fp32, and for fp32 of the CUDA cores.
 *
 * They are NVIDIA's stated peaks of A100 (8.0: 312, 156 and 19.5 TFLOP/s) and H100 SXM (9.0: 989,
 * 495 and 67), divided by multiprocessors and boost clock.  Of other capabilities there are cards
 * with different rates. */
static const struct {
    int capability, flops[DTYPE_COUNT];
} rates[] = {
    {80, {[DTYPE_FP16] = 2048, [DTYPE_BF16] = 2048, [DTYPE_TF32] = 1024, [DTYPE_FP32] = 128}},
    {90, {[DTYPE_FP16] = 4096, [DTYPE_BF16] = 4096, [DTYPE_TF32] = 2048, [DTYPE_FP32] = 256}},
};

static double ask(const struct device *d, int attribute)
{
    int value = 0;
    int error = d->cu->cuDeviceGetAttribute(&value, attribute, d->ordinal);
    return error == CUDA_SUCCESS ? value : NAN;
}

/* The rate of the workload's type; NaN for a capability that is not in the table. */
static double flops_per_clock(const struct device *d)
{
    double capability = 10 * ask(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                        ask(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    for (size_t i = 0; i < ARRAY_LEN(rates); i++)
        if (rates[i].capability == capability)
            return rates[i].flops[d->w->dtype];
    return NAN;
}

/* The driver gives the highest clocks, in kHz, or 0 if it does not tell.  Memory transfers its
 * bus's width twice a clock. */
void cuda_limits(struct device *d, struct limits *out)
{
    double clock = 1e3 * ask(d, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    double memory_clock = 1e3 * ask(d, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    double bus_bytes = ask(d, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
    double flops = d->units * clock * flops_per_clock(d), bytes = 2 * memory_clock * bus_bytes;
    *out = (struct limits){.flops_per_s = flops > 0 ? flops : NAN,
                           .bytes_per_s = bytes > 0 ? bytes : NAN};
}
