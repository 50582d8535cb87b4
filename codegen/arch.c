#include "codegen/codegen.h"

#include <assert.h>

/* What CUDA 12 and 13 compile for.  sm_90a is sm_90 with wgmma, which no later architecture has.
 * Shared memory: CUDA C++ Programming Guide, technical specifications by compute capability. */
static const struct arch_row {
    int arch;
    const char *name;
    int toolkit;    /* the first release of CUDA that compiles for it */
    int shared_kib; /* of a thread block, at most */
} archs[] = {
    {80, "sm_80", 11000, 163},
    {86, "sm_86", 11010, 99},
    {87, "sm_87", 11040, 163},
    {89, "sm_89", 11080, 99},
    {CUDA_ARCH_HOPPER, "sm_90a", 12000, 227},
    {100, "sm_100", 12080, 227},
    {103, "sm_103", 12090, 227},
    {110, "sm_110", 13000, 227},
    {120, "sm_120", 12080, 99},
    {121, "sm_121", 12090, 99},
};
_Static_assert(ARRAY_LEN(archs) <= ARCH_LIST_MAX, "a list may hold all of them");

void arch_words(const char *separator, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        buf_addf(out, "%s%s", i > 0 ? separator : "", archs[i].name);
}

void arch_name(int arch, struct buf *out)
{
    buf_addf(out, "sm_%d%s", arch, arch == CUDA_ARCH_HOPPER ? "a" : "");
}

static int unknown_arch(const char *name, struct status *st)
{
    static const char prefix[] = "sm_";
    int64_t number;
    if (strcmp(name, "sm_90") == 0)
        return status_set(st, STATUS_USAGE,
                          "--arch: code for sm_90 is built as sm_90a, which the same GPUs run; "
                          "give sm_90a");
    if (strncmp(name, prefix, strlen(prefix)) == 0 &&
        number_parse("", name + strlen(prefix), 1, CUDA_ARCH_MIN - 1, &number, STATUS_IGNORED) == 0)
        return status_set(st, STATUS_USAGE,
                          "--arch: '%s' is too old; the cuda target needs sm_%d (Ampere) or later",
                          name, CUDA_ARCH_MIN);
    SCOPED_BUF known = BUF_INIT;
    arch_words(", ", &known);
    return status_set(st, STATUS_USAGE,
                      "--arch: '%s' is unknown; expected some of %s, commas between", name,
                      known.ptr);
}

int arch_parse_list(const char *text, struct arch_list *out, struct status *st)
{
    bool wanted[ARRAY_LEN(archs)] = {false};
    SCOPED char *copy = mem_strdup(text);
    *out = (struct arch_list){.count = 0};
    for (char *rest = copy, *name; (name = strsep(&rest, ",")) != NULL;) {
        size_t i = 0;
        while (i < ARRAY_LEN(archs) && strcmp(archs[i].name, name) != 0)
            i++;
        if (i == ARRAY_LEN(archs))
            return unknown_arch(name, st);
        wanted[i] = true;
    }
    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        if (wanted[i])
            out->arch[out->count++] = archs[i].arch;
    return 0;
}

/* CUDA C++ Programming Guide, binary compatibility: code runs on the same major version from its
 * own minor version on; code for sm_90a runs on sm_90 alone. */
bool arch_runs(int arch, int device)
{
    return arch == device ||
           (arch != CUDA_ARCH_HOPPER && arch / 10 == device / 10 && arch < device);
}

static const struct arch_row *row_of(int arch)
{
    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        if (archs[i].arch == arch)
            return &archs[i];
    return NULL;
}

int arch_toolkit(int arch)
{
    const struct arch_row *row = row_of(arch);
    return row != NULL ? row->toolkit : 0;
}

int arch_shared_bytes(int arch)
{
    const struct arch_row *row = row_of(arch);
    if (row == NULL)
        row = row_of(CUDA_ARCH_HOPPER);
    assert(row != NULL);
    return 1024 * row->shared_kib;
}

int arch_common(const struct arch_list *list)
{
    int common = list->arch[0];
    for (int i = 1; i < list->count; i++)
        if (common == CUDA_ARCH_HOPPER ||
            (list->arch[i] != CUDA_ARCH_HOPPER &&
             arch_shared_bytes(list->arch[i]) < arch_shared_bytes(common)))
            common = list->arch[i];
    return common;
}

void arch_options(const struct arch_list *list, struct buf *out)
{
    for (int i = 0; i < list->count; i++) {
        SCOPED_BUF name = BUF_INIT;
        arch_name(list->arch[i], &name);
        buf_addf(out, "%s-gencode arch=compute_%s,code=%s", i > 0 ? " " : "",
                 name.ptr + strlen("sm_"), name.ptr);
    }
}

int cpu_check_processors(const char *name, struct status *st)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.+_-";
    if (strncmp(name, "sm_", 3) != 0 && name[0] != '-' && name[strspn(name, letters)] == '\0')
        return 0;
    return status_set(
        st, STATUS_USAGE,
        "--arch: '%s' names no processors, and the target is cpu; expected what " CPU_ARCH_OPTION
        " of the compiler takes, such as " CPU_ARCH_EXAMPLE
        " or native, or add --target cuda for GPUs",
        name);
}
