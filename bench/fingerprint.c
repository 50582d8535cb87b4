#include "bench/bench.h"

void fingerprint_text(const struct fingerprint *f, struct buf *out)
{
    buf_addf(out,
             "device=%s\nuuid=%s\ncapability=%s\nunits=%d\ndriver=%s\ncompiler=%s\nlibraries=%s\n"
             "protocol=%s\n",
             f->device, f->uuid, f->capability, f->units, f->driver, f->compiler, f->libraries,
             f->protocol);
}
