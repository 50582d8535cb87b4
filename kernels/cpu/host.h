/* What programs that use the library do differently for each target: memory, time, threads. */
#ifndef HOST_H
#define HOST_H

#include "threads.h"

#include <errno.h>
#include <time.h>

#define PLAN_ABOUT                                                                                 \
    "It runs a thread a core, bound to it, as fuseplan measures; taskset(1) chooses the cores.\n"  \
    "OMP_NUM_THREADS and the like are not used.\n\n"

static inline void *device_new(size_t bytes)
{
    enum { LINE = 64 };
    void *memory = NULL;
    if (posix_memalign(&memory, LINE, bytes) != 0) {
        fprintf(stderr, "out of memory: %zu bytes\n", bytes);
        exit(EXIT_FAILURE);
    }
    memset(memory, 0, bytes);
    return memory;
}

static inline void device_delete(void *memory)
{
    free(memory);
}

static inline void device_write(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static inline void device_read(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Milliseconds of one pass. */
static inline double device_time(void (*pass)(void *stream))
{
    double before = seconds();
    pass(NULL);
    return 1e3 * (seconds() - before);
}

/* OpenMP reads its settings before main(), so the program starts itself again with them. */
static inline void device_begin(char **argv)
{
    if (fp_threads_are_set(environ))
        return;
    for (char **variable = environ; *variable != NULL; variable++)
        if (fp_is_about_threads(*variable))
            fprintf(stderr, "%s: '%s' is not used; taskset(1) chooses the cores\n",
                    program_invocation_short_name, *variable);
    fp_unbind();
    execve("/proc/self/exe", argv, fp_thread_environment(environ, omp_get_num_procs(), true));
    fprintf(stderr, "%s: cannot start again with a thread a core: %s\n",
            program_invocation_short_name, strerror(errno));
    exit(EXIT_FAILURE);
}

#endif
