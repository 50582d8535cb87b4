#include "bench/worker/cublas_int.h"
#include "bench/worker/cuda_probe_int.h"
#include "bench/worker/shared_library_int.h"

#include <stdio.h>
#include <stdlib.h>

int cublas_check(const struct cublas *lib, int error, const char *what, struct status *st)
{
    if (error == CUBLAS_STATUS_SUCCESS)
        return 0;
    return status_set(st, STATUS_LAUNCH, "%s: %s", what, lib->GetStatusString(error));
}

static bool load(struct cublas *lib, struct buf *path)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        NULL};
    const struct shared_symbol symbols[] = {
#define X(result, name, parameters) {"cublasLt" #name, (void **)&lib->name},
        CUBLAS_FUNCTIONS(X)
#undef X
    };
    return shared_open_toolkit(names, symbols, ARRAY_LEN(symbols), path);
}

int cublas_open(const struct cublas **out, struct status *st)
{
    static struct cublas lib;
    struct buf path;
    int result = 0;
    buf_init(&path);
    *out = NULL;
    if (lib.handle == NULL && !load(&lib, &path))
        result = status_set(st, STATUS_LAUNCH, "no cuBLASLt (libcublasLt.so) found");
    else if (lib.handle == NULL)
        result = cublas_check(&lib, lib.Create(&lib.handle), "cuBLASLt does not start", st);
    buf_release(&path);
    if (result == 0)
        *out = &lib;
    return result;
}

int cublas_version(void)
{
    struct cublas lib;
    struct buf path;
    int code = EXIT_FAILURE;
    buf_init(&path);
    if (load(&lib, &path)) {
        json_t *out =
            json_pack("{s:s, s:i}", "library", path.ptr, "version", (int)lib.GetVersion());
        json_dumpf(out, stdout, JSON_COMPACT);
        puts("");
        json_decref(out);
        code = EXIT_SUCCESS;
    }
    buf_release(&path);
    return code;
}
