/* What the worker's program tells of CUDA without serving: each call is a process of its own, so
 * that its parent never loads a driver or a compiler. */
#ifndef FUSEPLAN_BENCH_CUDA_PROBE_INT_H
#define FUSEPLAN_BENCH_CUDA_PROBE_INT_H

#include "base/base.h"

#include <jansson.h>

/* ---- cuda_probe.c: `fuseplan-worker --cuda-probe N` ---------------------------------------------
 *
 * Prints one JSON object: {"name", "uuid", "major", "minor", "units", "memory" in bytes, "cuda" as
 * 13000 for 13.0} and what nvml_report() adds, or {"problem"}.  Makes no context. */
int cuda_probe(int index);

/* ---- nvrtc.c: the compiler as a library ---------------------------------------------------------
 *
 *   fuseplan-worker --nvrtc-version                       prints {"library", "major", "minor"}
 *   fuseplan-worker --nvrtc LIBRARY OPTION... -o OUT SRC  compiles; what it says goes to stderr */
int nvrtc_version(void);
int nvrtc_compile(int argc, char **argv);

/* ---- cublas.c: the library of products ----------------------------------------------------------
 *
 *   fuseplan-worker --cublas-version  prints {"library", "version" as 130100 for 13.1.0} */
int cublas_version(void);

#endif
