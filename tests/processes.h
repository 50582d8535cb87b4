/* Other processes, as tests wait for their ends. */
#ifndef FUSEPLAN_TESTS_PROCESSES_H
#define FUSEPLAN_TESTS_PROCESSES_H

#include "base/base.h"

#include <unistd.h>

/* A process's state as /proc shows it; 'X': there is none. */
static inline char pid_state(pid_t pid)
{
    char path[64], state = 'X';
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    if (f != NULL && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 'X';
    if (f != NULL)
        fclose(f);
    return state;
}

/* Whether it ends, which is waited for no longer than needed: by itself it would run for a minute
 * or for ever. */
static inline bool pid_ends(pid_t pid)
{
    for (double until = clock_seconds() + 20; clock_seconds() < until; usleep(1000))
        if (strchr("XZ", pid_state(pid)) != NULL)
            return true;
    return false;
}

/* Waits for a number that a process writes to a file, and a full stop. */
static inline pid_t pid_written(const char *path)
{
    long pid = 0;
    char stop = '\0';
    for (; stop != '.'; usleep(1000)) {
        FILE *f = fopen(path, "r");
        if (f != NULL && fscanf(f, "%ld%c", &pid, &stop) != 2)
            stop = '\0';
        if (f != NULL)
            fclose(f);
    }
    return (pid_t)pid;
}

#endif
