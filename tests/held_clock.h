/* The clock of a suite's process, which stands until a file is there: what a deadline is to end has
 * begun by then, however slow the machine is. */
#ifndef FUSEPLAN_TESTS_HELD_CLOCK_H
#define FUSEPLAN_TESTS_HELD_CLOCK_H

#include "base/base.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static char clock_awaits[256];                /* "": the clock goes on */
static volatile sig_atomic_t clock_skipped_s; /* as while the process is suspended */

static inline void clock_await(const char *path)
{
    snprintf(clock_awaits, sizeof(clock_awaits), "%s", path);
}

/* Takes the place of the library's. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    enum { NS = 1000000000 };
    static long long stands_at, lost;
    int result = (int)syscall(SYS_clock_gettime, clock, out), before = errno;
    if (result != 0 || clock != CLOCK_MONOTONIC)
        return result;
    long long now = (out->tv_sec + clock_skipped_s) * (long long)NS + out->tv_nsec - lost;
    if (stands_at != 0) {
        lost += now - stands_at;
        now = stands_at;
    }
    stands_at = clock_awaits[0] != '\0' && access(clock_awaits, F_OK) != 0 ? now : 0;
    errno = before;
    out->tv_sec = now / NS;
    out->tv_nsec = now % NS;
    return 0;
}

#endif
