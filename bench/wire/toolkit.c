#include "bench/wire/wire.h"

const char *toolkit_root(const char **by)
{
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *value = variable_value(variables[i]);
        if (value != NULL) {
            *by = variables[i];
            return value;
        }
    }
    *by = NULL;
    return "/usr/local/cuda";
}
