#include "bench/wire/wire.h"
#include "bench/worker/nvidia_int.h"

#include <dlfcn.h>

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

char *shared_open_toolkit(const char *const *names, const struct shared_symbol *symbols,
                          size_t count)
{
    const char *by, *root = toolkit_root(&by);
    const struct {
        const char *root, *dir;
    } places[] = {
        {root, "/lib64/"}, {root, "/lib/"}, {root, "/targets/x86_64-linux/lib/"}, {"", ""}};
    SCOPED_BUF path = BUF_INIT;
    for (size_t p = 0; p < ARRAY_LEN(places); p++)
        for (int i = 0; names[i] != NULL; i++) {
            buf_reset(&path);
            buf_addf(&path, "%s%s%s", places[p].root, places[p].dir, names[i]);
            if (shared_open(path.ptr, symbols, count, NULL))
                return buf_detach(&path);
        }
    return NULL;
}
