/* Finds NVRTC or nvcc, checks it against driver and GPU, and proves it on a kernel. */
#include "bench/compile/compile.h"
#include "bench/wire/wire.h"

#define WHAT_TO_INSTALL NVCC_ADVICE

/* The smallest kernel.  That it compiles shows that the compiler is complete and knows the GPU. */
static const char probe_source[] =
    "extern \"C\" __global__ void fuseplan_probe(float *x) { x[threadIdx.x] *= 2; }\n";

/* ---- finding --------------------------------------------------------------------------------- */

/* A release as the driver numbers it: 12080 for 12.8. */
static int cuda_version(int major, int minor)
{
    return 1000 * major + 10 * minor;
}

int nvcc_find(struct buf *path, const char **why, struct status *st)
{
    const char *by, *root = toolkit_root(&by);
    *why = "on PATH";
    if (process_find("nvcc", path))
        return 0;
    SCOPED char *name = buf_text("%s/bin/nvcc", root);
    bool found = process_find(name, path);
    *why = by != NULL ? by : "the usual place";
    if (!found)
        status_set(st, STATUS_NOT_FOUND, "no nvcc found on PATH, nor '%s' (%s); %s", name, *why,
                   WHAT_TO_INSTALL);
    return found ? 0 : -1;
}

/* "Cuda compilation tools, release 13.0, V13.0.88" is 13000; 0 where there is no such text. */
static int read_release(const char *said)
{
    static const char marker[] = "release ";
    const char *at = strstr(said, marker);
    char *end;
    if (at == NULL)
        return 0;
    int major = (int)strtol(at + sizeof(marker) - 1, &end, 10);
    return *end == '.' ? cuda_version(major, (int)strtol(end + 1, NULL, 10)) : 0;
}

/* Finds a compiler: fills in path and flags of the toolchain and adds to its identity.  Returns the
 * release, 13000 for 13.0, or -1; *st is STATUS_NOT_FOUND where there is no such compiler. */
typedef int find_compiler(const struct toolchain_request *request, struct toolchain *out,
                          struct buf *identity, struct status *st);

static int find_nvcc(const struct toolchain_request *request, struct toolchain *out,
                     struct buf *identity, struct status *st)
{
    struct buf path = BUF_INIT;
    const char *why;
    int found = nvcc_find(&path, &why, st);
    out->path = buf_detach(&path);
    if (found != 0)
        return -1;
    SCOPED_BUF said = BUF_INIT;
    int release = compiler_version(out->path, NULL, WHAT_TO_INSTALL, request->stop, &said, st);
    if (release == 0 && (release = read_release(said.ptr)) == 0)
        release = status_set(st, STATUS_ENVIRONMENT,
                             "'%s --version' does not say which release it is; %s", out->path,
                             WHAT_TO_INSTALL);
    out->max_memory_bytes = COMPILER_MAX_BYTES;
    identity_add_file(out->path, identity);
    buf_adds(identity, said.ptr);
    arguments_add(&out->flags, "-cubin");
    return release;
}

/* The compiler is the worker's program, which calls the library: a program can be stopped. */
static int find_nvrtc(const struct toolchain_request *request, struct toolchain *out,
                      struct buf *identity, struct status *st)
{
    json_auto_t *said = NULL;
    const char *library;
    struct status why = STATUS_INIT;
    int major, minor;
    out->path = mem_strdup(request->worker);
#ifndef __SANITIZE_ADDRESS__ /* with it the worker's program maps more than any machine has */
    out->max_memory_bytes = COMPILER_MAX_BYTES;
#endif
    if (worker_ask(request, "--nvrtc-version", NULL, false, &said, &why) == 0 &&
        json_unpack(said, "{s:s, s:i, s:i}", "library", &library, "major", &major, "minor",
                    &minor) == 0) {
        arguments_add(&out->flags, "--nvrtc");
        arguments_add(&out->flags, library);
        identity_add_file(library, identity);
        return cuda_version(major, minor);
    }
    if (why.code != STATUS_OK && why.code != STATUS_NOT_FOUND)
        return status_set(st, why.code, "asking for NVRTC: %s", why.message);
    return status_set(st, STATUS_NOT_FOUND, "no NVRTC library (libnvrtc.so) found; %s",
                      WHAT_TO_INSTALL);
}

/* ---- checking -------------------------------------------------------------------------------- */

static int check_versions(const struct gpu *gpu, const struct toolchain *tc, int release,
                          struct status *st)
{
    int most = gpu->cuda / 1000, least = arch_toolkit(gpu->arch);
    if (release / 1000 > most)
        return status_set(st, STATUS_ENVIRONMENT,
                          "driver %s supports CUDA %d.%d and the compiler is %s; install a driver "
                          "for CUDA %d.0 or later, or a toolkit of release %d",
                          gpu->where.driver, most, gpu->cuda % 1000 / 10, tc->where.compiler,
                          release / 1000, most);
    if (release < least)
        return status_set(st, STATUS_ENVIRONMENT,
                          "%s (%s) needs a compiler of CUDA %d.%d or later and this one is %s; %s",
                          gpu->where.device, gpu->where.capability, least / 1000, least % 1000 / 10,
                          tc->where.compiler, WHAT_TO_INSTALL);
    return 0;
}

/* Finds a toolkit that does not know the GPU, or is incomplete, before the first candidate. */
static int prove(const struct cache *c, const struct toolchain *tc,
                 const struct toolchain_request *request, struct status *st)
{
    char key[HASH_TEXT_SIZE];
    SCOPED_BUF text = BUF_INIT;
    struct status failed = STATUS_INIT;
    if (compile_probe(tc, c, request, key, &failed) == 0)
        return 0;
    if (failed.code == STATUS_INTERRUPTED)
        return status_set(st, failed.code, "%s", failed.message);
    arguments_text(&tc->flags, &text);
    return status_set(st, STATUS_ENVIRONMENT, "%s builds no code for %s (%s, %s): %s; %s",
                      tc->where.compiler, tc->where.device, tc->where.capability, text.ptr,
                      failed.message, WHAT_TO_INSTALL);
}

/* Compilers give way to the threads of the worker and the driver; the probe, for which all else
 * waits, does not. */
enum { NICENESS = 10 };

/* The fastest compiler first: it is taken unless the user names another. */
static const struct compiler {
    const char *name;
    find_compiler *find;
} compilers[] = {{"nvrtc", find_nvrtc}, {"nvcc", find_nvcc}};

static int try(const struct compiler *compiler, const struct toolchain_request *request,
               const struct gpu *gpu, const struct cache *c, struct toolchain *out,
               struct status *st)
{
    SCOPED_BUF identity = BUF_INIT, flags = BUF_INIT;
    *out = (struct toolchain){.kind = TARGET_CUDA,
                              .probe = probe_source,
                              .source_suffix = ".cu",
                              .binary_suffix = ".cubin",
                              .logs = true};
    out->where = gpu->where;
    int release = compiler->find(request, out, &identity, st);
    if (release <= 0)
        return -1;
    snprintf(out->where.compiler, sizeof(out->where.compiler), "%s %d.%d", compiler->name,
             release / 1000, release % 1000 / 10);
    buf_adds(&flags, CUDA_FLAGS " " PTXAS_FLAGS " ");
    build_options(&(struct build_target){.kind = TARGET_CUDA, .arch = gpu->arch}, &flags);
    arguments_add_words(&out->flags, flags.ptr);
    arguments_text(&out->flags, &identity);
    hash_text(identity.ptr, identity.len, out->identity);
    if (check_versions(gpu, out, release, st) != 0 || prove(c, out, request, st) != 0)
        return -1;
    out->niceness = NICENESS;
    return 0;
}

int cuda_compiler_find(const struct toolchain_request *request, const struct gpu *gpu,
                       const struct cache *c, struct toolchain *out, struct status *st)
{
    const char *option = request->compiler;
    bool any = option == NULL || strcmp(option, "auto") == 0;
    struct status why = STATUS_INIT;
    for (size_t i = 0; i < ARRAY_LEN(compilers); i++) {
        if (!any && strcmp(option, compilers[i].name) != 0)
            continue;
        struct status failed = STATUS_INIT;
        if (try(&compilers[i], request, gpu, c, out, &failed) == 0) {
            if (why.code == STATUS_ENVIRONMENT)
                out->passed_over = why;
            return 0;
        }
        toolchain_release(out);
        if (failed.code == STATUS_INTERRUPTED)
            return status_set(st, failed.code, "%s", failed.message);
        /* Why an installed compiler does not serve says more than that another is missing. */
        if (why.code == STATUS_OK || why.code == STATUS_NOT_FOUND)
            why = failed;
    }
    if (why.code == STATUS_OK)
        return status_set(st, STATUS_USAGE,
                          "the cuda target has no compiler '%s'; expected auto, nvcc or nvrtc",
                          option);
    if (any && why.code == STATUS_NOT_FOUND)
        return status_set(st, STATUS_ENVIRONMENT,
                          "no CUDA compiler found, neither NVRTC nor nvcc; " WHAT_TO_INSTALL);
    return status_set(st, STATUS_ENVIRONMENT, "%s", why.message);
}
