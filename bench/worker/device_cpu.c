#include "bench/wire/wire.h"
#include "bench/worker/worker_int.h"
#include "kernels/cpu/abi.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct function {
    fp_segment *run;
};

struct device {
    const struct workload *w; /* borrowed */
    struct packing packing;   /* owned */
    struct core_use use;      /* before the timing */
};

struct replay {
    int count;
    struct {
        fp_segment *run;
        struct fp_args args;
    } launches[];
};

static int cpu_open(int index, const struct workload *w, struct device **out, struct status *st)
{
    (void)index;
    (void)st;
    *out = mem_alloc(1, sizeof(**out));
    (*out)->w = w;
    packing_init(&(*out)->packing, w);
    return 0;
}

static void cpu_close(struct device *d)
{
    if (d != NULL)
        packing_release(&d->packing);
    free(d);
}

/* Ends this worker where another one could load what this one cannot: memory ran out, or the
 * cache's directory was removed and made again, and a sandbox knows it as it was when the worker
 * began. */
static void end_if_another_could(const char *path, const char *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool unreadable = fd < 0 && errno == EACCES;
    if (fd >= 0)
        close(fd);
    if (!unreadable && strstr(why, strerror(ENOMEM)) == NULL &&
        strstr(why, "out of memory") == NULL)
        return;
    fprintf(stderr, "cannot load '%s': %s\n", path, why);
    _Exit(EXIT_FAILURE);
}

/* A library stays loaded, because threads of its own may outlive a call. */
static int cpu_load(struct device *d, const char *path, const char *symbol, struct function **out,
                    struct status *st)
{
    (void)d;
    *out = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) /* a fault of its own repeats; dlerror() does not tell all others */
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *why = dlerror();
        end_if_another_could(path, why);
        return status_set(st, STATUS_LAUNCH, "cannot load it: %s", why);
    }
    fp_segment *run;
    *(void **)&run = dlsym(library, symbol);
    if (run == NULL) {
        dlclose(library);
        return status_set(st, STATUS_LAUNCH, "'%s' has no function '%s'", path, symbol);
    }
    *out = mem_alloc(1, sizeof(**out));
    (*out)->run = run;
    return 0;
}

/* Large memory is put on huge pages, so that times do not depend on which small pages the system
 * happens to have left. */
static int cpu_alloc(struct device *d, int64_t size, void **out, struct status *st)
{
    (void)d;
    enum { ALIGNMENT = 64, HUGE = 2 << 20 };
    size_t bytes = (size_t)size;
    char text[32];
    *out = NULL;
    if (posix_memalign(out, bytes >= HUGE ? HUGE : ALIGNMENT, bytes) != 0) {
        *out = NULL;
        return status_set(st, STATUS_ENVIRONMENT, "out of memory: a tensor needs %s",
                          number_bytes(bytes, text));
    }
    if (bytes >= HUGE)
        madvise(*out, bytes, MADV_HUGEPAGE); /* where it fails, small pages serve */
    return 0;
}

static void cpu_free(struct device *d, void *memory)
{
    (void)d;
    free(memory);
}

static void cpu_upload(struct device *d, void *to, enum dtype dtype, const float *from,
                       int64_t elements)
{
    (void)d;
    (void)dtype; /* fp32, the only one */
    memcpy(to, from, (size_t)elements * sizeof(float));
}

static const void *cpu_view(struct device *d, const void *memory, int64_t elements)
{
    (void)d;
    (void)elements;
    return memory;
}

static void cpu_poison(struct device *d, void *memory, int64_t elements)
{
    (void)d;
    memset(memory, 0xff, (size_t)elements * sizeof(float)); /* all bits set are a NaN */
}

_Static_assert(ARRAY_LEN(((struct fp_args *)NULL)->knob) == KNOB_MAX, "a kernel gets every knob");

static void fill_args(const struct device *d, const struct launch *l, struct fp_args *out)
{
    const struct workload *w = workload_of_kind(d->w, l->kind);
    const struct block_lists *b = &w->blocks;
    *out = (struct fp_args){
        .batch = w->batch,
        .seq_len = w->seq_len,
        .heads = w->heads,
        .head_size = w->head_size,
        .hidden = workload_hidden(w),
        .ffn = w->ffn,
        .eps = (float)w->eps,
        .lengths = w->lengths,
        .mask = {.lists = b->lists,
                 .blocks = b->blocks,
                 .start = b->start,
                 .full = b->full,
                 .key_block = b->key_block,
                 .bits = b->bits,
                 .words = b->words},
    };
    if (l->packed) {
        out->unpacked = d->packing.unpacked;
        out->offset = d->packing.offset;
    }
    for (int t = 0; t < TENSOR_COUNT; t++)
        out->tensor[t] = l->tensor[t];
    for (int i = 0; i < WEIGHT_MAX; i++)
        out->weight[i] = l->weight[i];
    const struct impl *impl = l->choice->impl;
    for (int k = 0; k < impl->knob_count; k++)
        out->knob[k] = impl->knobs[k].values[l->choice->schedule.pick[k]];
}

static int cpu_prepare(struct device *d, const struct launch *launches, int count,
                       struct replay **out, struct status *st)
{
    (void)st;
    struct replay *r =
        mem_alloc(1, sizeof(*r) + (size_t)count * sizeof(((struct replay *)NULL)->launches[0]));
    r->count = count;
    for (int i = 0; i < count; i++) {
        r->launches[i].run = launches[i].function->run;
        fill_args(d, &launches[i], &r->launches[i].args);
    }
    *out = r;
    return 0;
}

static void cpu_release(struct replay *r)
{
    free(r);
}

static int cpu_run(struct replay *r, int first, int count, struct status *st)
{
    (void)st;
    for (int i = first; i < first + count; i++)
        r->launches[i].run(&r->launches[i].args);
    return 0;
}

static int cpu_time(struct replay *r, int repeats, int samples, double *seconds, struct status *st)
{
    for (int s = 0; s < samples; s++) {
        double start = clock_seconds();
        for (int i = 0; i < repeats; i++)
            cpu_run(r, 0, r->count, st);
        seconds[s] = clock_seconds() - start;
    }
    return 0;
}

/* The second-level cache of each core, and of the third level at most CORE_SHARE_BYTES for each
 * core: a virtual machine reports a whole third level that it shares with others. */
static int64_t cpu_cache_bytes(struct device *d)
{
    (void)d;
    enum { CORE_SHARE_BYTES = 32 << 20 };
    long second = sysconf(_SC_LEVEL2_CACHE_SIZE), third = sysconf(_SC_LEVEL3_CACHE_SIZE);
    int64_t cores = cpu_threads(), share = cores * CORE_SHARE_BYTES;
    return cores * second + (third < share ? third : share);
}

static void cpu_watch(struct device *d)
{
    core_use_begin(&d->use);
}

static void cpu_conditions(struct device *d, struct conditions *out)
{
    core_use_end(&d->use, out);
}

const struct device_ops device_cpu = {
    .open = cpu_open,
    .close = cpu_close,
    .load = cpu_load,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_upload,
    .view = cpu_view,
    .poison = cpu_poison,
    .prepare = cpu_prepare,
    .release = cpu_release,
    .run = cpu_run,
    .time = cpu_time,
    .cache_bytes = cpu_cache_bytes,
    .watch = cpu_watch,
    .conditions = cpu_conditions,
};
