#include "bench/worker/device_cuda_int.h"

/* ---- load ------------------------------------------------------------------------------------ */

/* Room was left for the code.  If there is none, another program took it, not the candidate. */
static int check_load(const struct device *d, int error, const char *what, struct status *st)
{
    bool memory = error == CUDA_ERROR_OUT_OF_MEMORY;
    return cuda_check(d->cu, error, memory ? STATUS_ENVIRONMENT : STATUS_LAUNCH, what, st);
}

int cuda_load(struct device *d, const char *path, const char *symbol, struct function **out,
              struct status *st)
{
    SCOPED_BUF image = BUF_INIT;
    struct CUmod_st *module = NULL;
    struct CUfunc_st *code = NULL;
    *out = NULL;
    int result = file_read(path, 0, &image, st);
    if (result == 0)
        result = check_load(d, d->cu->cuModuleLoadData(&module, image.ptr), "cannot load it", st);
    if (result == 0)
        result = check_load(d, d->cu->cuModuleGetFunction(&code, module, symbol),
                            "cannot find its kernel", st);
    if (result != 0)
        return -1;
    *out = mem_alloc(1, sizeof(**out));
    (*out)->code = code;
    return 0;
}

/* A launch takes memory for stacks and graphs, for which room is left too. */
static int check_launch(const struct device *d, int error, struct status *st)
{
    bool memory = error == CUDA_ERROR_OUT_OF_MEMORY && cuda_available(d) == 0;
    return cuda_check(d->cu, error, memory ? STATUS_ENVIRONMENT : STATUS_LAUNCH,
                      "cannot be launched", st);
}

/* ---- prepare --------------------------------------------------------------------------------- */

static struct cuda_launch_attribute cluster_of(int thread_blocks)
{
    return (struct cuda_launch_attribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                          .cluster = {(unsigned)thread_blocks, 1, 1}};
}

/* Thread blocks that the device holds at once.  The thread blocks of a cluster share a part of the
 * device, so that some multiprocessors may be left over. */
static int64_t resident_blocks(const struct device *d, const struct function *f,
                               const struct cuda_launch *l, int blocks)
{
    int clusters = 0, of = l->cluster;
    if (of == 0) /* one that the kernel's code names: 0 if it names none */
        d->cu->cuFuncGetAttribute(&of, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, f->code);
    if (of == 0)
        return (int64_t)blocks * d->units;
    struct cuda_launch_attribute cluster = cluster_of(of);
    const struct cuda_launch_config config = {.grid = {(unsigned)of, 1, 1},
                                              .block = {(unsigned)l->threads, 1, 1},
                                              .shared_bytes = (unsigned)l->shared_bytes,
                                              .attributes = &cluster,
                                              .attribute_count = 1};
    d->cu->cuOccupancyMaxActiveClusters(&clusters, f->code, &config);
    return (int64_t)clusters * of;
}

/* Dynamic shared memory of a thread block.  Where each has a multiprocessor to itself, it takes
 * more than half of the shared memory there, so that the launch may begin early: see
 * kernels/cuda/common.cuh. */
static int shared_bytes_of(const struct device *d, const struct cuda_launch *l)
{
    int half = d->shared_bytes / 2 + 1;
    bool spread = d->dependent && !l->cooperative && l->tiles <= d->units;
    return spread && l->shared_bytes < half ? half : l->shared_bytes;
}

/* Sets grid and thread block, and the resources that the function takes. */
static int lay_out(struct device *d, const struct function *f, const struct cuda_launch *how,
                   struct node *out, struct status *st)
{
    const struct cuda_driver *cu = d->cu;
    struct resources *r = &out->resources;
    struct cuda_launch spread = *how;
    const struct cuda_launch *l = &spread;
    int blocks = 0;
    spread.shared_bytes = shared_bytes_of(d, how);
    if (l->shared_bytes > d->shared_bytes)
        return status_set(st, STATUS_UNFIT,
                          "a thread block takes %d bytes of shared memory, and may have %d on this "
                          "GPU",
                          l->shared_bytes, d->shared_bytes);
    if (cuda_check(cu,
                   cu->cuFuncSetAttribute(f->code, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          l->shared_bytes),
                   STATUS_LAUNCH, "cannot get shared memory", st) != 0)
        return -1;
    cu->cuFuncGetAttribute(&r->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f->code);
    cu->cuFuncGetAttribute(&r->shared_static_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f->code);
    cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f->code, l->threads,
                                                    (size_t)l->shared_bytes);
    int64_t resident = resident_blocks(d, f, l, blocks);
    if (resident == 0)
        return status_set(
            st, STATUS_UNFIT,
            "a thread block of %d threads, %d registers and %d bytes of shared memory "
            "does not fit this GPU",
            l->threads, r->registers, l->shared_bytes);
    if (l->at_once && l->tiles > resident)
        return status_set(st, STATUS_UNFIT,
                          "its %lld thread blocks wait for each other, and this GPU holds %lld at "
                          "once",
                          (long long)l->tiles, (long long)resident);
    int64_t most = l->cooperative || l->persistent ? resident : INT32_MAX;
    int64_t grid = l->tiles < most ? l->tiles : most;
    r->shared_dynamic_bytes = l->shared_bytes;
    r->grid[0] = (int)grid;
    r->block[0] = l->threads;
    r->grid[1] = r->grid[2] = r->block[1] = r->block[2] = 1;
    r->occupancy = blocks * l->threads / (double)d->unit_threads;
    out->function = f;
    out->launch = *l;
    out->alone = resident <= d->units;
    return 0;
}

static int make_kernel(struct device *d, const struct launch *l, struct node *out,
                       struct status *st)
{
    struct cuda_launch how;
    struct workload w = *workload_of_kind(d->w, l->kind);
    w.lengths = NULL; /* memory has room for all rows */
    choice_launch(l->choice, &w, &how);
    how.tiling.packed = how.tiling.joined && l->packed;
    if (lay_out(d, l->function, &how, out, st) != 0 ||
        (how.tiling.rows > 0 &&
         cuda_tiles_find(d, l->kind, &how.tiling, &out->args.tiles, st) != 0) ||
        cuda_reserve(d, &d->sync, how.sync_words * (int64_t)sizeof(unsigned), st) != 0)
        return -1;
    return cuda_reserve(d, &d->workspace, how.workspace_bytes, st);
}

static struct fp_e4m3 e4m3_of(const struct launch_e4m3 *l, enum dtype dtype)
{
    const float factor = 1 / l->out_scale;
    uint16_t half = 0;
    if (dtypes[dtype].bytes == sizeof(half))
        elements_pack(dtype, &factor, 1, &half);
    return (struct fp_e4m3){.in = l->in,
                            .weight = l->weight,
                            .out = l->out,
                            .alpha = l->alpha,
                            .inverse = 1 / l->alpha,
                            .factors = (unsigned)half << 16 | half};
}

/* alike: the node of the same choice in another layer of the kind, or null. */
static int make_node(struct device *d, const struct launch *l, const struct node *alike,
                     struct node *out, struct status *st)
{
    int result = 0;
    if (alike != NULL)
        *out = *alike;
    else if (l->choice->impl->library)
        result = matmul_find(d, l, &out->matmul, st);
    else
        result = make_kernel(d, l, out, st);
    if (result != 0)
        return -1;
    struct fp_tiles tiles = out->args.tiles;
    out->args = d->common;
    out->args.mask = d->masks[l->kind];
    out->args.tiles = tiles;
    if (l->packed) {
        out->args.tokens = (int)workload_tokens(d->w);
        out->args.unpacked = d->unpacked;
        out->args.offset = d->offset;
    }
    memcpy(out->args.tensor, l->tensor, sizeof(l->tensor));
    memcpy(out->args.weight, l->weight, sizeof(l->weight));
    out->args.e4m3 = e4m3_of(&l->e4m3, d->w->dtype);
    if (l->choice->stamped && out->matmul == NULL)
        out->stamped_blocks = out->resources.grid[0];
    return cuda_encode_maps(d, &out->launch, &out->args, &out->maps, st);
}

static int launch_node(const struct device *d, struct node *n, struct status *st)
{
    if (n->matmul != NULL)
        return matmul_launch(d, n->matmul, &n->args, st);
    const struct resources *r = &n->resources;
    void *params[] = {&n->stamps, &n->args, &n->maps}; /* without maps a kernel takes no third */
    struct cuda_launch_attribute attributes[2];
    unsigned count = 0;
    if (n->launch.cooperative || d->dependent)
        attributes[count++] = (struct cuda_launch_attribute){
            .id = n->launch.cooperative ? CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                                        : CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            .value = 1};
    if (n->launch.cluster > 0)
        attributes[count++] = cluster_of(n->launch.cluster);
    const struct cuda_launch_config config = {
        .grid = {(unsigned)r->grid[0], 1, 1},
        .block = {(unsigned)r->block[0], 1, 1},
        .shared_bytes = (unsigned)r->shared_dynamic_bytes,
        .stream = d->stream,
        .attributes = attributes,
        .attribute_count = count,
    };
    void **own = n->stamped_blocks > 0 ? params : params + 1;
    int error = d->cu->cuLaunchKernelEx(&config, n->function->code, own, NULL);
    return check_launch(d, error, st);
}

/* Makes one graph of all launches `times` times, which the caller destroys.  The capture is
 * relaxed because a library loads its kernels when it needs them. */
static int capture(struct replay *r, int times, struct CUgraphExec_st **out, struct status *st)
{
    const struct device *d = r->device;
    struct CUgraph_st *graph = NULL;
    int error = d->cu->cuStreamBeginCapture(d->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    int result = check_launch(d, error, st);
    *out = NULL;
    for (int i = 0; i < times * r->count && result == 0; i++)
        result = launch_node(d, &r->nodes[i % r->count], st);
    error = d->cu->cuStreamEndCapture(d->stream, &graph);
    if (result == 0 && error == CUDA_SUCCESS)
        error = d->cu->cuGraphInstantiate(out, graph, 0);
    if (result == 0)
        result = check_launch(d, error, st);
    if (graph != NULL)
        d->cu->cuGraphDestroy(graph);
    return result;
}

void cuda_release(struct replay *r)
{
    if (r == NULL)
        return;
    if (r->once != NULL)
        r->device->cu->cuGraphExecDestroy(r->once);
    if (r->often != NULL)
        r->device->cu->cuGraphExecDestroy(r->often);
    free(r);
}

/* A kernel may begin beside the one in front of it where its thread blocks cannot gather; see
 * kernels/cuda/common.cuh.  The last node's next one is the first, in a graph of many passes.  A
 * lone kernel takes the place of a second one, so that each that goes backwards is verified so. */
static void tell_order(struct replay *r)
{
    const int first = r->count == 1 ? 1 : 0;
    for (int i = 0; i < r->count; i++) {
        const struct node *next = &r->nodes[(i + 1) % r->count];
        r->nodes[i].args.early = next->alone && !next->launch.cooperative;
        r->nodes[i].args.backwards = fp_goes_backwards(
            &r->nodes[i].args, first + i, r->device->element_bytes, r->device->cache_bytes);
    }
}

/* Gives stamped nodes their places, one after another. */
static int place_stamps(struct replay *r, struct status *st)
{
    struct device *d = r->device;
    for (int i = 0; i < r->count; i++)
        r->stamped_blocks += (size_t)r->nodes[i].stamped_blocks;
    if (r->stamped_blocks == 0)
        return 0;
    if (cuda_reserve(d, &d->stamps, (int64_t)(r->stamped_blocks * sizeof(*r->stamps)), st) != 0)
        return -1;
    struct fp_stamps *next = r->stamps = cuda_pointer(d->stamps.at);
    for (int i = 0; i < r->count; i++) {
        r->nodes[i].stamps = next;
        next += r->nodes[i].stamped_blocks;
    }
    return 0;
}

int cuda_prepare(struct device *d, const struct launch *launches, int count, struct replay **out,
                 struct status *st)
{
    struct replay *r = mem_alloc(1, sizeof(*r) + (size_t)count * sizeof(r->nodes[0]));
    r->device = d;
    r->count = count;
    int result = 0;
    for (int i = 0, k; i < count && result == 0; i++) {
        for (k = 0; k < i && (launches[k].choice != launches[i].choice ||
                              launches[k].kind != launches[i].kind);)
            k++;
        result = make_node(d, &launches[i], k < i ? &r->nodes[k] : NULL, &r->nodes[i], st);
    }
    tell_order(r);
    if (result == 0)
        result = place_stamps(r, st);
    for (int i = 0; i < count; i++) { /* a reservation may have replaced an earlier one's memory */
        r->nodes[i].args.sync = cuda_pointer(d->sync.at);
        r->nodes[i].args.workspace = cuda_pointer(d->workspace.at);
    }
    /* A wrong candidate may have left marks behind. */
    if (result == 0 && d->sync.bytes > 0)
        cuda_must(d, d->cu->cuMemsetD8Async(d->sync.at, 0, (size_t)d->sync.bytes, d->stream),
                  "filling GPU memory");
    if (result != 0) {
        cuda_release(r);
        r = NULL;
    }
    *out = r;
    return result;
}

void cuda_resources(const struct replay *r, struct resources *out)
{
    *out = r->nodes[0].resources;
}

/* ---- run ------------------------------------------------------------------------------------- */

int cuda_run(struct replay *r, int first, int count, struct status *st)
{
    int result = 0;
    for (int i = first; i < first + count && result == 0; i++)
        result = launch_node(r->device, &r->nodes[i], st);
    if (result != 0)
        cuda_finish(r->device, "running"); /* an earlier launch may be what failed */
    return result;
}

/* A graph begins some time after the one in front of it has ended, and its first kernel waits for
 * that whole graph.  So the repeats of a sample run as few graphs, each of about NODES launches. */
int cuda_make_graphs(struct replay *r, int repeats, struct status *st)
{
    enum { NODES = 100 };
    const int graphs = (repeats * r->count + NODES - 1) / NODES, times = repeats / graphs;
    if (r->once == NULL && capture(r, 1, &r->once, st) != 0)
        return -1;
    if (times <= 1 || times == r->times)
        return 0;
    if (r->often != NULL)
        r->device->cu->cuGraphExecDestroy(r->often);
    r->often = NULL;
    if (capture(r, times, &r->often, st) != 0)
        return -1;
    r->times = times;
    return 0;
}

static double seconds_between(const struct device *d, struct CUevent_st *from,
                              struct CUevent_st *to)
{
    float ms = 0;
    cuda_must(d, d->cu->cuEventElapsedTime(&ms, from, to), "reading the clock");
    return ms * 1e-3;
}

/* All samples are queued at once, so that the GPU does not wait between them. */
int cuda_time(struct replay *r, int repeats, int samples, double *seconds, struct status *st)
{
    const struct device *d = r->device;
    if (cuda_make_graphs(r, repeats, st) != 0)
        return -1;
    cuda_must(d, d->cu->cuEventRecord(d->events[0], d->stream), "starting the clock");
    for (int i = 0; i < samples; i++) {
        for (int left = repeats; left > 0;) {
            bool often = r->often != NULL && left >= r->times;
            cuda_must(d, d->cu->cuGraphLaunch(often ? r->often : r->once, d->stream), "launching");
            left -= often ? r->times : 1;
        }
        cuda_must(d, d->cu->cuEventRecord(d->events[i + 1], d->stream), "stopping the clock");
    }
    cuda_finish(d, "running");
    for (int i = 0; i < samples; i++)
        seconds[i] = seconds_between(d, d->events[i], d->events[i + 1]);
    return 0;
}
