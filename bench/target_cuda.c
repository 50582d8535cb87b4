#include "bench/bench_int.h"

#include <limits.h>

/* ---- the toolchain --------------------------------------------------------------------------- */

#define LIBRARY_QUESTION "--cublas-version"

/* Finds the library with which the worker can run GEMMs.  It is no failure if there is none. */
static int find_library(const struct toolchain_request *request, struct process *asked,
                        struct toolchain *out, struct status *st)
{
    json_auto_t *said = NULL;
    int version;
    struct status why = STATUS_INIT;
    if (worker_answer(request, LIBRARY_QUESTION, asked, &said, &why) == 0 &&
        json_unpack(said, "{s:i}", "version", &version) == 0)
        snprintf(out->where.libraries, sizeof(out->where.libraries), "cuBLASLt %d.%d.%d",
                 version / 10000, version / 100 % 100, version % 100);
    if (why.code == STATUS_OK || why.code == STATUS_NOT_FOUND)
        return 0;
    return status_set(st, why.code, "asking for cuBLASLt: %s", why.message);
}

/* The GPU is described as one of the architecture that code is compiled for, so that measurements
 * of other architectures' code stay apart. */
static int set_arch(struct gpu *gpu, int arch, struct status *st)
{
    if (arch == 0)
        return 0;
    if (arch_runs(arch, gpu->arch)) {
        gpu_set_arch(gpu, arch);
        return 0;
    }
    SCOPED_BUF names = BUF_INIT;
    arch_name(arch, &names);
    buf_adds(&names, "; its own is ");
    arch_name(gpu->arch, &names);
    return status_set(st, STATUS_USAGE, "%s does not run code for %s", gpu->where.device,
                      names.ptr);
}

/* Stands for every GPU of an architecture. */
static void any_gpu(int arch, struct gpu *out)
{
    *out = (struct gpu){.cuda = INT_MAX};
    gpu_set_arch(out, arch);
    snprintf(out->where.device, sizeof(out->where.device), "any GPU");
}

static int find_compiler(const struct toolchain_request *request, const struct cache *c,
                         struct toolchain *out, struct status *st)
{
    struct gpu gpu;
    if (request->no_device)
        any_gpu(request->arch, &gpu);
    else if (gpu_recall(request, c, "/proc", &gpu, st) != 0)
        return -1;
    if (gpu.arch < CUDA_ARCH_MIN)
        return status_set(st, STATUS_ENVIRONMENT,
                          "%s is of compute capability %d.%d; the cuda target needs 8.0 (Ampere) "
                          "or later; use --target cpu",
                          gpu.where.device, gpu.arch / 10, gpu.arch % 10);
    if (set_arch(&gpu, request->arch, st) != 0)
        return -1;
    return cuda_compiler_find(request, &gpu, c, out, st);
}

/* The library, of 0.5 GB, is loaded while the driver starts and the compiler is proved. */
static int toolchain(const struct toolchain_request *request, const struct cache *c,
                     struct toolchain *out, struct status *st)
{
    SCOPED_BY(process_release) struct process asked;
    *out = (struct toolchain){0};
    worker_ask_early(request, LIBRARY_QUESTION, &asked);
    return find_compiler(request, c, out, st) != 0 ? -1 : find_library(request, &asked, out, st);
}

/* ---- fingerprint and checks ------------------------------------------------------------------ */

static void fingerprint(int device, struct fingerprint *out)
{
    struct gpu gpu;
    struct cache cache;
    if (out->device[0] == '\0' && cache_open(NULL, &cache, STATUS_IGNORED) == 0) {
        const struct toolchain_request request = {.device = device};
        if (gpu_recall(&request, &cache, "/proc", &gpu, STATUS_IGNORED) == 0)
            *out = gpu.where;
        cache_release(&cache);
    }
    if (out->device[0] != '\0')
        snprintf(out->protocol, sizeof(out->protocol), "%s", PROTOCOL_VERSION);
}

/* Generated programs and exported libraries are built with nvcc, also where NVRTC serves a search.
 */
static void check_nvcc(bool wanted, struct env_list *out)
{
    struct status st = STATUS_INIT;
    SCOPED_BUF path = BUF_INIT;
    const char *why;
    if (nvcc_find(&path, &why, &st) == 0)
        env_add(out, "nvcc", false, ENV_OK, "", "%s (%s)", path.ptr, why);
    else if (wanted)
        env_add(out, "nvcc", false, ENV_WARNING,
                "exported CUDA libraries can be written here but not built", "%s", st.message);
}

static void checks(const struct toolchain *tc, const struct status *problem, struct env_list *out)
{
    struct gpu gpu;
    struct status st = STATUS_INIT;
    bool found = gpu_find(&(struct toolchain_request){.device = 0}, &gpu, &st) == 0;
    check_nvcc(found, out);
    if (!found) {
        env_add(out, "GPU", false, ENV_MISSING, "", "%s", st.message);
        return;
    }
    env_add(out, "GPU", false, ENV_OK, "", "%s, sm_%d, %d multiprocessors, driver %s",
            gpu.where.device, gpu.arch, gpu.where.units, gpu.where.driver);
    if (gpu.max_mhz > 0)
        env_add(out, "GPU clock", false, gpu.throttled[0] == '\0' ? ENV_OK : ENV_WARNING,
                "times are longer while the GPU slows itself down", "%d of at most %d MHz%s%s",
                gpu.mhz, gpu.max_mhz, gpu.throttled[0] != '\0' ? ", slowed by: " : "",
                gpu.throttled);
    if (gpu.processes >= 0)
        env_add(out, "GPU load", false, gpu.processes == 0 ? ENV_OK : ENV_WARNING,
                "other processes use this GPU, which may show in the times; nvidia-smi names them",
                "%d process%s", gpu.processes, gpu.processes == 1 ? "" : "es");
    if (tc == NULL) {
        env_add(out, "CUDA compiler", false, ENV_MISSING, "", "%s", problem->message);
        return;
    }
    env_add(out, "CUDA compiler", false, tc->passed_over.code == STATUS_OK ? ENV_OK : ENV_WARNING,
            tc->passed_over.message, "%s", tc->where.compiler);
    bool library = tc->where.libraries[0] != '\0';
    env_add(out, "CUDA library", false, library ? ENV_OK : ENV_MISSING,
            "GEMMs can be fuseplan's own kernels only; install cuBLAS of the CUDA toolkit", "%s",
            library ? tc->where.libraries : "no cuBLASLt (libcublasLt.so)");
}

const struct target_ops target_cuda = {
    .toolchain = toolchain,
    .fingerprint = fingerprint,
    .checks = checks,
    .builds_beside = true,
};
