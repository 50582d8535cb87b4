/* A libnvidia-ml.so.1 beside cuda.c's GPU.  FAKE_NVML=hot|capped|crowded|foreign|mig makes it
 * slow itself down, hold its power cap, have two more processes, number processes as another
 * namespace does, or be a part of a GPU; with FAKE_NVML=none it does not start. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_FOUND = 6, CLOCK_SM = 1 };

static bool gpu_is(const char *what)
{
    const char *given = getenv("FAKE_NVML");
    return given != NULL && strcmp(given, what) == 0;
}

static int whole, part; /* their addresses are the handles */

#define FAKE __attribute__((visibility("default"))) int

/* Nothing calls these by name. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

FAKE nvmlInit_v2(void)
{
    return gpu_is("none");
}

FAKE nvmlShutdown(void)
{
    return 0;
}

FAKE nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    snprintf(out, size, "580.1");
    return 0;
}

FAKE nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    bool mig = gpu_is("mig");
    *out = mig ? &part : &whole;
    return strcmp(uuid, mig ? "MIG-00112233-4455-6677-8899-aabbccddeeff"
                            : "GPU-00112233-4455-6677-8899-aabbccddeeff") == 0
               ? 0
               : NOT_FOUND;
}

FAKE nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *d, void **out)
{
    *out = &whole;
    return d != &part;
}

FAKE nvmlDeviceGetClockInfo(const void *d, int clock, unsigned *mhz)
{
    *mhz = clock == CLOCK_SM ? 1410 : 1593;
    return d != &whole;
}

FAKE nvmlDeviceGetMaxClockInfo(const void *d, int clock, unsigned *mhz)
{
    *mhz = clock == CLOCK_SM ? 1980 : 1593;
    return d != &whole;
}

FAKE nvmlDeviceGetTemperature(const void *d, int sensor, unsigned *celsius)
{
    *celsius = 45;
    return d != &whole || sensor != 0;
}

FAKE nvmlDeviceGetPowerUsage(const void *d, unsigned *milliwatts)
{
    *milliwatts = 350500;
    return d != &whole;
}

FAKE nvmlDeviceGetEnforcedPowerLimit(const void *d, unsigned *milliwatts)
{
    *milliwatts = 700000;
    return d != &whole;
}

FAKE nvmlDeviceGetCurrentClocksThrottleReasons(const void *d, unsigned long long *bits)
{
    *bits = gpu_is("hot") ? 0x24 : gpu_is("capped") ? 0x04 : 0x01; /* 0x01: idle */
    return d != &whole;
}

struct process_info {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

FAKE nvmlDeviceGetComputeRunningProcesses_v3(const void *d, unsigned *count,
                                             struct process_info *out)
{
    unsigned own = (unsigned)getpid(), n = gpu_is("crowded") ? 3 : 1;
    if (*count < n || d != (gpu_is("mig") ? &part : &whole))
        return 1;
    *count = n;
    for (unsigned i = 0; i < n; i++)
        out[i] = (struct process_info){.pid = own + i + (gpu_is("foreign") ? 1 : 0)};
    return 0;
}
