#include "codegen/codegen.h"
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

int kernel_files(enum target_kind target, const struct kernel_file **out)
{
#define X(symbol, name, path) {name, symbol, 0},
    static struct kernel_file cpu[] = {CPU_KERNELS(X)}, cuda[] = {CUDA_KERNELS(X)};
#undef X
#define X(symbol, name, path) symbol##_end,
    static const char *const cpu_end[] = {CPU_KERNELS(X)}, *const cuda_end[] = {CUDA_KERNELS(X)};
#undef X
    *out = target == TARGET_CPU ? cpu : cuda;
    return target == TARGET_CPU ? measured(cpu, cpu_end, ARRAY_LEN(cpu))
                                : measured(cuda, cuda_end, ARRAY_LEN(cuda));
}

#define X(symbol, name, path)                                                                      \
    (struct kernel_file)                                                                           \
    {                                                                                              \
        name, symbol, (size_t)(symbol##_end - symbol)                                              \
    }

const struct kernel_file *kernel_program(enum target_kind target)
{
    static struct kernel_file programs[TARGET_COUNT];
    programs[TARGET_CPU] = CPU_PROGRAM(X);
    programs[TARGET_CUDA] = CUDA_PROGRAM(X);
    return &programs[target];
}

const struct kernel_file *kernel_library(void)
{
    static struct kernel_file library;
    library = CUDA_LIBRARY(X);
    return &library;
}
