#include "tests/stress/fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

void fuzz_require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = mem_alloc(size + 1, 1);
    memcpy(text, data, size);
    return text;
}

static char dir[40];
static pid_t owner; /* of dir: the children of a target do not remove it */

static void remove_dir(void)
{
    if (owner == getpid())
        file_remove_all(dir, STATUS_IGNORED);
}

bool fuzz_enter_dir(void)
{
    if (owner != 0)
        return false;
    strcpy(dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuseplan-fuzz-XXXXXX"
                                              : "/tmp/fuseplan-fuzz-XXXXXX");
    fuzz_require(mkdtemp(dir) != NULL && chdir(dir) == 0, "there is room for a directory");
    owner = getpid();
    atexit(remove_dir);
    return true;
}

void fuzz_write(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_require(fd >= 0 && write(fd, data, len) == (ssize_t)len, "the file can be written");
    close(fd);
}

uint32_t fuzz_take(struct fuzz_bytes *b, size_t bytes)
{
    uint32_t value = 0;
    for (size_t i = 0; i < bytes && b->left > 0; i++, b->left--)
        value |= (uint32_t)*b->at++ << 8 * i;
    return value;
}
