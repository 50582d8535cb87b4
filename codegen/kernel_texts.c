#include "codegen/codegen_int.h"
#include "embedded.h"

#include <string.h>

#define X(symbol, name, path) extern const char(symbol)[];
EMBEDDED(X)
#undef X

/* The length of a text that the linker brings is no constant of C. */
static int measured(struct kernel_file *files, int count)
{
    for (int i = 0; i < count; i++)
        files[i].len = strlen(files[i].text);
    return count;
}

#define X(symbol, name, path) {name, symbol, 0},

int kernel_files(enum target_kind target, const struct kernel_file **out)
{
    static struct kernel_file cpu[] = {CPU_KERNELS(X)}, cuda[] = {CUDA_KERNELS(X)};
    *out = target == TARGET_CPU ? cpu : cuda;
    return target == TARGET_CPU ? measured(cpu, ARRAY_LEN(cpu)) : measured(cuda, ARRAY_LEN(cuda));
}

int kernel_program(enum target_kind target, const struct kernel_file **out)
{
    static struct kernel_file cpu[] = {CPU_PROGRAM(X)}, cuda[] = {CUDA_PROGRAM(X)};
    *out = target == TARGET_CPU ? cpu : cuda;
    return target == TARGET_CPU ? measured(cpu, ARRAY_LEN(cpu)) : measured(cuda, ARRAY_LEN(cuda));
}

const struct kernel_file *kernel_library(void)
{
    static struct kernel_file library[] = {CUDA_LIBRARY(X)};
    measured(library, ARRAY_LEN(library));
    return library;
}

const struct kernel_file *kernel_arguments(void)
{
    static struct kernel_file arguments[] = {BOTH_PROGRAMS(X)};
    measured(arguments, ARRAY_LEN(arguments));
    return arguments;
}
