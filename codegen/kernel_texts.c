#include "codegen/codegen_int.h"
#include "embedded.h"

#define X(symbol, name, path) extern const char(symbol)[];
EMBEDDED(X)
#undef X

#define X(symbol, name, path) {name, symbol, 0},
#define TEXTS(list)                                                                                \
    {                                                                                              \
        (struct kernel_file[]){list(X)}, ARRAY_LEN(((struct kernel_file[]){list(X)}))              \
    }

static const struct {
    struct kernel_file *files;
    int count;
} groups[KERNEL_GROUPS] = {
    [KERNEL_CPU] = TEXTS(CPU_KERNELS),           [KERNEL_CUDA] = TEXTS(CUDA_KERNELS),
    [KERNEL_LIBRARY] = TEXTS(LIBRARY_FILES),     [KERNEL_CPU_LIBRARY] = TEXTS(CPU_LIBRARY),
    [KERNEL_CUDA_LIBRARY] = TEXTS(CUDA_LIBRARY), [KERNEL_PRODUCTS] = TEXTS(CUDA_PRODUCTS),
    [KERNEL_HOST] = TEXTS(LIBRARY_HOST),         [KERNEL_CPU_HOST] = TEXTS(CPU_HOST),
    [KERNEL_CUDA_HOST] = TEXTS(CUDA_HOST),       [KERNEL_PROGRAM] = TEXTS(LIBRARY_PROGRAM),
    [KERNEL_EXPORT] = TEXTS(LIBRARY_EXPORT),     [KERNEL_STAMPS] = TEXTS(CUDA_STAMPS),
};

/* The length of a text that the linker brings is no constant of C. */
int kernel_group(enum kernel_group group, const struct kernel_file **out)
{
    struct kernel_file *files = groups[group].files;
    for (int i = 0; i < groups[group].count; i++)
        files[i].len = strlen(files[i].text);
    *out = files;
    return groups[group].count;
}

int kernel_files(enum target_kind target, const struct kernel_file **out)
{
    return kernel_group(target == TARGET_CPU ? KERNEL_CPU : KERNEL_CUDA, out);
}
