/* What faults.c and the library inject.c, which it puts into programs, tell each other. */
#ifndef FUSEPLAN_TESTS_INJECT_H
#define FUSEPLAN_TESTS_INJECT_H

#include <stdatomic.h>

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

/* The file that FUSEPLAN_INJECT names holds it, shared by all processes of a command. */
struct inject {
    char program[16]; /* in which calls are counted: "fuseplan", "fuseplan-worker" */
    int kind, number; /* which call fails, from 1; number 0: none */
    atomic_int fired; /* it has */
    atomic_int calls[INJECT_KIND_COUNT];
    atomic_int left_open; /* descriptors at its exit that were not there at its start */
    atomic_int exited;    /* by exit(), which counts them */
};

#endif
