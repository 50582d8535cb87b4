#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *require(void *ptr, size_t count, size_t size)
{
    if (ptr == NULL && count != 0 && size != 0) {
        fprintf(stderr, "fuseplan: out of memory (%zu x %zu bytes)\n", count, size);
        _exit(1);
    }
    return ptr;
}

void *mem_alloc(size_t count, size_t size)
{
    return require(calloc(count, size), count, size);
}

void *mem_resize(void *old, size_t count, size_t size)
{
    return require(reallocarray(old, count, size), count, size);
}

char *mem_strdup(const char *text)
{
    size_t len = strlen(text);
    return memcpy(mem_alloc(len + 1, 1), text, len);
}

uint64_t mem_available_bytes(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    if (f == NULL)
        return 0;
    static const char field[] = "MemAvailable:";
    char line[128];
    unsigned long long kib = 0;
    while (kib == 0 && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtoull(line + strlen(field), NULL, 10);
    fclose(f);
    return (uint64_t)kib * 1024;
}
