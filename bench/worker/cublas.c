#include "bench/worker/cublas_int.h"
#include "bench/worker/nvidia_int.h"

int cublas_check(const struct cublas *lib, int error, const char *what, struct status *st)
{
    if (error == CUBLAS_STATUS_SUCCESS)
        return 0;
    return status_set(st, STATUS_LAUNCH, "%s: %s", what, lib->GetStatusString(error));
}

static char *load(struct cublas *lib)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        NULL};
    const struct shared_symbol symbols[] = {
#define X(result, name, parameters) {"cublasLt" #name, (void **)&lib->name},
        CUBLAS_FUNCTIONS(X)
#undef X
    };
    return shared_open_toolkit(names, symbols, ARRAY_LEN(symbols));
}

int cublas_open(const struct cublas **out, struct status *st)
{
    static struct cublas lib;
    *out = NULL;
    if (lib.handle == NULL) {
        char *path = load(&lib);
        if (path == NULL)
            return status_set(st, STATUS_LAUNCH, "no cuBLASLt (libcublasLt.so) found");
        free(path);
        if (cublas_check(&lib, lib.Create(&lib.handle), "cuBLASLt does not start", st) != 0)
            return -1;
    }
    *out = &lib;
    return 0;
}

json_t *cublas_version(void)
{
    struct cublas lib;
    SCOPED char *path = load(&lib);
    json_t *out = NULL;
    if (path != NULL)
        out = json_pack("{s:s, s:i}", "library", path, "version", (int)lib.GetVersion());
    return out;
}
