/* A library for LD_PRELOAD that lets one call of a program fail, as faults.py says.  The
 * worker's clock runs faster, so that it samples for a shorter time. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* X(kind, errno with which its calls fail).  INTERRUPTED are those calls that signals interrupt. */
#define INJECT_KINDS(X)                                                                            \
    X(malloc, ENOMEM)                                                                              \
    X(read, EIO)                                                                                   \
    X(write, ENOSPC)                                                                               \
    X(fsync, EIO)                                                                                  \
    X(rename, EACCES)                                                                              \
    X(mmap, ENOMEM)                                                                                \
    X(fork, EAGAIN)                                                                                \
    X(waitpid, ECHILD)                                                                             \
    X(socket, EMFILE)                                                                              \
    X(open, EMFILE)                                                                                \
    X(interrupted, EINTR)

enum inject_kind {
#define X(kind, error) INJECT_##kind,
    INJECT_KINDS(X)
#undef X
        INJECT_KIND_COUNT
};

/* The file that FUSEPLAN_INJECT names holds it, shared by all processes of a command and by
 * faults.py, which knows where each field is. */
struct inject {
    char program[16]; /* in which calls are counted: "fuseplan", "fuseplan-worker" */
    int kind, number; /* which call fails, from 1; number 0: none */
    atomic_int fired; /* it has */
    atomic_int calls[INJECT_KIND_COUNT];
    atomic_int left_open; /* descriptors at its exit that were not there at its start */
    atomic_int exited;    /* by exit(), which counts them */
};

enum { DESCRIPTORS = 256, FASTER = 20 };

static struct inject *shared; /* null: nothing is counted in this process */
static bool open_before[DESCRIPTORS];
static bool hasty;

static bool is_open(int fd)
{
    return syscall(SYS_fcntl, fd, F_GETFD) >= 0;
}

static void __attribute__((constructor)) begin(void)
{
    const char *path = getenv("FUSEPLAN_INJECT");
    char name[17] = "";
    prctl(PR_GET_NAME, name);
    int fd = path != NULL ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    hasty = strcmp(name, "fuseplan-worker") == 0;
    struct inject *s = (struct inject *)syscall(SYS_mmap, NULL, sizeof(*s), PROT_READ | PROT_WRITE,
                                                MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (s == MAP_FAILED || strncmp(s->program, name, sizeof(s->program) - 1) != 0)
        return;
    for (int i = 0; i < DESCRIPTORS; i++)
        open_before[i] = is_open(i);
    shared = s;
}

static void __attribute__((destructor)) end(void)
{
    if (shared == NULL)
        return;
    for (int i = 0; i < DESCRIPTORS; i++)
        shared->left_open += !open_before[i] && is_open(i);
    shared->exited = 1;
}

/* Whether this call is the one that fails; sets errno then. */
static bool fails(enum inject_kind kind)
{
    static const int errors[] = {
#define X(name, error) error,
        INJECT_KINDS(X)
#undef X
    };
    if (shared == NULL)
        return false;
    int number = atomic_fetch_add(&shared->calls[kind], 1) + 1;
    int once = 0;
    if (shared->kind != (int)kind || shared->number != number ||
        !atomic_compare_exchange_strong(&shared->fired, &once, 1))
        return false;
    errno = errors[kind];
    return true;
}

static bool is_interrupted(void)
{
    return fails(INJECT_interrupted);
}

/* ---- memory: glibc has its own names for what is replaced ------------------------------------ */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    return fails(INJECT_malloc) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(INJECT_malloc) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails(INJECT_malloc) ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return fails(INJECT_malloc) ? NULL : __libc_realloc(old, bytes);
}

/* ---- everything else ------------------------------------------------------------------------- */

/* Defines a function that fails in its turn and else calls the next library's. */
#define REPLACE(kinds, result, failed, name, parameters, arguments)                                \
    result name parameters                                                                         \
    {                                                                                              \
        static result(*next) parameters;                                                           \
        if (kinds)                                                                                 \
            return failed;                                                                         \
        if (next == NULL) {                                                                        \
            void *found = dlsym(RTLD_NEXT, #name);                                                 \
            memcpy(&next, &found, sizeof(next));                                                   \
        }                                                                                          \
        return next arguments;                                                                     \
    }

#define ALSO_INTERRUPTED(kind) (fails(INJECT_##kind) || is_interrupted())

REPLACE(ALSO_INTERRUPTED(read), ssize_t, -1, read, (int fd, void *p, size_t n), (fd, p, n))
REPLACE(fails(INJECT_read), ssize_t, -1, pread, (int fd, void *p, size_t n, off_t at),
        (fd, p, n, at))
REPLACE(fails(INJECT_read), ssize_t, -1, pread64, (int fd, void *p, size_t n, off64_t at),
        (fd, p, n, at))
REPLACE(ALSO_INTERRUPTED(write), ssize_t, -1, write, (int fd, const void *p, size_t n), (fd, p, n))
REPLACE(fails(INJECT_write), ssize_t, -1, pwrite, (int fd, const void *p, size_t n, off_t at),
        (fd, p, n, at))
REPLACE(fails(INJECT_write), ssize_t, -1, pwrite64, (int fd, const void *p, size_t n, off64_t at),
        (fd, p, n, at))
REPLACE(fails(INJECT_write), int, -1, ftruncate, (int fd, off_t n), (fd, n))
REPLACE(fails(INJECT_write), int, -1, ftruncate64, (int fd, off64_t n), (fd, n))
REPLACE(fails(INJECT_fsync), int, -1, fsync, (int fd), (fd))
REPLACE(fails(INJECT_fsync), int, -1, fdatasync, (int fd), (fd))
REPLACE(fails(INJECT_rename), int, -1, rename, (const char *a, const char *b), (a, b))
REPLACE(fails(INJECT_rename), int, -1, renameat2,
        (int x, const char *a, int y, const char *b, unsigned flags), (x, a, y, b, flags))
REPLACE(fails(INJECT_mmap), void *, MAP_FAILED, mmap,
        (void *p, size_t n, int prot, int flags, int fd, off_t at), (p, n, prot, flags, fd, at))
REPLACE(fails(INJECT_mmap), void *, MAP_FAILED, mmap64,
        (void *p, size_t n, int prot, int flags, int fd, off64_t at), (p, n, prot, flags, fd, at))
REPLACE(fails(INJECT_fork), pid_t, -1, fork, (void), ())
REPLACE(ALSO_INTERRUPTED(waitpid), pid_t, -1, waitpid, (pid_t pid, int *status, int options),
        (pid, status, options))
REPLACE(fails(INJECT_socket), int, -1, socketpair, (int a, int b, int c, int d[2]), (a, b, c, d))
REPLACE(fails(INJECT_socket), int, -1, pipe2, (int ends[2], int flags), (ends, flags))
REPLACE(fails(INJECT_socket), int, -1, memfd_create, (const char *name, unsigned flags),
        (name, flags))
REPLACE(ALSO_INTERRUPTED(socket), ssize_t, -1, send, (int fd, const void *p, size_t n, int flags),
        (fd, p, n, flags))
REPLACE(ALSO_INTERRUPTED(socket), ssize_t, -1, recv, (int fd, void *p, size_t n, int flags),
        (fd, p, n, flags))
REPLACE(is_interrupted(), int, -1, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
REPLACE(fails(INJECT_open), int, -1, dup2, (int a, int b), (a, b))

/* The mode is read in any case: who gives none leaves what nobody reads. */
#define REPLACE_OPEN(name)                                                                         \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        static int (*next)(const char *, int, ...);                                                \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        unsigned mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(args, unsigned) : 0;       \
        va_end(args);                                                                              \
        if (fails(INJECT_open))                                                                    \
            return -1;                                                                             \
        if (next == NULL) {                                                                        \
            void *found = dlsym(RTLD_NEXT, #name);                                                 \
            memcpy(&next, &found, sizeof(next));                                                   \
        }                                                                                          \
        return next(path, flags, mode);                                                            \
    }
REPLACE_OPEN(open)
REPLACE_OPEN(open64)

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (hasty) {
        int64_t ns = (out->tv_sec * (int64_t)1000000000 + out->tv_nsec) * FASTER;
        out->tv_sec = ns / 1000000000;
        out->tv_nsec = ns % 1000000000;
    }
    return result;
}
