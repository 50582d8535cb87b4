/* NVIDIA's management library, opened where it is needed and found. */
#ifndef FUSEPLAN_BENCH_NVML_INT_H
#define FUSEPLAN_BENCH_NVML_INT_H

#include "bench/bench.h"

#include <jansson.h>

/* ---- nvml.c ---------------------------------------------------------------------------------- */

struct nvml;

/* For the GPU of that UUID, as the driver API has it; null where there is no such library. */
struct nvml *nvml_open(const char uuid[64]);
void nvml_close(struct nvml *n);

/* Some 10 us on an H200, a few ms where the driver renews its figures, which it does by itself.
 * n may be null. */
void nvml_read(const struct nvml *n, struct conditions *out);

/* For doctor, which makes no context: "driver" its version, "mhz" and "max_mhz" of the
 * multiprocessors, "throttled" the reasons, empty where there are none, "processes" that compute on
 * it; what cannot be learned is left out. */
void nvml_report(const char uuid[64], json_t *out);

#endif
