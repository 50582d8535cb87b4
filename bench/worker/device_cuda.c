#include "bench/worker/cublas_int.h"
#include "bench/worker/device_cuda_int.h"
#include "bench/worker/nvidia_int.h"

static int64_t cuda_cache_bytes(struct device *d)
{
    return d->cache_bytes;
}

/* How old conditions may be: they change slowly, and reading them may take as long as measuring a
 * small plan. */
#define CONDITIONS_HOLD_S 0.1

static void cuda_conditions(struct device *d, struct conditions *out)
{
    double now = clock_seconds();
    if (d->conditions_read_s == 0 || now - d->conditions_read_s > CONDITIONS_HOLD_S) {
        nvml_read(d->nvml, &d->conditions);
        d->conditions_read_s = now;
    }
    *out = d->conditions;
}

/* What fails shows when the device is opened. */
static void cuda_start(void)
{
    const struct cuda_driver *ignored;
    cuda_driver_open(&ignored, STATUS_IGNORED);
    json_decref(cublas_version()); /* the library, of 0.5 GB, stays loaded */
}

const struct device_ops device_cuda = {
    .start = cuda_start,
    .open = cuda_open,
    .close = cuda_close,
    .open_library = matmul_open,
    .load = cuda_load,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .write = cuda_write,
    .view = cuda_view,
    .poison = cuda_poison,
    .copy = cuda_copy_within,
    .hash = cuda_hash,
    .prepare = cuda_prepare,
    .release = cuda_release,
    .run = cuda_run,
    .time = cuda_time,
    .stamps = cuda_stamps,
    .resources = cuda_resources,
    .limits = cuda_limits,
    .cache_bytes = cuda_cache_bytes,
    .conditions = cuda_conditions,
    .undisturbed = true,
};
