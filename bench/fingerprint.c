#include "bench/bench_int.h"

void fingerprint_text(const struct fingerprint *f, struct buf *out)
{
    buf_addf(out,
             "device=%s\nuuid=%s\ncapability=%s\nunits=%d\ndriver=%s\ncompiler=%s\nlibraries=%s\n"
             "protocol=%s\n",
             f->device, f->uuid, f->capability, f->units, f->driver, f->compiler, f->libraries,
             f->protocol);
}

void fingerprint_device(struct target_name target, struct fingerprint *out)
{
    const struct target_ops *found = target_ops_of(target.kind, STATUS_IGNORED);
    *out = (struct fingerprint){.units = 0};
    if (found != NULL)
        found->fingerprint(target.device, out);
}

struct build_target target_build(struct target_name target, const struct workload *w)
{
    struct fingerprint device;
    fingerprint_device(target, &device);
    return build_target_of(target.kind, device.capability, true, w);
}
