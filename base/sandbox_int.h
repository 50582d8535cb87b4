/* What sandbox.c and call_filter.c share. */
#ifndef FUSEPLAN_BASE_SANDBOX_INT_H
#define FUSEPLAN_BASE_SANDBOX_INT_H

#include <stdbool.h>

/* ---- call_filter.c: which calls of the system are left to this process --------------------------
 *
 * What computes, reads files, and talks over descriptors that are open already.  All else fails:
 * calls on other processes, new processes and programs, sockets, every change to a file or to its
 * attributes unless `writes` is set, which leaves opening for writing and removing.  No signal that
 * comes from outside where an administrator, a scheduler or the system ends a process can come from
 * this process itself.
 *
 * Holds for the calling thread and the threads that it starts; false where the kernel cannot. */
bool filter_calls(bool writes);

#endif
