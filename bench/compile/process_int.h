/* What process.c and supervisor.c share. */
#ifndef FUSEPLAN_BENCH_COMPILE_PROCESS_INT_H
#define FUSEPLAN_BENCH_COMPILE_PROCESS_INT_H

#include "bench/compile/compile.h"

#include <sys/types.h>

/* The child's side of process_start(), right after fork(): starts the program, whose stdout goes to
 * `answers` and whose stderr to `output`, outlives it to end all that it leaves behind, and ends as
 * it did.  On SIGTERM, and where `parent` ends, all of it ends. */
_Noreturn void supervisor_run(const struct process_spec *spec, pid_t parent, int answers,
                              int output);

#endif
