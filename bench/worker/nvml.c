#include "bench/worker/nvidia_int.h"

#include <unistd.h>

/* The part of NVML that the worker uses, declared as in its header. */
struct nvmlDevice_st;
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_TEMPERATURE_GPU = 0 };

struct process_info { /* nvmlProcessInfo_t */
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
enum { PROCESSES_MAX = 256 };

/* name, symbol, parameters */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(shutdown, "nvmlShutdown", (void))                                                            \
    X(driver_version, "nvmlSystemGetDriverVersion", (char *out, unsigned size))                    \
    X(by_uuid, "nvmlDeviceGetHandleByUUID", (const char *uuid, struct nvmlDevice_st **out))        \
    X(whole_of_part, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",                               \
      (struct nvmlDevice_st * part, struct nvmlDevice_st * *out))                                  \
    X(clock, "nvmlDeviceGetClockInfo", (struct nvmlDevice_st * d, int clock, unsigned *mhz))       \
    X(max_clock, "nvmlDeviceGetMaxClockInfo",                                                      \
      (struct nvmlDevice_st * d, int clock, unsigned *mhz))                                        \
    X(temperature, "nvmlDeviceGetTemperature",                                                     \
      (struct nvmlDevice_st * d, int sensor, unsigned *celsius))                                   \
    X(power, "nvmlDeviceGetPowerUsage", (struct nvmlDevice_st * d, unsigned *milliwatts))          \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit",                                              \
      (struct nvmlDevice_st * d, unsigned *milliwatts))                                            \
    X(slowed_by, "nvmlDeviceGetCurrentClocksThrottleReasons",                                      \
      (struct nvmlDevice_st * d, unsigned long long *bits))                                        \
    X(processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                        \
      (struct nvmlDevice_st * d, unsigned *count, struct process_info *out))

struct nvml {
/* A declarator takes no parentheses: NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(name, symbol, parameters) int(*name) parameters;
    NVML_FUNCTIONS(X)
#undef X
    struct nvmlDevice_st *device; /* the whole GPU; null if it was not found */
    struct nvmlDevice_st *part;   /* what the worker uses of it: all, or a MIG device */
};

/* ---- open ------------------------------------------------------------------------------------ */

static bool load(struct nvml *n)
{
    const struct shared_symbol symbols[] = {
#define X(name, symbol, parameters) {symbol, (void **)&n->name},
        NVML_FUNCTIONS(X)
#undef X
    };
    return shared_open("libnvidia-ml.so.1", symbols, ARRAY_LEN(symbols), NULL);
}

/* A MIG device has a UUID of its own, "GPU-..." in the driver API and "MIG-..." in NVML. */
static void find(struct nvml *n, const char uuid[64])
{
    char name[64];
    snprintf(name, sizeof(name), "MIG%s", uuid + sizeof("GPU") - 1);
    if (n->by_uuid(uuid, &n->part) == 0)
        n->device = n->part;
    else if (n->by_uuid(name, &n->part) != 0 || n->whole_of_part(n->part, &n->device) != 0)
        n->device = NULL;
}

struct nvml *nvml_open(const char uuid[64])
{
    struct nvml *n = mem_alloc(1, sizeof(*n));
    if (!load(n) || n->init() != 0) {
        free(n);
        return NULL;
    }
    find(n, uuid);
    return n;
}

void nvml_close(struct nvml *n)
{
    if (n != NULL)
        n->shutdown();
    free(n);
}

/* ---- read ------------------------------------------------------------------------------------ */

/* A driver lists the processes of the caller's namespace by its numbers; an older driver lists all
 * by the host's.  This process has a CUDA context and so must be in the list: if it is not, the
 * numbers are another namespace's, and nothing is known (-1). */
static int other_processes(const struct nvml *n)
{
    struct process_info list[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX, own = (unsigned)getpid();
    int others = 0;
    bool listed = false;
    if (n->processes(n->part, &count, list) != 0)
        return -1;
    for (unsigned i = 0; i < count; i++) {
        listed |= list[i].pid == own;
        others += list[i].pid != own;
    }
    return listed ? others : -1;
}

void nvml_read(const struct nvml *n, struct conditions *out)
{
    unsigned sm = 0, max_sm = 0, memory = 0, celsius = 0, power = 0, limit = 0;
    unsigned long long slowed_by = 0;
    *out = (struct conditions){.known = false};
    if (n == NULL || n->device == NULL)
        return;
    n->clock(n->device, NVML_CLOCK_SM, &sm);
    n->max_clock(n->device, NVML_CLOCK_SM, &max_sm);
    n->clock(n->device, NVML_CLOCK_MEM, &memory);
    n->temperature(n->device, NVML_TEMPERATURE_GPU, &celsius);
    n->power(n->device, &power);
    n->power_limit(n->device, &limit);
    n->slowed_by(n->device, &slowed_by);
    *out = (struct conditions){.known = true,
                               .sm_mhz = (int)sm,
                               .max_sm_mhz = (int)max_sm,
                               .memory_mhz = (int)memory,
                               .temperature_c = (int)celsius,
                               .power_w = power * 1e-3,
                               .power_limit_w = limit * 1e-3,
                               .slowed_by = (unsigned)slowed_by,
                               .other_processes = other_processes(n),
                               .mig = n->part != n->device};
}

static void report_device(const struct nvml *n, json_t *out)
{
    struct process_info list[PROCESSES_MAX];
    unsigned processes = PROCESSES_MAX;
    struct conditions c;
    SCOPED_BUF slowed_by = BUF_INIT;
    nvml_read(n, &c);
    slowdown_text(c.slowed_by, &slowed_by);
    json_object_set_new(out, "throttled", json_string(slowed_by.ptr));
    if (c.max_sm_mhz > 0) {
        json_object_set_new(out, "mhz", json_integer(c.sm_mhz));
        json_object_set_new(out, "max_mhz", json_integer(c.max_sm_mhz));
    }
    if (n->processes(n->part, &processes, list) == 0)
        json_object_set_new(out, "processes", json_integer(processes));
}

void nvml_report(const char uuid[64], json_t *out)
{
    char version[64];
    struct nvml *n = nvml_open(uuid);
    if (n != NULL && n->driver_version(version, sizeof(version)) == 0)
        json_object_set_new(out, "driver", json_string(version));
    if (n != NULL && n->device != NULL)
        report_device(n, out);
    nvml_close(n);
}
