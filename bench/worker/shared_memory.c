/* LLVM's OpenMP, with which clang links candidates, notes in /dev/shm that it is in this process,
 * and ends the process if it cannot.  The sandbox keeps candidates from /dev/shm and from making
 * memory that is a file.  So the worker's program has functions of these names, which come before
 * the C library's, and the note is memory of this process, made at its start and of a fixed size.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NOTE_BYTES = 4096 };

static int note = -1;

/* An initialiser of a library, which runs before this one, may have asked for the note. */
__attribute__((constructor)) static void make_note(void)
{
    if (note >= 0)
        return;
    note = memfd_create("openmp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (note >= 0 && (ftruncate(note, NOTE_BYTES) != 0 ||
                      fcntl(note, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        close(note);
        note = -1;
    }
}

__attribute__((destructor)) static void close_note(void)
{
    if (note >= 0)
        close(note);
}

int shm_open(const char *name, int flags, mode_t mode)
{
    (void)name;
    (void)mode;
    if ((flags & O_CREAT) == 0) {
        errno = ENOENT;
        return -1;
    }
    make_note();
    return note >= 0 ? fcntl(note, F_DUPFD_CLOEXEC, 0) : -1;
}

int shm_unlink(const char *name)
{
    (void)name;
    return 0;
}
