#include "codegen/codegen_int.h"
#include "kernel_list.h"

#define X(symbol, name, path) extern const char symbol[], symbol##_end[];
CPU_KERNELS(X)
CPU_PROGRAM(X)
CUDA_KERNELS(X)
CUDA_PROGRAM(X)
CUDA_LIBRARY(X)
#undef X

/* A difference of two symbols is no constant of C. */
static int measured(struct kernel_file *files, const char *const *end, int count)
{
    for (int i = 0; i < count; i++)
        files[i].len = (size_t)(end[i] - files[i].text);
    return count;
}

#define X(symbol, name, path) {name, symbol, 0},
#define E(symbol, name, path) symbol##_end,

int kernel_files(enum target_kind target, const struct kernel_file **out)
{
    static struct kernel_file cpu[] = {CPU_KERNELS(X)}, cuda[] = {CUDA_KERNELS(X)};
    static const char *const cpu_end[] = {CPU_KERNELS(E)}, *const cuda_end[] = {CUDA_KERNELS(E)};
    *out = target == TARGET_CPU ? cpu : cuda;
    return target == TARGET_CPU ? measured(cpu, cpu_end, ARRAY_LEN(cpu))
                                : measured(cuda, cuda_end, ARRAY_LEN(cuda));
}

int kernel_program(enum target_kind target, const struct kernel_file **out)
{
    static struct kernel_file cpu[] = {CPU_PROGRAM(X)}, cuda[] = {CUDA_PROGRAM(X)};
    static const char *const cpu_end[] = {CPU_PROGRAM(E)}, *const cuda_end[] = {CUDA_PROGRAM(E)};
    *out = target == TARGET_CPU ? cpu : cuda;
    return target == TARGET_CPU ? measured(cpu, cpu_end, ARRAY_LEN(cpu))
                                : measured(cuda, cuda_end, ARRAY_LEN(cuda));
}

const struct kernel_file *kernel_library(void)
{
    static struct kernel_file library[] = {CUDA_LIBRARY(X)};
    static const char *const end[] = {CUDA_LIBRARY(E)};
    measured(library, end, ARRAY_LEN(library));
    return library;
}
