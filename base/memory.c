#include "base/base.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

static void *require(void *ptr, size_t count, size_t size)
{
    if (ptr == NULL && count != 0 && size != 0) {
        fprintf(stderr, "fuseplan: out of memory (%zu x %zu bytes)\n", count, size);
        _exit(1);
    }
    return ptr;
}

/* Has whole pages of large memory lie on huge ones, where the system has some: it takes gigabytes
 * of these back in a tenth of the time. */
static void *on_huge_pages(void *memory, size_t bytes)
{
    enum { LEAST = 16 << 20 };
    if (bytes >= LEAST) {
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory,
                        first = (begin + page - 1) / page * page;
        madvise((void *)first, (begin + bytes - first) / page * page, MADV_HUGEPAGE);
    }
    return memory;
}

void *mem_alloc(size_t count, size_t size)
{
    return on_huge_pages(require(calloc(count, size), count, size), count * size);
}

void *mem_unset(size_t size)
{
    return require(malloc(size), size, 1);
}

void *mem_room(void *old, size_t count, size_t size)
{
    bool full = (count & (count - 1)) == 0;
    return full ? mem_resize(old, count > 0 ? 2 * count : 1, size) : old;
}

void *mem_resize(void *old, size_t count, size_t size)
{
    return require(reallocarray(old, count, size), count, size);
}

char *mem_strdup(const char *text)
{
    size_t len = strlen(text);
    char *copy = mem_alloc(len + 1, 1);
    assert(copy != NULL);
    return memcpy(copy, text, len + 1);
}

void *mem_checked(void *taken)
{
    return require(taken, 1, sizeof(void *));
}

void mem_free_scoped(void *pointer)
{
    void *taken;
    memcpy(&taken, pointer, sizeof(taken));
    free(taken);
}
