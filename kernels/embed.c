#include "codegen/codegen.h"
#include "kernel_list.h"

#define X(symbol, name, path) extern const char symbol[], symbol##_end[];
CPU_KERNELS(X)
CPU_PROGRAM(X)
#undef X

int kernel_files(enum target_kind target, const struct kernel_file **out)
{
    static struct kernel_file cpu[] = {
#define X(symbol, name, path) {name, symbol, 0},
        CPU_KERNELS(X)
#undef X
    };
    static const char *const end[] = {
#define X(symbol, name, path) symbol##_end,
        CPU_KERNELS(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(cpu); i++)
        cpu[i].len = (size_t)(end[i] - cpu[i].text);
    *out = target == TARGET_CPU ? cpu : NULL;
    return target == TARGET_CPU ? (int)ARRAY_LEN(cpu) : 0;
}

const struct kernel_file *kernel_program(enum target_kind target)
{
    static struct kernel_file cpu;
#define X(symbol, name, path)                                                                      \
    cpu = (struct kernel_file){name, symbol, (size_t)(symbol##_end - symbol)};
    CPU_PROGRAM(X)
#undef X
    return target == TARGET_CPU ? &cpu : NULL;
}
