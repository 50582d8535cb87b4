/* The fake driver's modules and functions: a "cubin" is the text of a kernel, see kernels.h. */
#include "base/base.h"
#include "bench/worker/cuda_driver_int.h"
#include "tests/bench/fake/cuda_int.h"

enum { INVALID_IMAGE = 200, NOT_FOUND = 500 };

static bool hash_is(const char *what)
{
    const char *given = getenv("FAKE_HASH");
    return given != NULL && strcmp(given, what) == 0;
}

/* As the PTX text of bench/worker/device_cuda_hash.c says. */
void fake_hash(void **params)
{
    const uint64_t *words = *(const uint64_t **)params[0], count = *(const uint64_t *)params[1];
    uint64_t *sum = *(uint64_t **)params[2];
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = words[i] + i * 0x9e3779b97f4a7c15;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
        word = (word ^ word >> 27) * 0x94d049bb133111eb;
        *sum += word ^ word >> 31;
    }
    *sum += hash_is("wrong");
    const char *counted = getenv("FAKE_HASHES");
    FILE *out = counted != NULL ? fopen(counted, "ae") : NULL;
    if (out != NULL && (fputc('.', out) == EOF || fclose(out) != 0))
        abort();
}

FAKE cuModuleLoadData(void **out, const void *image)
{
    struct fake_code *code = mem_alloc(1, sizeof(*code));
    if (strstr(image, ".entry fuseplan_hash(") != NULL && !hash_is("none")) {
        code->hashes = true;
        *out = code;
        return fake_sticky;
    }
    code->rested_runs = 12; /* more than it takes to verify a plan before it is timed */
    if (sscanf(image, "fake %15[a-z]%*1[ ]%d", code->kind, &code->rested_runs) < 1) {
        free(code);
        return INVALID_IMAGE;
    }
    code->stamped = strstr(image, "stamped") != NULL;
    if (strcmp(code->kind, "vast") == 0) {
        free(code);
        return OUT_OF_MEMORY;
    }
    *out = code;
    return fake_sticky;
}

FAKE cuModuleGetFunction(void **out, void *module, const char *name)
{
    static const char prefix[] = "segment_";
    struct fake_code *code = *out = module;
    if (code->hashes)
        return fake_sticky;
    code->first = -1; /* the name of a kernel that several segments share has no numbers */
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return NOT_FOUND;
    if (sscanf(name + sizeof(prefix) - 1, "%2d_%2d_", &code->first, &code->last) < 2)
        code->first = -1;
    code->stepped = strstr(name, "hopper") != NULL;
    return fake_sticky;
}

FAKE cuFuncGetAttribute(int *value, int attribute, void *function)
{
    *value = attribute == 4 ? 32 : 0; /* registers */
    return 0;
}

FAKE cuFuncSetAttribute(void *function, int attribute, int value)
{
    return value <= 227 << 10 ? 0 : 1;
}

FAKE cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                 size_t shared_bytes)
{
    *blocks = 2048 / threads;
    return 0;
}

FAKE cuOccupancyMaxActiveClusters(int *clusters, void *function,
                                  const struct cuda_launch_config *config)
{
    *clusters = 16 / (int)config->attributes[0].cluster[0];
    return 0;
}
