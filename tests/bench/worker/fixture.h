/* A worker on a device of the suite's own: the CPU's memory, and kernels that compute with the
 * oracle or go wrong as ../fake/kernels.h says. */
#ifndef FUSEPLAN_TESTS_BENCH_WORKER_FIXTURE_H
#define FUSEPLAN_TESTS_BENCH_WORKER_FIXTURE_H

#include "bench/worker/worker_int.h"
#include "tests/bench/fake/kernels.h"
#include "tests/bench/fixture.h"

#include <sys/socket.h>
#include <unistd.h>

struct function {
    struct fake_code code;
};

struct replay {
    int count;
    struct launch launches[];
};

static struct worker worker;
static int parent; /* the other end of the worker's channel */

static struct {
    int held;     /* allocations not freed */
    int allocs;   /* ever */
    int fails_at; /* the allocation that fails; 0: none */
    int uploads, copies, loads;
    double run_s; /* what each run says it took */
    struct function *loaded[8];
} device;

/* The path is the kind of the code, and whatever tells it from others. */
static inline int fake_load(struct device *d, const char *path, const char *symbol,
                            struct function **out, struct status *st)
{
    (void)d;
    *out = NULL;
    if (strcmp(path, "lost") == 0)
        return status_set(st, STATUS_LAUNCH, "cannot load it");
    struct function *f = mem_alloc(1, sizeof(*f));
    ck_assert_int_eq(sscanf(path, "%15[a-z]", f->code.kind), 1);
    ck_assert_int_eq(sscanf(symbol, "segment_%d_%d_", &f->code.first, &f->code.last), 2);
    ck_assert_uint_lt(device.loads, ARRAY_LEN(device.loaded));
    device.loaded[device.loads++] = f;
    *out = f;
    return 0;
}

static inline int fake_alloc(struct device *d, int64_t elements, void **out, struct status *st)
{
    *out = NULL;
    if (++device.allocs == device.fails_at)
        return status_set(st, STATUS_UNFIT, "no room");
    device.held++;
    return device_cpu.alloc(d, elements, out, st);
}

static inline void fake_free(struct device *d, void *memory)
{
    device.held -= memory != NULL;
    device_cpu.free(d, memory);
}

static inline void fake_upload(struct device *d, void *to, const float *from, int64_t elements)
{
    device.uploads++;
    device_cpu.upload(d, to, from, elements);
}

static inline const void *fake_view(struct device *d, const void *memory, int64_t elements)
{
    return device_cpu.view(d, memory, elements);
}

static inline void fake_poison(struct device *d, void *memory, int64_t elements)
{
    device_cpu.poison(d, memory, elements);
}

static inline void fake_copy(struct device *d, void *to, const void *from, int64_t elements)
{
    (void)d;
    device.copies++;
    memcpy(to, from, (size_t)elements * sizeof(float));
}

static inline int fake_prepare(struct device *d, const struct launch *launches, int count,
                               struct replay **out, struct status *st)
{
    (void)d;
    (void)st;
    size_t bytes = (size_t)count * sizeof(*launches);
    *out = mem_alloc(1, sizeof(**out) + bytes);
    (*out)->count = count;
    memcpy((*out)->launches, launches, bytes);
    return 0;
}

static inline void fake_release(struct replay *r)
{
    free(r);
}

static inline void run_launch(const struct launch *l)
{
    const struct workload *w = &worker.w;
    const struct block_lists *b = &w->blocks;
    unsigned sync[1] = {0};
    struct fp_args a = {.batch = w->batch,
                        .seq_len = w->seq_len,
                        .heads = w->heads,
                        .head_size = w->head_size,
                        .ffn = w->ffn,
                        .lengths = w->lengths,
                        .eps = (float)w->eps,
                        .mask = {.lists = b->lists,
                                 .blocks = b->blocks,
                                 .start = b->start,
                                 .full = b->full,
                                 .key_block = b->key_block,
                                 .bits = b->bits,
                                 .words = (const void *)b->words},
                        .sync = sync};
    memcpy(a.tensor, l->tensor, sizeof(a.tensor));
    memcpy(a.weight, l->weight, sizeof(a.weight));
    fake_code_run((struct fake_code *)(uintptr_t)&l->function->code, &a);
}

static inline int fake_run(struct replay *r, int first, int count, struct status *st)
{
    (void)st;
    for (int i = first; i < first + count; i++)
        run_launch(&r->launches[i]);
    return 0;
}

static inline int fake_time(struct replay *r, int repeats, int samples, double *seconds,
                            struct status *st)
{
    for (int i = 0; i < samples; i++) {
        for (int n = 0; n < repeats; n++)
            fake_run(r, 0, r->count, st);
        seconds[i] = device.run_s * repeats;
    }
    return 0;
}

static const struct device_ops fake_ops = {.load = fake_load,
                                           .alloc = fake_alloc,
                                           .free = fake_free,
                                           .upload = fake_upload,
                                           .view = fake_view,
                                           .poison = fake_poison,
                                           .copy = fake_copy,
                                           .prepare = fake_prepare,
                                           .release = fake_release,
                                           .run = fake_run,
                                           .time = fake_time};

/* Two layers, seed 1. */
static inline void worker_setup(void)
{
    struct status st = STATUS_INIT;
    int ends[2];
    const struct inputs inputs = {.seed = 1};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    parent = ends[0];
    worker.channel = ends[1];
    device.run_s = 1e-3;
    worker.ops = &fake_ops;
    worker.target = TARGET_CPU;
    small_workload(&worker.w);
    ck_assert_int_eq(device_cpu.open(0, &worker.w, &worker.device, &st), 0);
    ck_assert_int_eq(bank_init(&worker.bank, &worker.w, &fake_ops, worker.device, inputs, &st), 0);
    reference_init(&worker.reference, &worker.w, inputs);
}

static inline void worker_teardown(void)
{
    program_forget(&worker);
    reference_release(&worker.reference);
    bank_release(&worker.bank);
    ck_assert_int_eq(device.held, 0);
    device_cpu.close(worker.device);
    workload_release(&worker.w);
    close(worker.channel);
    close(parent);
}

/* Tensor t of a layer on the device; until the next call. */
static inline const float *tensor_of(int layer, int t)
{
    return bank_read(&worker.bank, layer, t);
}

#endif
