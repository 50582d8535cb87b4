#include "bench/worker/nvidia_int.h"

struct _nvrtcProgram;

/* NVRTC's functions, declared as in its header. */
struct nvrtc {
    int (*version)(int *major, int *minor);
    const char *(*error)(int result);
    int (*create)(struct _nvrtcProgram **out, const char *source, const char *name, int headers,
                  const char *const *texts, const char *const *names);
    int (*compile)(struct _nvrtcProgram *p, int count, const char *const *options);
    int (*log_size)(struct _nvrtcProgram *p, size_t *out);
    int (*log)(struct _nvrtcProgram *p, char *out);
    int (*cubin_size)(struct _nvrtcProgram *p, size_t *out);
    int (*cubin)(struct _nvrtcProgram *p, char *out);
};

/* Opens the library at `given`, or, if that is null, where the toolkit has it.  Returns its path,
 * which the caller frees, or null. */
static char *load(struct nvrtc *n, const char *given)
{
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", NULL};
    const struct shared_symbol symbols[] = {
        {"nvrtcVersion", (void **)&n->version},
        {"nvrtcGetErrorString", (void **)&n->error},
        {"nvrtcCreateProgram", (void **)&n->create},
        {"nvrtcCompileProgram", (void **)&n->compile},
        {"nvrtcGetProgramLogSize", (void **)&n->log_size},
        {"nvrtcGetProgramLog", (void **)&n->log},
        {"nvrtcGetCUBINSize", (void **)&n->cubin_size},
        {"nvrtcGetCUBIN", (void **)&n->cubin},
    };
    if (given == NULL)
        return shared_open_toolkit(names, symbols, ARRAY_LEN(symbols));
    return shared_open(given, symbols, ARRAY_LEN(symbols), NULL) ? mem_strdup(given) : NULL;
}

json_t *nvrtc_version(void)
{
    struct nvrtc n;
    int major, minor;
    SCOPED char *path = load(&n, NULL);
    json_t *out = NULL;
    if (path != NULL && n.version(&major, &minor) == 0)
        out = json_pack("{s:s, s:i, s:i}", "library", path, "major", major, "minor", minor);
    return out;
}

static void print_log(const struct nvrtc *n, struct _nvrtcProgram *program)
{
    size_t size = 0;
    if (n->log_size(program, &size) != 0 || size <= 1)
        return;
    SCOPED char *log = mem_alloc(size + 1, 1);
    if (n->log(program, log) == 0)
        fprintf(stderr, "%s\n", log);
}

static int write_cubin(const struct nvrtc *n, struct _nvrtcProgram *program, const char *path,
                       struct status *st)
{
    size_t size = 0;
    int result = n->cubin_size(program, &size);
    SCOPED char *cubin = mem_alloc(size + 1, 1);
    if (result == 0)
        result = n->cubin(program, cubin);
    if (result != 0)
        status_set(st, STATUS_COMPILE, "the compiler gave no code: %s", n->error(result));
    else
        result = file_write(path, cubin, size, st);
    return result == 0 ? 0 : -1;
}

static int compile(const char *library, const char *source_path, const char *output, int count,
                   const char *const *options, struct status *st)
{
    struct nvrtc n;
    SCOPED_BUF source = BUF_INIT;
    struct _nvrtcProgram *program = NULL;
    SCOPED char *path = load(&n, library);
    int result = -1;
    if (path == NULL) {
        status_set(st, STATUS_ENVIRONMENT, "cannot load '%s'", library);
    } else if (file_read(source_path, 0, &source, st) == 0) {
        int error = n.create(&program, source.ptr, source_path, 0, NULL, NULL);
        if (error == 0)
            error = n.compile(program, count, options);
        if (program != NULL)
            print_log(&n, program);
        if (error != 0)
            status_set(st, STATUS_COMPILE, "%s", n.error(error));
        else
            result = write_cubin(&n, program, output, st);
    }
    return result;
}

int nvrtc_compile(int argc, char **argv)
{
    enum { OPTIONS_MAX = 64 };
    const char *options[OPTIONS_MAX], *output = NULL;
    int count = 0;
    for (int i = 1; i < argc - 1 && count < OPTIONS_MAX; i++)
        if (strcmp(argv[i], "-o") == 0)
            output = argv[++i];
        else
            options[count++] = argv[i];
    struct status st = STATUS_INIT;
    if (compile(argv[0], argv[argc - 1], output, count, options, &st) == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "error: %s\n", st.message);
    return EXIT_FAILURE;
}
