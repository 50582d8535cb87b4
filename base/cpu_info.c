#include "base/base.h"
#include "base/threads.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* What stands behind a key in the first line that begins with it; null if none does. */
static const char *behind_key(const char *text, const char *key)
{
    const size_t len = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0)
            return line + len;
    }
    return NULL;
}

/* Appends the value of a line "key<blanks>: value" of /proc/cpuinfo; false if there is none. */
static bool cpuinfo_value(const struct buf *text, const char *key, struct buf *out)
{
    const char *value = behind_key(text->ptr, key);
    if (value == NULL)
        return false;
    value += strspn(value, " \t:");
    buf_add(out, value, strcspn(value, "\n"));
    return true;
}

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += len)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

/* From the widest vectors on: the first flag that the CPU lists decides. */
static const struct {
    const char *flag, *name;
} extensions[] = {
    {"avx512f", "avx512"}, {"avx2", "avx2"}, {"avx", "avx"},
    {"sse4_2", "sse4.2"},  {"sve", "sve"},   {"asimd", "neon"},
};

void cpu_info_read(struct cpu_info *out)
{
    *out = (struct cpu_info){0};
    struct utsname kernel;
    SCOPED_BUF text = BUF_INIT, value = BUF_INIT;
    uname(&kernel);
    snprintf(out->kernel, sizeof(out->kernel), "Linux %.50s", kernel.release);
    file_read("/proc/cpuinfo", 0, &text, STATUS_IGNORED);
    if (!cpuinfo_value(&text, "model name", &value))
        buf_adds(&value, kernel.machine);
    snprintf(out->model, sizeof(out->model), "%s", value.ptr);

    buf_reset(&value);
    if (!cpuinfo_value(&text, "flags", &value))
        cpuinfo_value(&text, "Features", &value);
    snprintf(out->extension, sizeof(out->extension), "%.31s", kernel.machine);
    for (size_t i = 0; i < ARRAY_LEN(extensions); i++)
        if (has_word(value.ptr, extensions[i].flag)) {
            snprintf(out->extension, sizeof(out->extension), "%s", extensions[i].name);
            break;
        }
    hash_text(value.ptr, value.len, out->flags_hash);
}

/* OpenMP, where the process has it, may have bound this thread to one core. */
static int allowed_cores(void)
{
    cpu_set_t allowed;
    int (*counted)(void) = NULL;
    *(void **)&counted = dlsym(RTLD_DEFAULT, "omp_get_num_procs");
    if (counted != NULL)
        return counted();
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0
               ? CPU_COUNT(&allowed)
               : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int cpu_threads(void)
{
    return fp_threads(allowed_cores());
}

/* The number behind key, in the first line of a control group's file that begins with it; `absent`
 * where there is none. */
static uint64_t group_number(const struct fp_group *group, const char *file, const char *key,
                             uint64_t absent)
{
    SCOPED char *path = buf_text("%s/%s", group->dir, file);
    SCOPED_BUF text = BUF_INIT;
    file_read(path, 0, &text, STATUS_IGNORED);
    const char *value = behind_key(text.ptr, key);
    char *end = NULL;
    uint64_t number = value != NULL ? strtoull(value, &end, 10) : 0;
    bool found = value != NULL && end != value; /* "max" has no number */
    return found ? number : absent;
}

double cpu_throttled_seconds(void)
{
    struct fp_group group = fp_group_of(FP_GROUPS, FP_GROUPS_ROOT, "cpu");
    double most = 0; /* of the groups, which may stop a thread at the same time */
    for (bool more = group.mount > 0; more; more = fp_group_up(&group)) {
        most = fmax(most, 1e-6 * (double)group_number(&group, "cpu.stat", "throttled_usec ", 0));
        most = fmax(most, 1e-9 * (double)group_number(&group, "cpu.stat", "throttled_time ", 0));
    }
    return most;
}

/* The files of each version of control groups. */
static const struct {
    const char *limit, *used, *idle;
} memory_files[] = {
    {"memory.max", "memory.current", "inactive_file "},
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

uint64_t mem_group_bytes(const char *list, const char *root)
{
    const uint64_t endless = (uint64_t)1 << 62; /* version 1 has a number for no limit */
    struct fp_group group = fp_group_of(list, root, "memory");
    uint64_t least = UINT64_MAX;
    for (bool more = group.mount > 0; more; more = fp_group_up(&group))
        for (size_t i = 0; i < ARRAY_LEN(memory_files); i++) {
            uint64_t limit = group_number(&group, memory_files[i].limit, "", UINT64_MAX);
            if (limit >= endless)
                continue;
            uint64_t used = group_number(&group, memory_files[i].used, "", 0);
            /* pages of files that nobody has used for some time are given back when others want
             * them */
            uint64_t idle = group_number(&group, "memory.stat", memory_files[i].idle, 0);
            used -= idle < used ? idle : used;
            uint64_t left = used < limit ? limit - used : 0;
            least = left < least ? left : least;
        }
    return least;
}

uint64_t mem_available_bytes(void)
{
    SCOPED_BUF text = BUF_INIT;
    file_read("/proc/meminfo", 0, &text, STATUS_IGNORED);
    const char *kib = behind_key(text.ptr, "MemAvailable:");
    uint64_t least = kib != NULL ? 1024 * (uint64_t)strtoull(kib, NULL, 10) : UINT64_MAX;
    struct rlimit own; /* `ulimit -v`: a process gets no more, whatever the machine has */
    if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur < least)
        least = own.rlim_cur;
    uint64_t left = mem_group_bytes(FP_GROUPS, FP_GROUPS_ROOT);
    return left < least ? left : least;
}

double cpu_busy_seconds(void)
{
    enum { USER, NICE, SYSTEM, IDLE, IO_WAIT, IRQ, SOFT_IRQ, STEAL, FIELDS };
    unsigned long long ticks[FIELDS] = {0}, busy = 0;
    SCOPED_BUF text = BUF_INIT;
    int found = 0;
    if (file_read("/proc/stat", 0, &text, STATUS_IGNORED) == 0 &&
        strncmp(text.ptr, "cpu ", 4) == 0) {
        char *at = text.ptr + 4, *rest;
        for (; found < FIELDS; found++, at = rest) {
            ticks[found] = strtoull(at, &rest, 10);
            if (rest == at)
                break;
            busy += found != IDLE && found != IO_WAIT ? ticks[found] : 0;
        }
    }
    return found == FIELDS ? (double)busy / (double)sysconf(_SC_CLK_TCK) : -1;
}
