#include "bench/worker/device_cuda_int.h"

/* A pass in front of the one whose stamps are taken keeps the clocks up. */
int cuda_stamps(struct replay *r, struct launch_stamps *out, struct status *st)
{
    struct device *d = r->device;
    const size_t bytes = r->stamped_blocks * sizeof(*r->stamps);
    if (cuda_make_graphs(r, 1, st) != 0)
        return -1;
    cuda_must(d, d->cu->cuGraphLaunch(r->once, d->stream), "launching");
    if (bytes > 0)
        cuda_must(
            d,
            d->cu->cuMemsetD8Async((unsigned long long)(uintptr_t)r->stamps, 0, bytes, d->stream),
            "filling GPU memory");
    cuda_must(d, d->cu->cuGraphLaunch(r->once, d->stream), "launching");
    const struct fp_stamps *next =
        cuda_view(d, r->stamps, (int64_t)(bytes / (size_t)d->element_bytes));
    for (int i = 0; i < r->count; i++) {
        out[i] = (struct launch_stamps){r->nodes[i].stamped_blocks, next};
        next += out[i].blocks;
    }
    return 0;
}
