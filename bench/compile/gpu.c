#include "bench/compile/compile.h"

#include <glob.h>

enum { MAJOR_END = 1000 }; /* of a compute capability; an sm_1000 is far away */

/* ---- asking ---------------------------------------------------------------------------------- */

void gpu_set_arch(struct gpu *gpu, int arch)
{
    gpu->arch = arch;
    snprintf(gpu->where.capability, sizeof(gpu->where.capability), "sm_%d", arch);
}

static int read_gpu(json_t *said, struct gpu *out, struct status *st)
{
    const char *problem = json_string_value(json_object_get(said, "problem"));
    const char *name, *uuid, *driver = NULL, *throttled = "";
    int major, minor;
    json_error_t error;
    struct fingerprint *where = &out->where;
    *out = (struct gpu){.processes = -1};
    if (problem != NULL)
        return status_set(st, STATUS_ENVIRONMENT, "%s", problem);
    if (json_unpack_ex(said, &error, 0, "{s:s, s:s, s:i, s:i, s:i, s:i, s?s, s?s, s?i, s?i, s?i}",
                       "name", &name, "uuid", &uuid, "major", &major, "minor", &minor, "units",
                       &where->units, "cuda", &out->cuda, "driver", &driver, "throttled",
                       &throttled, "mhz", &out->mhz, "max_mhz", &out->max_mhz, "processes",
                       &out->processes) != 0)
        return status_set(st, STATUS_ENVIRONMENT, "the GPU's description is malformed: %s",
                          error.text);
    if (major < 0 || major >= MAJOR_END || minor < 0 || minor > 9 || where->units < 0)
        return status_set(st, STATUS_ENVIRONMENT,
                          "the GPU's description is malformed: architecture %d.%d, %d units", major,
                          minor, where->units);
    snprintf(where->device, sizeof(where->device), "%s", name);
    snprintf(where->uuid, sizeof(where->uuid), "%s", uuid);
    snprintf(out->throttled, sizeof(out->throttled), "%s", throttled);
    if (driver != NULL)
        snprintf(where->driver, sizeof(where->driver), "%s", driver);
    else
        snprintf(where->driver, sizeof(where->driver), "CUDA %d.%d", out->cuda / 1000,
                 out->cuda % 1000 / 10);
    gpu_set_arch(out, major * 10 + minor);
    return 0;
}

/* *said: the whole answer, null where there is none; the caller owns it. */
static int ask(const struct toolchain_request *request, json_t **said, struct gpu *out,
               struct status *st)
{
    char index[16];
    SCOPED_BUF path = BUF_INIT;
    snprintf(index, sizeof(index), "%d", request->device);
    *said = NULL;
    if (worker_find(request->worker, &path, st) != 0)
        return -1;
    const struct toolchain_request from = {.worker = path.ptr, .stop = request->stop};
    if (worker_ask(&from, "--cuda-probe", index, false, said, st) == 0)
        return read_gpu(*said, out, st);
    if (st->code == STATUS_NOT_FOUND)
        st->code = STATUS_ENVIRONMENT; /* there is no GPU without a description */
    return status_prefix(st, "the worker's program cannot describe the GPU");
}

int gpu_find(const struct toolchain_request *request, struct gpu *out, struct status *st)
{
    json_auto_t *said = NULL;
    return ask(request, &said, out, st);
}

/* ---- remembering ----------------------------------------------------------------------------- */

static bool add_file(const char *proc, const char *name, struct buf *out)
{
    SCOPED char *path = buf_text("%s/%s", proc, name);
    return file_read(path, 0, out, STATUS_IGNORED) == 0;
}

/* Adds the devices on their bus, the instances (MIG) that each is divided into, and the nodes of
 * the devices that a container gives to its processes, in order. */
static void add_devices(const char *proc, struct buf *out)
{
    static const char *const patterns[] = {"driver/nvidia/gpus/*",
                                           "driver/nvidia/capabilities/gpu*/mig/gi*/ci*",
                                           "../dev/nvidia*", "../dev/nvidia-caps/*"};
    for (size_t p = 0; p < ARRAY_LEN(patterns); p++) {
        SCOPED char *pattern = buf_text("%s/%s", proc, patterns[p]);
        glob_t found = {.gl_pathc = 0};
        if (glob(pattern, 0, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc; i++)
                buf_addf(out, "%s\n", found.gl_pathv[i]);
        globfree(&found);
    }
}

/* Hashes all that an answer depends on; false where the system does not say all of it. */
static bool hash_origin(int device, const char *proc, char key[HASH_TEXT_SIZE])
{
    static const char *const variables[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"};
    SCOPED_BUF text = BUF_INIT;
    bool known = add_file(proc, "sys/kernel/random/boot_id", &text) &&
                 add_file(proc, "driver/nvidia/version", &text);
    add_devices(proc, &text);
    /* A job's group may be allowed one device of several, which is number 0 in each job. */
    add_file(proc, "self/cgroup", &text);
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL) /* an empty variable hides all devices, unlike an unset one */
            buf_addf(&text, "%s=%s\n", variables[i], value);
    }
    buf_addf(&text, "device=%d\n", device);
    hash_text(text.ptr, text.len, key);
    return known;
}

static bool recall(const struct cache *c, const char *key, struct gpu *out)
{
    SCOPED_BUF text = BUF_INIT;
    json_auto_t *said = NULL;
    return cache_get(c, CACHE_DEVICE, key, &text, NULL) &&
           (said = json_loads(text.ptr, 0, NULL)) != NULL &&
           read_gpu(said, out, STATUS_IGNORED) == 0;
}

int gpu_recall(const struct toolchain_request *request, const struct cache *c, const char *proc,
               struct gpu *out, struct status *st)
{
    char key[HASH_TEXT_SIZE];
    bool known = hash_origin(request->device, proc, key);
    if (known && recall(c, key, out))
        return 0;
    json_auto_t *said = NULL;
    int result = ask(request, &said, out, st);
    if (result == 0 && known) {
        SCOPED char *text = json_dumps(said, JSON_COMPACT);
        cache_put(c, CACHE_DEVICE, key, text, strlen(text), STATUS_IGNORED); /* else asked again */
    }
    return result;
}
