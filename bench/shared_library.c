#include "bench/shared_library.h"

#include <dlfcn.h>
#include <stdlib.h>

void *shared_open(const char *path, const struct shared_symbol *symbols, size_t count,
                  const char **missing)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *lacks = NULL;
    for (size_t i = 0; library != NULL && i < count && lacks == NULL; i++)
        if ((*symbols[i].function = dlsym(library, symbols[i].name)) == NULL)
            lacks = symbols[i].name;
    if (missing != NULL)
        *missing = lacks;
    if (lacks == NULL)
        return library;
    dlclose(library);
    return NULL;
}

void *shared_open_toolkit(const char *const *names, const struct shared_symbol *symbols,
                          size_t count, struct buf *path)
{
    static const char *const dirs[] = {"/lib64/", "/lib/", "/targets/x86_64-linux/lib/"};
    const char *named = getenv("CUDA_HOME"), *root = named != NULL ? named : "/usr/local/cuda";
    void *library = NULL;
    for (size_t d = 0; d < ARRAY_LEN(dirs); d++)
        for (int i = 0; names[i] != NULL && library == NULL; i++) {
            buf_reset(path);
            buf_addf(path, "%s%s%s", root, dirs[d], names[i]);
            library = shared_open(path->ptr, symbols, count, NULL);
        }
    for (int i = 0; names[i] != NULL && library == NULL; i++) {
        buf_reset(path);
        buf_adds(path, names[i]);
        library = shared_open(path->ptr, symbols, count, NULL);
    }
    return library;
}
