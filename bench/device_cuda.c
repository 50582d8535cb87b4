#include "bench/cuda_driver_int.h"
#include "bench/worker_int.h"
#include "kernels/cuda/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct function {
    char *path; /* owned */
    struct CUmod_st *module;
    struct CUfunc_st *code;
};

/* Memory that launches share, one after another.  What was too small stays: replays hold it. */
struct scratch {
    unsigned long long at;
    int64_t bytes;
};

struct device {
    const struct cuda_driver *cu;
    const struct workload *w; /* borrowed */
    int element_bytes;
    int units;        /* multiprocessors */
    int unit_threads; /* that one can hold */
    int cache_bytes;  /* of the second level */
    int shared_bytes; /* that a thread block may have */
    struct CUstream_st *stream;
    struct CUevent_st *start, *end;
    struct function **functions;
    int function_count;
    struct fp_args common; /* what all launches have alike */
    struct scratch sync, workspace;
};

struct node {
    const struct function *function;
    struct fp_args args;
    struct resources resources;
    bool cooperative;
};

struct replay {
    struct device *device;
    struct CUgraphExec_st *once, *often; /* often: `times` times as one graph, or null */
    int times;
    int count;
    struct node nodes[];
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* After a failure of running code nothing works in this process any more. */
static void end_worker(const struct cuda_driver *cu, int error, const char *what)
{
    struct status st = STATUS_INIT;
    cuda_check(cu, error, STATUS_LAUNCH, what, &st);
    fprintf(stderr, "%s\n", st.message);
    fflush(stderr);
    _Exit(EXIT_FAILURE);
}

/* For calls that fail only when code that ran before them failed. */
static void must(const struct device *d, int error, const char *what)
{
    if (error != CUDA_SUCCESS)
        end_worker(d->cu, error, what);
}

static void finish(const struct device *d, const char *what)
{
    must(d, d->cu->cuStreamSynchronize(d->stream), what);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static unsigned long long address(const void *memory)
{
    return (unsigned long long)(uintptr_t)memory;
}

static void *pointer(unsigned long long at)
{
    return (void *)(uintptr_t)at;
}

static int take(struct device *d, int64_t bytes, unsigned long long *out, struct status *st)
{
    char text[32];
    int error = d->cu->cuMemAlloc(out, (size_t)bytes);
    if (error == CUDA_ERROR_OUT_OF_MEMORY)
        return status_set(st, STATUS_ENVIRONMENT, "out of GPU memory: %s more is needed",
                          number_bytes((uint64_t)bytes, text));
    return cuda_check(d->cu, error, STATUS_ENVIRONMENT, "cannot allocate GPU memory", st);
}

static int cuda_alloc(struct device *d, int64_t elements, void **out, struct status *st)
{
    unsigned long long at = 0;
    int result = take(d, elements * d->element_bytes, &at, st);
    *out = pointer(at);
    return result;
}

static void cuda_free(struct device *d, void *memory)
{
    if (memory != NULL)
        d->cu->cuMemFree(address(memory));
}

static int cuda_upload(struct device *d, void *to, const float *from, int64_t elements,
                       struct status *st)
{
    (void)st;
    size_t bytes = (size_t)(elements * d->element_bytes);
    void *packed = mem_alloc(bytes, 1);
    elements_pack(d->w->dtype, from, elements, packed);
    must(d, d->cu->cuMemcpyHtoDAsync(address(to), packed, bytes, d->stream), "copying to the GPU");
    finish(d, "copying to the GPU");
    free(packed);
    return 0;
}

static int cuda_download(struct device *d, float *to, const void *from, int64_t elements,
                         struct status *st)
{
    (void)st;
    size_t bytes = (size_t)(elements * d->element_bytes);
    void *packed = mem_alloc(bytes, 1);
    must(d, d->cu->cuMemcpyDtoHAsync(packed, address(from), bytes, d->stream),
         "copying from the GPU");
    finish(d, "copying from the GPU");
    elements_unpack(d->w->dtype, packed, elements, to);
    free(packed);
    return 0;
}

/* All bits set are a NaN of every type. */
static int cuda_poison(struct device *d, void *memory, int64_t elements, struct status *st)
{
    (void)st;
    must(d,
         d->cu->cuMemsetD8Async(address(memory), 0xff, (size_t)(elements * d->element_bytes),
                                d->stream),
         "filling GPU memory");
    return 0;
}

static int copy_over(struct device *d, const void *from, size_t bytes, unsigned long long *out,
                     struct status *st)
{
    *out = 0;
    if (bytes == 0)
        return 0;
    if (take(d, (int64_t)bytes, out, st) != 0)
        return -1;
    must(d, d->cu->cuMemcpyHtoDAsync(*out, from, bytes, d->stream), "copying to the GPU");
    finish(d, "copying to the GPU");
    return 0;
}

static int reserve(struct device *d, struct scratch *s, int64_t bytes, struct status *st)
{
    if (bytes <= s->bytes)
        return 0;
    if (take(d, bytes, &s->at, st) != 0)
        return -1;
    s->bytes = bytes;
    must(d, d->cu->cuMemsetD8Async(s->at, 0, (size_t)bytes, d->stream), "filling GPU memory");
    return 0;
}

/* ---- open: what all launches have alike ------------------------------------------------------ */

/* Every tensor of a layer, x and two flows beside it, the weights of all layers. */
static int check_memory(struct device *d, struct status *st)
{
    double need = 0;
    size_t have, all;
    char need_text[32], have_text[32];
    for (int t = 0; t < TENSOR_COUNT; t++)
        need += (double)tensor_elements(t, d->w) * d->element_bytes;
    need += 2.0 * (double)tensor_elements(TENSOR_X, d->w) * d->element_bytes;
    for (int i = 0; i < WEIGHT_COUNT; i++)
        need += (double)weight_elements((enum weight_id)i, d->w) * d->element_bytes * d->w->layers;
    must(d, d->cu->cuMemGetInfo(&have, &all), "asking for the GPU's memory");
    if (need <= (double)have)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT,
                      "this workload needs %s of GPU memory, and %s is available; choose a smaller "
                      "batch, sequence length or number of layers",
                      number_bytes((uint64_t)need, need_text), number_bytes(have, have_text));
}

struct ranked {
    int list, entries;
};

static int by_entries(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->entries != y->entries ? y->entries - x->entries : x->list - y->list;
}

/* Query blocks with many key blocks first, so that none of them is left for the end. */
static int *longest_first(const struct block_lists *b)
{
    int n = b->lists * b->blocks;
    struct ranked *ranked = mem_alloc((size_t)n, sizeof(*ranked));
    int *order = mem_alloc((size_t)n, sizeof(*order));
    for (int i = 0; i < n; i++)
        ranked[i] = (struct ranked){i, b->start[i + 1] - b->start[i]};
    qsort(ranked, (size_t)n, sizeof(*ranked), by_entries);
    for (int i = 0; i < n; i++)
        order[i] = ranked[i].list;
    free(ranked);
    return order;
}

static int copy_mask(struct device *d, struct status *st)
{
    const struct block_lists *b = &d->w->blocks;
    size_t n = (size_t)b->lists * (size_t)b->blocks, entries = (size_t)b->start[n];
    int *order = longest_first(b);
    struct {
        const void *from;
        size_t bytes;
        unsigned long long at;
    } parts[] = {
        {b->start, (n + 1) * sizeof(int), 0},
        {b->full, n * sizeof(int), 0},
        {b->key_block, entries * sizeof(int), 0},
        {b->bits, entries * sizeof(int), 0},
        {b->words, (size_t)b->bit_blocks * MASK_BLOCK * sizeof(uint64_t), 0},
        {order, n * sizeof(int), 0},
    };
    int result = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts) && result == 0; i++)
        result = copy_over(d, parts[i].from, parts[i].bytes, &parts[i].at, st);
    d->common.mask = (struct fp_blocks){.lists = b->lists,
                                        .blocks = b->blocks,
                                        .start = pointer(parts[0].at),
                                        .full = pointer(parts[1].at),
                                        .key_block = pointer(parts[2].at),
                                        .bits = pointer(parts[3].at),
                                        .words = pointer(parts[4].at),
                                        .order = pointer(parts[5].at)};
    free(order);
    return result;
}

/* Where there are lengths, the rows of real tokens are listed and no other row is computed. */
static int copy_lengths(struct device *d, struct status *st)
{
    const struct workload *w = d->w;
    unsigned long long rows_at, lengths_at;
    d->common.tokens = (int)workload_tokens(w);
    if (w->lengths == NULL)
        return 0;
    int *rows = mem_alloc((size_t)d->common.tokens, sizeof(*rows)), n = 0;
    for (int b = 0; b < w->batch; b++)
        for (int s = 0; s < w->lengths[b]; s++)
            rows[n++] = b * w->seq_len + s;
    int result = copy_over(d, rows, (size_t)n * sizeof(*rows), &rows_at, st);
    if (result == 0)
        result = copy_over(d, w->lengths, (size_t)w->batch * sizeof(*w->lengths), &lengths_at, st);
    if (result == 0) {
        d->common.token_row = pointer(rows_at);
        d->common.lengths = pointer(lengths_at);
    }
    free(rows);
    return result;
}

static int start_device(struct device *d, int index, struct status *st)
{
    const struct cuda_driver *cu = d->cu;
    struct CUctx_st *context;
    int device;
    static const char what[] = "cannot open the GPU";
    if (cuda_check(cu, cu->cuDeviceGet(&device, index), STATUS_ENVIRONMENT, what, st) != 0 ||
        cuda_check(cu, cu->cuDevicePrimaryCtxRetain(&context, device), STATUS_ENVIRONMENT, what,
                   st) != 0 ||
        cuda_check(cu, cu->cuCtxSetCurrent(context), STATUS_ENVIRONMENT, what, st) != 0)
        return -1;
    const struct {
        int attribute, *value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &d->units},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &d->unit_threads},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &d->cache_bytes},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &d->shared_bytes},
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        must(d, cu->cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, device), what);
    must(d, cu->cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING), what);
    must(d, cu->cuEventCreate(&d->start, 0), what);
    must(d, cu->cuEventCreate(&d->end, 0), what);
    return 0;
}

static void cuda_close(struct device *d)
{
    for (int i = 0; d != NULL && i < d->function_count; i++) {
        free(d->functions[i]->path);
        free(d->functions[i]);
    }
    if (d != NULL)
        free(d->functions);
    free(d); /* the context ends with its process */
}

static int cuda_open(int index, const struct workload *w, struct device **out, struct status *st)
{
    struct device *d = mem_alloc(1, sizeof(*d));
    d->w = w;
    d->element_bytes = dtypes[w->dtype].bytes;
    d->common = (struct fp_args){.batch = w->batch,
                                 .seq_len = w->seq_len,
                                 .heads = w->heads,
                                 .head_size = w->head_size,
                                 .ffn = w->ffn,
                                 .eps = (float)w->eps};
    *out = NULL;
    if (cuda_driver_open(&d->cu, st) != 0 || start_device(d, index, st) != 0 ||
        check_memory(d, st) != 0 || copy_mask(d, st) != 0 || copy_lengths(d, st) != 0) {
        cuda_close(d);
        return -1;
    }
    *out = d;
    return 0;
}

/* ---- load ------------------------------------------------------------------------------------ */

static int cuda_load(struct device *d, const char *path, const char *symbol,
                     const struct function **out, struct status *st)
{
    *out = NULL;
    for (int i = 0; i < d->function_count && *out == NULL; i++)
        if (strcmp(d->functions[i]->path, path) == 0)
            *out = d->functions[i];
    if (*out != NULL)
        return 0;

    struct buf image;
    struct function f = {.module = NULL};
    buf_init(&image);
    int result = file_read(path, 0, &image, st);
    if (result == 0)
        result = cuda_check(d->cu, d->cu->cuModuleLoadData(&f.module, image.ptr), STATUS_LAUNCH,
                            "cannot load it", st);
    buf_release(&image);
    if (result == 0)
        result = cuda_check(d->cu, d->cu->cuModuleGetFunction(&f.code, f.module, symbol),
                            STATUS_LAUNCH, "cannot find its kernel", st);
    if (result != 0)
        return -1;
    f.path = mem_strdup(path);
    struct function *kept = mem_alloc(1, sizeof(*kept));
    *kept = f;
    d->functions = mem_resize(d->functions, (size_t)d->function_count + 1, sizeof(*d->functions));
    d->functions[d->function_count++] = kept;
    *out = kept;
    return 0;
}

/* ---- prepare --------------------------------------------------------------------------------- */

/* How the device divides the work: grid, shared memory, and what the function takes by itself. */
static int lay_out(struct device *d, const struct function *f, const struct cuda_launch *l,
                   struct node *out, struct status *st)
{
    const struct cuda_driver *cu = d->cu;
    struct resources *r = &out->resources;
    int blocks = 0;
    if (l->shared_bytes > d->shared_bytes)
        return status_set(st, STATUS_UNFIT,
                          "it takes %d bytes of shared memory, and a thread block of this GPU may "
                          "have %d",
                          l->shared_bytes, d->shared_bytes);
    if (cuda_check(cu,
                   cu->cuFuncSetAttribute(f->code, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          l->shared_bytes),
                   STATUS_LAUNCH, "cannot give it shared memory", st) != 0)
        return -1;
    cu->cuFuncGetAttribute(&r->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f->code);
    cu->cuFuncGetAttribute(&r->spill_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f->code);
    cu->cuFuncGetAttribute(&r->shared_static_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f->code);
    cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f->code, l->threads,
                                                    (size_t)l->shared_bytes);
    if (blocks == 0)
        return status_set(
            st, STATUS_UNFIT,
            "a thread block of %d threads, %d registers and %d bytes of shared memory "
            "does not fit this GPU",
            l->threads, r->registers, l->shared_bytes);
    int64_t most = l->cooperative ? (int64_t)blocks * d->units : INT32_MAX;
    int64_t grid = l->tiles < most ? l->tiles : most;
    r->shared_dynamic_bytes = l->shared_bytes;
    r->grid[0] = (int)grid;
    r->block[0] = l->threads;
    r->grid[1] = r->grid[2] = r->block[1] = r->block[2] = 1;
    r->occupancy = blocks * l->threads / (double)d->unit_threads;
    out->function = f;
    out->cooperative = l->cooperative;
    return 0;
}

static int make_node(struct device *d, const struct launch *l, struct node *out, struct status *st)
{
    struct cuda_launch how;
    choice_launch(l->choice, d->w, &how);
    if (lay_out(d, l->function, &how, out, st) != 0 ||
        reserve(d, &d->sync, how.sync_words * (int64_t)sizeof(unsigned), st) != 0 ||
        reserve(d, &d->workspace, how.workspace_bytes, st) != 0)
        return -1;
    out->args = d->common;
    for (int t = 0; t < TENSOR_COUNT; t++)
        out->args.tensor[t] = l->tensor[t];
    for (int i = 0; i < WEIGHT_COUNT; i++)
        out->args.weight[i] = l->weight[i];
    out->args.sync = pointer(d->sync.at);
    out->args.workspace = pointer(d->workspace.at);
    return 0;
}

static int launch_node(const struct device *d, struct node *n)
{
    const struct resources *r = &n->resources;
    void *params[] = {&n->args};
    unsigned grid = (unsigned)r->grid[0], block = (unsigned)r->block[0];
    unsigned shared = (unsigned)r->shared_dynamic_bytes;
    if (n->cooperative)
        return d->cu->cuLaunchCooperativeKernel(n->function->code, grid, 1, 1, block, 1, 1, shared,
                                                d->stream, params);
    return d->cu->cuLaunchKernel(n->function->code, grid, 1, 1, block, 1, 1, shared, d->stream,
                                 params, NULL);
}

/* All nodes `times` times as one graph. */
static int capture(struct replay *r, int times, struct CUgraphExec_st **out, struct status *st)
{
    const struct device *d = r->device;
    struct CUgraph_st *graph = NULL;
    int error = d->cu->cuStreamBeginCapture(d->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), ended;
    *out = NULL;
    for (int i = 0; i < times * r->count && error == CUDA_SUCCESS; i++)
        error = launch_node(d, &r->nodes[i % r->count]);
    ended = d->cu->cuStreamEndCapture(d->stream, &graph);
    if (error == CUDA_SUCCESS)
        error = ended;
    if (error == CUDA_SUCCESS)
        error = d->cu->cuGraphInstantiate(out, graph, 0);
    if (graph != NULL)
        d->cu->cuGraphDestroy(graph);
    return cuda_check(d->cu, error, STATUS_LAUNCH, "cannot be launched", st);
}

static void cuda_release(struct replay *r)
{
    if (r == NULL)
        return;
    if (r->once != NULL)
        r->device->cu->cuGraphExecDestroy(r->once);
    if (r->often != NULL)
        r->device->cu->cuGraphExecDestroy(r->often);
    free(r);
}

static int cuda_prepare(struct device *d, const struct launch *launches, int count,
                        struct replay **out, struct status *st)
{
    struct replay *r = mem_alloc(1, sizeof(*r) + (size_t)count * sizeof(r->nodes[0]));
    r->device = d;
    r->count = count;
    int result = 0;
    for (int i = 0; i < count && result == 0; i++)
        result = make_node(d, &launches[i], &r->nodes[i], st);
    /* A wrong candidate may have left marks behind. */
    if (result == 0)
        must(d, d->cu->cuMemsetD8Async(d->sync.at, 0, (size_t)d->sync.bytes, d->stream),
             "filling GPU memory");
    if (result == 0)
        result = capture(r, 1, &r->once, st);
    if (result != 0) {
        cuda_release(r);
        r = NULL;
    }
    *out = r;
    return result;
}

static void cuda_resources(const struct replay *r, struct resources *out)
{
    *out = r->nodes[0].resources;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Starting a graph takes some microseconds of the host's time, which must not show where a graph
 * takes hardly more: many repeats run as graphs of at least NODES launches. */
static int cuda_run(struct replay *r, int repeats, double *seconds, struct status *st)
{
    enum { NODES = 100 };
    const struct device *d = r->device;
    int times = (NODES + r->count - 1) / r->count;
    if (r->often == NULL && repeats >= times && times > 1) {
        if (capture(r, times, &r->often, st) != 0)
            return -1;
        r->times = times;
    }
    must(d, d->cu->cuEventRecord(d->start, d->stream), "starting the clock");
    for (int left = repeats; left > 0;) {
        bool often = r->often != NULL && left >= r->times;
        must(d, d->cu->cuGraphLaunch(often ? r->often : r->once, d->stream), "launching");
        left -= often ? r->times : 1;
    }
    must(d, d->cu->cuEventRecord(d->end, d->stream), "stopping the clock");
    finish(d, "running");
    float ms = 0;
    must(d, d->cu->cuEventElapsedTime(&ms, d->start, d->end), "reading the clock");
    *seconds = ms * 1e-3;
    return 0;
}

static int64_t cuda_cache_bytes(struct device *d)
{
    return d->cache_bytes;
}

const struct device_ops device_cuda = {
    .open = cuda_open,
    .close = cuda_close,
    .load = cuda_load,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .poison = cuda_poison,
    .prepare = cuda_prepare,
    .release = cuda_release,
    .run = cuda_run,
    .resources = cuda_resources,
    .cache_bytes = cuda_cache_bytes,
};
