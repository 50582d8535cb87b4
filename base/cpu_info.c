#include "base/base.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Appends the value of the first line "key<blanks>: value" of /proc/cpuinfo; false if none. */
static bool cpuinfo_value(const struct buf *text, const char *key, struct buf *out)
{
    size_t key_len = strlen(key);
    for (const char *line = text->ptr; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, key_len) != 0)
            continue;
        const char *after = line + key_len + strspn(line + key_len, " \t");
        if (*after != ':')
            continue;
        after += 1 + strspn(after + 1, " \t");
        buf_add(out, after, strcspn(after, "\n"));
        return true;
    }
    return false;
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
    struct status ignored = STATUS_INIT;
    struct utsname kernel;
    struct buf text, value;
    buf_init(&text);
    buf_init(&value);
    uname(&kernel);
    snprintf(out->kernel, sizeof(out->kernel), "Linux %.50s", kernel.release);
    file_read("/proc/cpuinfo", 0, &text, &ignored);
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
    buf_release(&value);
    buf_release(&text);
}

/* How many cores' time cgroup v2 grants to `group` (its path under the mount); 0: no limit. */
static double group_quota(const char *group)
{
    char path[512], *rest;
    struct buf text;
    struct status ignored = STATUS_INIT;
    buf_init(&text);
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group);
    file_read(path, 0, &text, &ignored);
    double quota = strtod(text.ptr, &rest); /* "max 100000" has no number: no limit */
    double period = strtod(rest, NULL);
    buf_release(&text);
    return period > 0 ? quota / period : 0;
}

/* The smallest quota of the process's group and of its parents; 0: no limit. */
static double cpu_quota(void)
{
    struct buf text;
    struct status ignored = STATUS_INIT;
    buf_init(&text);
    double least = 0;
    if (file_read("/proc/self/cgroup", 0, &text, &ignored) == 0 &&
        strncmp(text.ptr, "0::/", 4) == 0) {
        char *group = text.ptr + 3;
        group[strcspn(group, "\n")] = '\0';
        for (char *slash = group + strlen(group); slash != NULL; slash = strrchr(group, '/')) {
            *slash = '\0';
            double quota = group_quota(group);
            if (quota > 0 && (least == 0 || quota < least))
                least = quota;
        }
    }
    buf_release(&text);
    return least;
}

int cpu_threads(void)
{
    cpu_set_t allowed;
    int cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                    ? CPU_COUNT(&allowed)
                    : (int)sysconf(_SC_NPROCESSORS_ONLN);
    double quota = cpu_quota();
    if (quota > 0 && quota < cores)
        cores = (int)(quota + 0.5);
    return cores > 0 ? cores : 1;
}

uint64_t mem_available_bytes(void)
{
    static const char field[] = "MemAvailable:";
    struct buf text;
    struct status ignored = STATUS_INIT;
    buf_init(&text);
    file_read("/proc/meminfo", 0, &text, &ignored);
    const char *found = strstr(text.ptr, field);
    uint64_t kib = found != NULL ? strtoull(found + strlen(field), NULL, 10) : 0;
    buf_release(&text);
    return kib * 1024;
}
