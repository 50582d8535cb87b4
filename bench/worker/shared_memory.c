/* LLVM's OpenMP, with which clang links candidates, notes in /dev/shm that it is in this process,
 * and ends the process if it cannot.  The sandbox keeps candidates from /dev/shm.  So the worker's
 * program has functions of these names, which come before the C library's, and the note is memory
 * of this process. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

int shm_open(const char *name, int flags, mode_t mode)
{
    (void)mode;
    if ((flags & O_CREAT) != 0)
        return memfd_create(name, MFD_CLOEXEC);
    errno = ENOENT;
    return -1;
}

int shm_unlink(const char *name)
{
    (void)name;
    return 0;
}
