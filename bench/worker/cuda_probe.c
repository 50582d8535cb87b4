#include "bench/worker/cuda_driver_int.h"
#include "bench/worker/nvidia_int.h"

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

json_t *cuda_probe(int index)
{
    struct status st = STATUS_INIT;
    const struct cuda_driver *cu;
    char name[128] = "", uuid[64];
    int device = 0, cuda = 0;
    if (cuda_driver_open(&cu, &st) != 0 || find_device(cu, index, &device, &st) != 0)
        return json_pack("{s:s}", "problem", st.message);
    cu->cuDeviceGetName(name, sizeof(name), device);
    cu->cuDriverGetVersion(&cuda);
    cuda_uuid(cu, device, uuid);
    json_t *out =
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:i}", "name", utf8_mend(name), "uuid", uuid, "major",
                  attribute(cu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), "minor",
                  attribute(cu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), "units",
                  attribute(cu, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), "cuda", cuda);
    nvml_report(uuid, out);
    return out;
}
