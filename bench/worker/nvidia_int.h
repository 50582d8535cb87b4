/* NVIDIA's libraries, opened when they are first needed: fuseplan builds and starts
 * without them. */
#ifndef FUSEPLAN_BENCH_NVIDIA_INT_H
#define FUSEPLAN_BENCH_NVIDIA_INT_H

#include "bench/bench.h"

#include <jansson.h>

/* ---- shared_library.c ------------------------------------------------------------------------ */

struct shared_symbol {
    const char *name;
    void **function; /* gets its address */
};

/* Opens a library for good: by its path, or, if that has no slash, from the loader's own places. On
 * failure *missing (may be null) names the symbol that the library lacks; it is null if there is no
 * library, and dlerror() says why. */
bool shared_open(const char *path, const struct shared_symbol *symbols, size_t count,
                 const char **missing);

/* Opens a library of the CUDA toolkit: the first of `names` (ends with null) found below
 * toolkit_root().  The loader's own places come last, because they may
 * hold another version than the user's toolkit.  Returns its path, which the caller frees,
 * or null. */
char *shared_open_toolkit(const char *const *names, const struct shared_symbol *symbols,
                          size_t count);

/* ---- nvml.c: NVIDIA's management library ----------------------------------------------------- */

struct nvml;

/* Opens NVML for the GPU of a UUID, as cuda_uuid() writes it.  Null if there is no NVML. */
struct nvml *nvml_open(const char uuid[64]);
void nvml_close(struct nvml *n);

/* Takes some 10 us on an H200, and a few ms when the driver renews its figures, which it does by
 * itself.  n may be null. */
void nvml_read(const struct nvml *n, struct conditions *out);

/* Adds to out what NVML tells without a CUDA context: "driver" (version), "mhz" and "max_mhz" of
 * the multiprocessors, "throttled" (reasons, may be empty), "processes" (number that compute on
 * it). A key is left out if its value is unknown. */
void nvml_report(const char uuid[64], json_t *out);

/* ---- cuda_probe.c, nvrtc.c, cublas.c: commands of the worker's program --------------------------
 *
 * Each runs in a process of its own, so that its parent never loads a driver or a compiler.  Those
 * that return JSON return a new object, or null where there is no such library.
 *
 *   --cuda-probe N
 *     {"name", "uuid", "major", "minor", "units", "cuda"} and what nvml_report() adds, or
 *     {"problem"}.  cuda is 13000 for 13.0.  Makes no context.
 *   --nvrtc-version
 *     {"library", "major", "minor"}
 *   --cublas-version
 *     {"library", "version"}; version is 130100 for 13.1.0.
 *   --nvrtc LIBRARY OPTION... -o OUT SRC
 *     Compiles; the compiler's messages go to stderr.  argv is what follows --nvrtc.  Returns the
 *     process's exit status. */
json_t *cuda_probe(int index);
json_t *nvrtc_version(void);
json_t *cublas_version(void);
int nvrtc_compile(int argc, char **argv);

#endif
