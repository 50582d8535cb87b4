#include "bench/bench_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WHAT_TO_INSTALL                                                                            \
    "install NVIDIA's CUDA toolkit (12 or 13) and put nvcc on PATH, or name its directory with "   \
    "CUDA_HOME"

enum {
    PROBE_LIMIT_S = 60 /* a driver that starts cold takes seconds */
};

/* One kernel that uses what every emitted one uses: it shows that the compiler knows the GPU. */
static const char probe_source[] =
    "extern \"C\" __global__ void fuseplan_probe(float *x) { x[threadIdx.x] *= 2; }\n";

/* ---- the device, asked for in a process of its own ------------------------------------------- */

/* A GPU as the worker's probe describes it. */
struct gpu {
    char name[128], uuid[64], driver[64];
    int arch;  /* 90 for sm_90 */
    int units; /* multiprocessors */
    int cuda;  /* the version that its driver supports: 13000 for 13.0 */
    int mhz, max_mhz, processes;
    char throttled[128];
};

/* Runs the worker's program and reads the one JSON object that it prints. */
static int ask_worker(const char *worker, const char *question, const char *argument, json_t **out,
                      struct status *st)
{
    const char *const argv[] = {worker, question, argument, NULL};
    const struct process_spec spec = {
        .path = worker, .argv = argv, .fds = {-1, -1}, .limit_s = PROBE_LIMIT_S};
    struct process p;
    *out = NULL;
    if (process_run(&spec, NULL, &p, st) != 0)
        return -1;
    struct buf end;
    buf_init(&end);
    process_describe_end(p.wait_status, &end);
    if (p.overdue)
        status_set(st, STATUS_ENVIRONMENT, "it was stopped after %d s", PROBE_LIMIT_S);
    else if (p.wait_status != 0)
        status_set(st, STATUS_ENVIRONMENT, "it ended with %s", end.ptr);
    else if ((*out = json_loads(p.said.ptr, JSON_DISABLE_EOF_CHECK, NULL)) == NULL)
        status_set(st, STATUS_ENVIRONMENT, "it said '%.*s'", (int)strcspn(p.said.ptr, "\n"),
                   p.said.ptr);
    buf_release(&end);
    process_release(&p);
    return *out != NULL ? 0 : -1;
}

static int read_gpu(json_t *said, struct gpu *out, struct status *st)
{
    const char *problem = json_string_value(json_object_get(said, "problem"));
    const char *name, *uuid, *driver = NULL, *throttled = "";
    int major, minor;
    json_error_t error;
    *out = (struct gpu){.processes = 0};
    if (problem != NULL)
        return status_set(st, STATUS_ENVIRONMENT, "%s", problem);
    if (json_unpack_ex(said, &error, 0, "{s:s, s:s, s:i, s:i, s:i, s:i, s?s, s?s, s?i, s?i, s?i}",
                       "name", &name, "uuid", &uuid, "major", &major, "minor", &minor, "units",
                       &out->units, "cuda", &out->cuda, "driver", &driver, "throttled", &throttled,
                       "mhz", &out->mhz, "max_mhz", &out->max_mhz, "processes",
                       &out->processes) != 0)
        return status_set(st, STATUS_ENVIRONMENT, "the GPU's description is malformed: %s",
                          error.text);
    snprintf(out->name, sizeof(out->name), "%s", name);
    snprintf(out->uuid, sizeof(out->uuid), "%s", uuid);
    snprintf(out->throttled, sizeof(out->throttled), "%s", throttled);
    if (driver != NULL)
        snprintf(out->driver, sizeof(out->driver), "%s", driver);
    else
        snprintf(out->driver, sizeof(out->driver), "CUDA %d.%d", out->cuda / 1000,
                 out->cuda % 1000 / 10);
    out->arch = major * 10 + minor;
    return 0;
}

/* worker: its program, or null for the one that belongs to this program. */
static int find_gpu(int device, const char *worker, struct gpu *out, struct status *st)
{
    char index[16];
    json_t *said = NULL;
    struct buf path;
    buf_init(&path);
    snprintf(index, sizeof(index), "%d", device);
    int result = worker_find(worker, &path, st);
    if (result == 0) {
        result = ask_worker(path.ptr, "--cuda-probe", index, &said, st);
        if (result != 0)
            status_prefix(st, "the worker's program cannot tell about the GPU");
    }
    if (result == 0)
        result = read_gpu(said, out, st);
    json_decref(said);
    buf_release(&path);
    return result;
}

static void describe_gpu(const struct gpu *gpu, struct fingerprint *out)
{
    *out = (struct fingerprint){.units = gpu->units, .protocol = PROTOCOL_VERSION};
    snprintf(out->device, sizeof(out->device), "%s", gpu->name);
    snprintf(out->uuid, sizeof(out->uuid), "%s", gpu->uuid);
    snprintf(out->driver, sizeof(out->driver), "%s", gpu->driver);
    snprintf(out->capability, sizeof(out->capability), "sm_%d", gpu->arch);
}

/* ---- the compiler ---------------------------------------------------------------------------- */

static bool find_nvcc(struct buf *path)
{
    const char *const roots[] = {getenv("CUDA_HOME"), "/usr/local/cuda"};
    if (process_find("nvcc", path))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        struct buf name;
        buf_init(&name);
        buf_addf(&name, "%s/bin/nvcc", roots[i] != NULL ? roots[i] : "");
        bool found = process_find(name.ptr, path);
        buf_release(&name);
        if (found)
            return true;
    }
    return false;
}

struct release { /* of a toolkit */
    int major, minor;
};

/* What changes when another compiler of the same release takes its place. */
static void add_file(const char *path, struct buf *identity)
{
    struct stat info = {0};
    stat(path, &info);
    buf_addf(identity, "%s %lld %lld\n", path, (long long)info.st_size, (long long)info.st_mtime);
}

/* "Cuda compilation tools, release 13.0, V13.0.88" */
static bool read_release(const char *said, struct release *out)
{
    static const char marker[] = "release ";
    const char *at = strstr(said, marker);
    char *end;
    if (at == NULL)
        return false;
    out->major = (int)strtol(at + sizeof(marker) - 1, &end, 10);
    if (*end != '.')
        return false;
    out->minor = (int)strtol(end + 1, NULL, 10);
    return out->major > 0;
}

static int use_nvcc(const char *worker, struct toolchain *out, struct release *release,
                    struct buf *identity, struct status *st)
{
    (void)worker;
    struct buf path;
    buf_init(&path);
    bool found = find_nvcc(&path);
    free(out->path);
    out->path = buf_detach(&path);
    if (!found)
        return status_set(st, STATUS_ENVIRONMENT, "no nvcc found; %s", WHAT_TO_INSTALL);
    const char *const argv[] = {out->path, "--version", NULL};
    const struct process_spec spec = {
        .path = out->path, .argv = argv, .fds = {-1, -1}, .limit_s = PROBE_LIMIT_S};
    struct process p;
    if (process_run(&spec, NULL, &p, st) != 0)
        return -1;
    int result = 0;
    if (!read_release(p.said.ptr, release))
        result = status_set(st, STATUS_ENVIRONMENT,
                            "'%s --version' does not say which release it is; %s", out->path,
                            WHAT_TO_INSTALL);
    snprintf(out->version, sizeof(out->version), "nvcc %d.%d", release->major, release->minor);
    add_file(out->path, identity);
    buf_adds(identity, p.said.ptr);
    out->flags = mem_strdup("-cubin " CUDA_FLAGS " " PTXAS_FLAGS);
    process_release(&p);
    return result;
}

/* The worker's program compiles with the library, so that it can be stopped. */
static int use_nvrtc(const char *worker, struct toolchain *out, struct release *release,
                     struct buf *identity, struct status *st)
{
    json_t *said;
    const char *library;
    struct status why = STATUS_INIT;
    struct buf flags;
    buf_init(&flags);
    free(out->path);
    out->path = mem_strdup(worker);
    int result = ask_worker(worker, "--nvrtc-version", NULL, &said, &why);
    if (result != 0 || json_unpack(said, "{s:s, s:i, s:i}", "library", &library, "major",
                                   &release->major, "minor", &release->minor) != 0) {
        result = status_set(st, STATUS_ENVIRONMENT, "no NVRTC library (libnvrtc.so) found; %s",
                            WHAT_TO_INSTALL);
    } else {
        buf_addf(&flags, "--nvrtc %s %s", library, CUDA_FLAGS " " PTXAS_FLAGS);
        add_file(library, identity);
        snprintf(out->version, sizeof(out->version), "nvrtc %d.%d", release->major, release->minor);
    }
    out->flags = buf_detach(&flags);
    json_decref(said);
    return result;
}

/* The fastest first: it is taken unless another is named. */
static const struct {
    const char *name;
    int (*use)(const char *worker, struct toolchain *out, struct release *release,
               struct buf *identity, struct status *st);
} compilers[] = {{"nvrtc", use_nvrtc}, {"nvcc", use_nvcc}};

static int choose_compiler(const char *option, const char *worker, struct toolchain *out,
                           struct release *release, struct buf *identity, struct status *st)
{
    bool any = option == NULL || strcmp(option, "auto") == 0;
    struct status why = STATUS_INIT;
    for (size_t i = 0; i < ARRAY_LEN(compilers); i++) {
        if (!any && strcmp(option, compilers[i].name) != 0)
            continue;
        why = STATUS_INIT;
        buf_reset(identity);
        if (compilers[i].use(worker, out, release, identity, &why) == 0)
            return 0;
        free(out->flags);
        out->flags = NULL;
        if (!any)
            return status_set(st, why.code, "%s", why.message);
    }
    if (any)
        return status_set(st, STATUS_ENVIRONMENT,
                          "no CUDA compiler found, neither NVRTC nor nvcc; " WHAT_TO_INSTALL);
    return status_set(st, STATUS_USAGE,
                      "the cuda target has no compiler '%s'; expected auto, nvcc or nvrtc", option);
}

/* What the worker can run products with; none is no failure. */
static void find_library(const char *worker, struct toolchain *out)
{
    json_t *said;
    int version;
    struct status ignored = STATUS_INIT;
    if (ask_worker(worker, "--cublas-version", NULL, &said, &ignored) == 0 &&
        json_unpack(said, "{s:i}", "version", &version) == 0)
        snprintf(out->libraries, sizeof(out->libraries), "cuBLASLt %d.%d.%d", version / 10000,
                 version / 100 % 100, version % 100);
    json_decref(said);
}

static int check_versions(const struct gpu *gpu, const struct toolchain *tc,
                          const struct release *release, struct status *st)
{
    int major = gpu->cuda / 1000, minor = gpu->cuda % 1000 / 10;
    if (release->major > major)
        return status_set(st, STATUS_ENVIRONMENT,
                          "driver %s supports CUDA %d.%d and the compiler is %s; install a driver "
                          "for CUDA %d.0 or later, or a toolkit of release %d",
                          gpu->driver, major, minor, tc->version, release->major, major);
    return 0;
}

static int check_gpu(const struct gpu *gpu, struct status *st)
{
    if (gpu->arch < CUDA_ARCH_MIN)
        return status_set(st, STATUS_ENVIRONMENT,
                          "%s is of compute capability %d.%d; the cuda target needs 8.0 (Ampere) "
                          "or later; use --target cpu",
                          gpu->name, gpu->arch / 10, gpu->arch % 10);
    return 0;
}

/* From here on the GPU counts as what code is compiled for: so its measurements stay apart. */
static int set_arch(struct gpu *gpu, int arch, struct status *st)
{
    if (arch == 0)
        return 0;
    struct buf name, own;
    buf_init(&name);
    buf_init(&own);
    arch_name(arch, &name);
    arch_name(gpu->arch, &own);
    int result = 0;
    if (arch_runs(arch, gpu->arch))
        gpu->arch = arch;
    else
        result = status_set(st, STATUS_USAGE, "%s does not run code for %s; its own is %s",
                            gpu->name, name.ptr, own.ptr);
    buf_release(&own);
    buf_release(&name);
    return result;
}

/* Compiles the probe, so that a toolkit which does not know the GPU or lacks a part of its own is
 * found out before the first candidate. */
static int prove(const struct cache *c, const struct toolchain *tc, struct status *st)
{
    char key[HASH_TEXT_SIZE];
    struct buf text;
    struct status failed = STATUS_INIT;
    buf_init(&text);
    buf_addf(&text, "%s\n%s", tc->identity, probe_source);
    hash_text(text.ptr, text.len, key);
    buf_release(&text);
    if (cache_get(c, CACHE_BINARY, key, NULL, NULL) ||
        compile_source(tc, c, probe_source, NULL, key, PROBE_LIMIT_S, NULL, &failed) == 0)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT, "%s builds no code for %s (%s, %s): %s; %s",
                      tc->version, tc->where.device, tc->where.capability, tc->flags,
                      failed.message, WHAT_TO_INSTALL);
}

static int toolchain(const struct toolchain_request *request, const struct cache *c,
                     struct toolchain *out, struct status *st)
{
    *out = (struct toolchain){.libs = "",
                              .probe = probe_source,
                              .source_suffix = ".cu",
                              .binary_suffix = ".cubin",
                              .read_log = ptxas_read};
    struct gpu gpu;
    struct release release = {0, 0};
    struct buf identity, flags;
    buf_init(&identity);
    buf_init(&flags);
    int result = -1;
    if (find_gpu(request->device, request->worker, &gpu, st) != 0 || check_gpu(&gpu, st) != 0 ||
        set_arch(&gpu, request->arch, st) != 0 ||
        choose_compiler(request->compiler, request->worker, out, &release, &identity, st) != 0 ||
        check_versions(&gpu, out, &release, st) != 0)
        goto out;
    describe_gpu(&gpu, &out->where);
    find_library(request->worker, out);
    buf_addf(&flags, "%s ", out->flags);
    build_options(&(struct build_target){.kind = TARGET_CUDA, .arch = gpu.arch}, &flags);
    free(out->flags);
    out->flags = buf_detach(&flags);
    buf_adds(&identity, out->flags);
    hash_text(identity.ptr, identity.len, out->identity);
    result = prove(c, out, st);
out:
    buf_release(&flags);
    buf_release(&identity);
    if (result != 0)
        toolchain_release(out);
    return result;
}

/* ---- the rest of the table ------------------------------------------------------------------- */

static void fingerprint(int device, const struct toolchain *tc, struct fingerprint *out)
{
    struct gpu gpu;
    struct status ignored = STATUS_INIT;
    *out = tc->where;
    if (tc->where.device[0] == '\0' && find_gpu(device, NULL, &gpu, &ignored) == 0)
        describe_gpu(&gpu, out);
    snprintf(out->compiler, sizeof(out->compiler), "%s", tc->version);
    snprintf(out->libraries, sizeof(out->libraries), "%s", tc->libraries);
}

/* The oracle's threads are the worker's only ones. */
static char **worker_env(void)
{
    return target_cpu.worker_env();
}

static void checks(const struct toolchain *tc, const struct status *problem, struct env_list *out)
{
    struct gpu gpu;
    struct status st = STATUS_INIT;
    if (find_gpu(0, NULL, &gpu, &st) != 0) {
        env_add(out, "GPU", false, ENV_MISSING, "", "%s", st.message);
        return;
    }
    env_add(out, "GPU", false, ENV_OK, "", "%s, sm_%d, %d multiprocessors, driver %s", gpu.name,
            gpu.arch, gpu.units, gpu.driver);
    if (gpu.max_mhz > 0)
        env_add(out, "GPU clock", false, gpu.throttled[0] == '\0' ? ENV_OK : ENV_WARNING,
                gpu.throttled[0] == '\0' ? "" : "times are longer while the GPU slows itself down",
                "%d of at most %d MHz%s%s", gpu.mhz, gpu.max_mhz,
                gpu.throttled[0] != '\0' ? ", slowed by: " : "", gpu.throttled);
    env_add(out, "GPU load", false, gpu.processes == 0 ? ENV_OK : ENV_WARNING,
            gpu.processes == 0
                ? ""
                : "other programs use this GPU: their share shows in the times; nvidia-smi "
                  "names them",
            "%d processes", gpu.processes);
    if (tc == NULL) {
        env_add(out, "CUDA compiler", false, ENV_MISSING, "", "%s", problem->message);
        return;
    }
    env_add(out, "CUDA compiler", false, ENV_OK, "", "%s", tc->version);
    if (tc->libraries[0] != '\0')
        env_add(out, "CUDA library", false, ENV_OK, "", "%s", tc->libraries);
    else
        env_add(out, "CUDA library", false, ENV_MISSING,
                "GEMMs can be fuseplan's own kernels only; install cuBLAS of the CUDA toolkit",
                "no cuBLASLt (libcublasLt.so)");
}

const struct target_ops target_cuda = {
    .toolchain = toolchain,
    .fingerprint = fingerprint,
    .worker_env = worker_env,
    .checks = checks,
};
