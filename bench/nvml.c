#include "bench/cuda_probe_int.h"

#include <dlfcn.h>
#include <string.h>

/* The part of NVML that is used, declared as its header does. */
struct nvmlDevice_st;
enum { NVML_CLOCK_SM = 1, NVML_ERROR_INSUFFICIENT_SIZE = 7 };

static const struct {
    unsigned long long bit; /* nvmlClocksThrottleReason* */
    const char *text;
} reasons[] = {
    {0x04, "power cap"},   {0x08, "hardware slowdown"},
    {0x20, "temperature"}, {0x40, "temperature (hardware)"},
    {0x80, "power brake"},
};

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*driver_version)(char *out, unsigned size);
    int (*by_uuid)(const char *uuid, struct nvmlDevice_st **out);
    int (*clock)(struct nvmlDevice_st *d, int clock, unsigned *mhz);
    int (*max_clock)(struct nvmlDevice_st *d, int clock, unsigned *mhz);
    int (*throttle_reasons)(struct nvmlDevice_st *d, unsigned long long *bits);
    int (*processes)(struct nvmlDevice_st *d, unsigned *count, void *infos);
};

static bool load(struct nvml *n)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return false;
    struct {
        const char *symbol;
        void **function;
    } const wanted[] = {
        {"nvmlInit_v2", (void **)&n->init},
        {"nvmlShutdown", (void **)&n->shutdown},
        {"nvmlSystemGetDriverVersion", (void **)&n->driver_version},
        {"nvmlDeviceGetHandleByUUID", (void **)&n->by_uuid},
        {"nvmlDeviceGetClockInfo", (void **)&n->clock},
        {"nvmlDeviceGetMaxClockInfo", (void **)&n->max_clock},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", (void **)&n->throttle_reasons},
        {"nvmlDeviceGetComputeRunningProcesses_v3", (void **)&n->processes},
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if ((*wanted[i].function = dlsym(library, wanted[i].symbol)) == NULL)
            return false;
    return true;
}

static void read_throttling(const struct nvml *n, struct nvmlDevice_st *d, json_t *out)
{
    unsigned long long bits = 0;
    struct buf text;
    buf_init(&text);
    if (n->throttle_reasons(d, &bits) == 0)
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
            if (bits & reasons[i].bit)
                buf_addf(&text, "%s%s", text.len > 0 ? ", " : "", reasons[i].text);
    json_object_set_new(out, "throttled", json_string(text.ptr));
    buf_release(&text);
}

void nvml_report(const char *uuid, json_t *out)
{
    struct nvml n;
    struct nvmlDevice_st *d;
    char version[64];
    unsigned mhz, max_mhz, processes = 0;
    if (!load(&n) || n.init() != 0)
        return;
    if (n.driver_version(version, sizeof(version)) == 0)
        json_object_set_new(out, "driver", json_string(version));
    if (n.by_uuid(uuid, &d) == 0) {
        if (n.clock(d, NVML_CLOCK_SM, &mhz) == 0 && n.max_clock(d, NVML_CLOCK_SM, &max_mhz) == 0) {
            json_object_set_new(out, "mhz", json_integer(mhz));
            json_object_set_new(out, "max_mhz", json_integer(max_mhz));
        }
        read_throttling(&n, d, out);
        int found = n.processes(d, &processes, NULL);
        if (found == 0 || found == NVML_ERROR_INSUFFICIENT_SIZE)
            json_object_set_new(out, "processes", json_integer(processes));
    }
    n.shutdown();
}
