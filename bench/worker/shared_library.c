#include "bench/worker/shared_library_int.h"

#include <dlfcn.h>
#include <stdlib.h>

bool shared_open(const char *path, const struct shared_symbol *symbols, size_t count,
                 const char **missing)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *lacks = NULL;
    for (size_t i = 0; library != NULL && i < count && lacks == NULL; i++)
        if ((*symbols[i].function = dlsym(library, symbols[i].name)) == NULL)
            lacks = symbols[i].name;
    if (missing != NULL)
        *missing = lacks;
    if (lacks != NULL)
        dlclose(library);
    return library != NULL && lacks == NULL;
}

/* The first of names in root and dir, which end with a slash or are empty. */
static bool open_in(const char *root, const char *dir, const char *const *names,
                    const struct shared_symbol *symbols, size_t count, struct buf *path)
{
    for (int i = 0; names[i] != NULL; i++) {
        buf_reset(path);
        buf_addf(path, "%s%s%s", root, dir, names[i]);
        if (shared_open(path->ptr, symbols, count, NULL))
            return true;
    }
    return false;
}

bool shared_open_toolkit(const char *const *names, const struct shared_symbol *symbols,
                         size_t count, struct buf *path)
{
    static const char *const dirs[] = {"/lib64/", "/lib/", "/targets/x86_64-linux/lib/"};
    const char *named = getenv("CUDA_HOME"), *root = named != NULL ? named : "/usr/local/cuda";
    for (size_t d = 0; d < ARRAY_LEN(dirs); d++)
        if (open_in(root, dirs[d], names, symbols, count, path))
            return true;
    return open_in("", "", names, symbols, count, path);
}
