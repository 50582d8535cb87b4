#include "bench/worker/cuda_driver_int.h"
#include "bench/worker/cuda_probe_int.h"
#include "bench/worker/nvml_int.h"

#include <stdio.h>
#include <stdlib.h>

static int attribute(const struct cuda_driver *cu, int device, int which)
{
    int value = 0;
    cu->cuDeviceGetAttribute(&value, which, device);
    return value;
}

static int find_device(const struct cuda_driver *cu, int index, int *device, struct status *st)
{
    int count = 0;
    if (cuda_check(cu, cu->cuDeviceGetCount(&count), STATUS_ENVIRONMENT, "cannot count GPUs", st) !=
        0)
        return -1;
    if (index >= count)
        return status_set(st, STATUS_USAGE, "there is no GPU %d; %d found, numbered from 0", index,
                          count);
    return cuda_check(cu, cu->cuDeviceGet(device, index), STATUS_ENVIRONMENT, "cannot open the GPU",
                      st);
}

static int report(int index, json_t *out, struct status *st)
{
    const struct cuda_driver *cu;
    char name[128] = "", uuid[64];
    size_t memory = 0;
    int device = 0, cuda = 0;
    if (cuda_driver_open(&cu, st) != 0 || find_device(cu, index, &device, st) != 0)
        return -1;
    cu->cuDeviceGetName(name, sizeof(name), device);
    cu->cuDeviceTotalMem(&memory, device);
    cu->cuDriverGetVersion(&cuda);
    cuda_uuid(cu, device, uuid);
    json_object_set_new(out, "name", json_string(name));
    json_object_set_new(out, "uuid", json_string(uuid));
    json_object_set_new(
        out, "major",
        json_integer(attribute(cu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)));
    json_object_set_new(
        out, "minor",
        json_integer(attribute(cu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)));
    json_object_set_new(
        out, "units",
        json_integer(attribute(cu, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));
    json_object_set_new(out, "memory", json_integer((json_int_t)memory));
    json_object_set_new(out, "cuda", json_integer(cuda));
    nvml_report(uuid, out);
    return 0;
}

int cuda_probe(int index)
{
    struct status st = STATUS_INIT;
    json_t *out = json_object();
    if (report(index, out, &st) != 0)
        json_object_set_new(out, "problem", json_string(st.message));
    json_dumpf(out, stdout, JSON_COMPACT);
    puts("");
    json_decref(out);
    return EXIT_SUCCESS;
}
