/* The section of base.h on what code of others may do in this process.  Include base.h. */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* ---- sandbox.c: what code of others may do in this process --------------------------------------
 *
 * It reads system directories and one directory more, and writes files below another one, if any,
 * as far as the kernel can keep it to that (Landlock).  It computes and starts threads, and does
 * nothing to other processes, starts none, sends itself no signal by which others end a process,
 * opens no socket and changes no limit (a filter of system calls).  Files and sockets that are open
 * already stay usable.  None of it can be undone.  Only calls of the system take longer, by some
 * 35 ns. */

enum { SANDBOX_FILES = 1, SANDBOX_CALLS = 2, SANDBOX_ALL = 3 };

/* By these an administrator, a scheduler, a limit or the system's lack of memory ends a process. */
#define SIGNALS_OF_OTHERS SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXCPU

/* Before threads are started: threads that run already are not confined.  writable may be null.
 * Returns what the process is kept from now. */
unsigned sandbox_enter(const char *readable, const char *writable);

/* What a process of this user can be kept from. */
unsigned sandbox_try(void);

/* Whether FUSEPLAN_SANDBOX does not say "off".  Another word is STATUS_USAGE. */
int sandbox_wanted(bool *wanted, struct status *st);

/* ---- call_filter.c: which calls of the system are left to this process --------------------------
 *
 * What computes, reads files, and talks over descriptors that are open already.  All else fails:
 * calls on other processes, new processes and programs, sockets, every change to a file or to its
 * attributes unless `writes` is set, which leaves opening for writing and removing.
 *
 * Holds for the calling thread and the threads that it starts; false where the kernel cannot. */
bool filter_calls(bool writes);
