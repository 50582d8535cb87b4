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

#define TEXTS(name, list)                                                                          \
    static struct kernel_file name[] = {list(X)};                                                  \
    static const int name##_count = ARRAY_LEN(name)

int kernel_group(enum kernel_group group, const struct kernel_file **out)
{
    TEXTS(cpu, CPU_LIBRARY);
    TEXTS(cpu_host, CPU_HOST);
    TEXTS(cuda, CUDA_LIBRARY);
    TEXTS(products, CUDA_PRODUCTS);
    TEXTS(cuda_host, CUDA_HOST);
    TEXTS(library, LIBRARY_FILES);
    TEXTS(host, LIBRARY_HOST);
    TEXTS(program, LIBRARY_PROGRAM);
    TEXTS(export, LIBRARY_EXPORT);
    const struct {
        struct kernel_file *files;
        int count;
    } groups[KERNEL_GROUPS] = {
        [KERNEL_LIBRARY] = {library, library_count},
        [KERNEL_CPU_LIBRARY] = {cpu, cpu_count},
        [KERNEL_CUDA_LIBRARY] = {cuda, cuda_count},
        [KERNEL_PRODUCTS] = {products, products_count},
        [KERNEL_HOST] = {host, host_count},
        [KERNEL_CPU_HOST] = {cpu_host, cpu_host_count},
        [KERNEL_CUDA_HOST] = {cuda_host, cuda_host_count},
        [KERNEL_PROGRAM] = {program, program_count},
        [KERNEL_EXPORT] = {export, export_count},
    };
    *out = groups[group].files;
    return measured(groups[group].files, groups[group].count);
}
