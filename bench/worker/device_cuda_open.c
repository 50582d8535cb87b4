#include "bench/worker/device_cuda_int.h"

/* Counts weights and tensors, except tensors (B,H,S,S): a plan that keeps scores in memory and
 * finds none is unfit by itself. */
static int check_memory(struct device *d, struct status *st)
{
    const struct chain *c = d->w->chain;
    double need = 0;
    uint64_t have = cuda_available(d);
    char need_text[32], have_text[32];
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (tensor_layout(c, t) != LAYOUT_SCORES)
            need += (double)tensor_elements(t, d->w) * d->element_bytes;
    need += 2.0 * c->carried_count * (double)tensor_elements(TENSOR_X, d->w) * d->element_bytes;
    for (int i = 0; i < WEIGHT_MAX; i++)
        need += weight_bytes(i, d->w) * (c->weights[i].table ? workload_kinds(d->w) : d->w->layers);
    if (need <= (double)have)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT,
                      "this workload needs %s of GPU memory, and %s is available; choose a smaller "
                      "batch, sequence length or number of layers",
                      number_bytes((uint64_t)need, need_text), number_bytes(have, have_text));
}

/* With lengths, packed launches take the rows of real tokens alone, and others all rows. */
static int copy_lengths(struct device *d, struct status *st)
{
    const struct workload *w = d->w;
    d->common.tokens = w->batch * w->seq_len;
    if (w->lengths == NULL)
        return 0;
    SCOPED_BY(packing_release) struct packing p;
    packing_init(&p, w);
    struct cuda_array arrays[] = {
        {p.unpacked, (size_t)p.tokens * sizeof(int), 0},
        {p.offset, (size_t)(w->batch + 1) * sizeof(int), 0},
        {w->lengths, (size_t)w->batch * sizeof(int), 0},
    };
    if (cuda_copy_arrays(d, arrays, ARRAY_LEN(arrays), st) != 0)
        return -1;
    d->unpacked = cuda_pointer(arrays[0].at);
    d->offset = cuda_pointer(arrays[1].at);
    d->common.lengths = cuda_pointer(arrays[2].at);
    return 0;
}

/* Since compute capability 9.0 kernels can wait for the launch in front of theirs. */
static bool has_dependent_launch(const struct device *d, const char *what)
{
    int major = 0;
    cuda_must(d,
              d->cu->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                          d->ordinal),
              what);
    return major >= 9;
}

static int start_device(struct device *d, int index, struct status *st)
{
    const struct cuda_driver *cu = d->cu;
    struct CUctx_st *context;
    char uuid[64];
    static const char what[] = "cannot open the GPU";
    if (cuda_check(cu, cu->cuDeviceGet(&d->ordinal, index), STATUS_ENVIRONMENT, what, st) != 0 ||
        cuda_check(cu, cu->cuDevicePrimaryCtxRetain(&context, d->ordinal), STATUS_ENVIRONMENT, what,
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
        cuda_must(d, cu->cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, d->ordinal),
                  what);
    d->dependent = has_dependent_launch(d, what);
    cuda_must(d, cu->cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING), what);
    for (size_t i = 0; i < ARRAY_LEN(d->events); i++)
        cuda_must(d, cu->cuEventCreate(&d->events[i], 0), what);
    d->available_at_first = cuda_available(d);
    cuda_uuid(cu, d->ordinal, uuid);
    d->nvml = nvml_open(uuid);
    return 0;
}

void cuda_close(struct device *d)
{
    if (d == NULL)
        return;
    cuda_stage_release(d);
    matmuls_release(d);
    nvml_close(d->nvml);
    free(d->tiles);
    free(d); /* the context ends with its process */
}

int cuda_open(int index, const struct workload *w, struct device **out, struct status *st)
{
    struct device *d = mem_alloc(1, sizeof(*d));
    d->w = w;
    d->element_bytes = dtypes[w->dtype].bytes;
    d->common = (struct fp_args){.batch = w->batch,
                                 .seq_len = w->seq_len,
                                 .heads = w->heads,
                                 .head_size = w->head_size,
                                 .hidden = workload_hidden(w),
                                 .ffn = w->ffn,
                                 .eps = (float)w->eps};
    *out = NULL;
    if (cuda_driver_open(&d->cu, st) != 0 || start_device(d, index, st) != 0 ||
        check_memory(d, st) != 0 || cuda_copy_masks(d, st) != 0 || copy_lengths(d, st) != 0) {
        cuda_close(d);
        return -1;
    }
    cuda_hash_open(d);
    *out = d;
    return 0;
}
